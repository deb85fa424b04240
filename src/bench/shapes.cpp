// SPDX-License-Identifier: Apache-2.0
#include "bench/shapes.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm::bench {
namespace {

constexpr int64_t kBlock = 128;

std::vector<Shape> seed_shapes() {
  std::vector<Shape> shapes;
  for (const int64_t m :
       {349, 1024, 4533, 6918, 20480, 51200, 65536, 98304, 118784, 250880, 516096, 704512}) {
    shapes.push_back({m, 2048, 2048});
  }
  for (const int64_t m :
       {237, 3072, 4096, 8192, 16384, 24576, 49152, 65536, 98304, 131072, 258048, 299520}) {
    shapes.push_back({m, 4096, 4096});
  }
  return shapes;
}

std::vector<Shape> decode_shapes() {
  std::vector<Shape> shapes;
  constexpr Shape kWeights[] = {
      {0, 2112,  7168 },
      {0, 24576, 1536 },
      {0, 7168,  16384},
      {0, 4096,  7168 },
      {0, 7168,  2048 }
  };
  for (const Shape& weights : kWeights) {
    for (const int64_t m : {1, 8, 16, 32, 64, 128}) shapes.push_back({m, weights.n, weights.k});
  }
  return shapes;
}

// Each odd size is followed by the aligned one that its figure is held against.
std::vector<Shape> odd_shapes() {
  std::vector<Shape> shapes;
  for (const int64_t m : {64, 4096}) {
    for (const int64_t n : {576, 640, 1536, 2112, 2176, 13824}) shapes.push_back({m, n, 7168});
    for (const int64_t k : {256, 3884, 3968, 13824, 16384}) shapes.push_back({m, 4096, k});
  }
  for (const int64_t m : {7, 8, 83, 88, 237, 240, 349, 352, 4533, 4544}) {
    shapes.push_back({m, 4096, 4096});
  }
  return shapes;
}

}  // namespace

double fewest_bytes(const Shape& s, int out_bytes) {
  const auto blocks = [](int64_t extent) {
    const int64_t count = (extent + kBlock - 1) / kBlock;
    return static_cast<double>(count);
  };
  const auto m = static_cast<double>(s.m);
  const auto n = static_cast<double>(s.n);
  const auto k = static_cast<double>(s.k);
  return m * k + n * k + 4.0 * blocks(s.k) * (m + blocks(s.n)) + m * n * out_bytes;
}

Result<std::vector<Shape>> suite_shapes(std::string_view suite) {
  if (suite == "seed") return seed_shapes();
  if (suite == "decode") return decode_shapes();
  if (suite == "odd") return odd_shapes();
  return invalid_argument(fmt::format("--suite: expected seed, decode or odd, found '{}'", suite));
}

Result<std::vector<Shape>> listed_shapes(const std::vector<int64_t>& m,
                                         const std::vector<int64_t>& n,
                                         const std::vector<int64_t>& k) {
  if (m.empty() || n.empty() || k.empty()) {
    return invalid_argument("shapes: expected a suite, or -m, -n and -k");
  }
  if (n.size() != k.size() && n.size() != 1 && k.size() != 1) {
    return invalid_argument(fmt::format(
        "-n, -k: expected lists of one length, or one number for one of them; found {} and {}",
        n.size(), k.size()));
  }
  for (const std::vector<int64_t>* list : {&m, &n, &k}) {
    for (const int64_t value : *list) {
      if (value < 1) {
        return invalid_argument(fmt::format("shapes: expected at least 1, found {}", value));
      }
    }
  }
  std::vector<Shape> shapes;
  for (size_t i = 0; i < std::max(n.size(), k.size()); ++i) {
    for (const int64_t rows : m) {
      shapes.push_back({rows, n[std::min(i, n.size() - 1)], k[std::min(i, k.size() - 1)]});
    }
  }
  return shapes;
}

}  // namespace jitgemm::bench
