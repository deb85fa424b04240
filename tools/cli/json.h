// SPDX-License-Identifier: Apache-2.0
// Values of the library as JSON documents. Every document has "schema": 1 and never loses a field.
#pragma once

#include "compile/kernel_image.h"
#include "plan/operation_plan.h"
#include "verify/compare.h"

#include <nlohmann/json.hpp>

namespace jitgemm::cli {

using Json = nlohmann::ordered_json;

Json to_json(const GemmProblem& problem);
Json to_json(const GemmPlan& plan);
Json to_json(const QuantizePlan& plan);
Json to_json(const AlignPlan& plan);
// The launches with their geometry for a device of that many SMs, and the workspace.
Json to_json(const OperationPlan& plan, int sm_count);
Json to_json(const KernelImage& image);
Json to_json(const ErrorMetrics& metrics);
// A document that begins with its schema number and verb.
Json document(const char* verb);
void print(const Json& json);

}  // namespace jitgemm::cli
