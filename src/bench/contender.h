// SPDX-License-Identifier: Apache-2.0
// Who is timed: anything that can put one product on a stream. Ours, libraries, and modules that a
// command line names, all behind one interface.
#pragma once

#include "bench/grouped_shapes.h"
#include "bench/workbench.h"
#include "support/result.h"

#include <memory>
#include <string>

namespace jitgemm::bench {

// Which product a contender computes, and so what its result is held against.
enum class Product {
  kBlockScaled,
  kTensorwise,  // one scale for each operand: less work, shown for orientation
};

inline constexpr float kTensorwiseScale = 1.0F / 300;

struct ContenderInfo {
  std::string name;     // "jitgemm", "cublaslt_block"
  std::string variant;  // what of it: a plan, an algorithm
  std::string source;   // of a plan: model, database, override; "peer" for all others
  Product product = Product::kBlockScaled;
  // Relative L2 error that a right result stays below.
  double error_limit = 0;
  // Of grouped products: the form that is read and written, and how ours is told whose rows are.
  GroupedForm form = GroupedForm::kTight;
  std::string layout;
  // Launched so that it may begin before the launch in front of it has ended (a PDL edge).
  bool programmatic = false;
};

class Contender {
 public:
  virtual ~Contender() = default;
  virtual const ContenderInfo& info() const = 0;
  // One product of set `index` into its out. Allocates nothing: it may be captured.
  virtual Status launch(size_t index, CuStream stream) = 0;
};

}  // namespace jitgemm::bench
