// SPDX-License-Identifier: Apache-2.0
// What GPUs said of the cases: tests/ptx/confirmations.json, written by tools/gpu_check and by
// nothing else. A record is found by the digest of its case and text, so that one whose case or
// text has changed since counts as none.
#pragma once

#include "support/result.h"

#include <map>
#include <string>
#include <string_view>

namespace jitgemm::ptx_cases {

struct Confirmation {
  std::string place;    // file:line when it was written
  std::string digest;   // of case and text
  std::string result;   // "confirmed", "refused", "differs", "failed"
  std::string message;  // of all but "confirmed": why
  std::string output;   // SHA-256 of all output bytes of a confirmed case
  std::string gpu, driver, commit, date;
};

using Confirmations = std::map<std::string, Confirmation>;  // by digest

// Empty when there is no such file.
Result<Confirmations> read_confirmations(const std::string& path);
Status write_confirmations(const std::string& path, const Confirmations& records);
// One record as a line of JSON, and back.
std::string to_line(const Confirmation& record);
Result<Confirmation> from_line(std::string_view line);

}  // namespace jitgemm::ptx_cases
