// SPDX-License-Identifier: Apache-2.0
#include "bench/grouped_shapes.h"

#include "verify/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace jitgemm::bench {
namespace {

constexpr int64_t kPeerAlignment = 128;
constexpr uint32_t kCountStream = 0x6c0c;

// The weights of a large model's experts: (n, k) of the first and of the second product.
constexpr Shape kWeights[] = {
    {0, 4096, 7168},
    {0, 7168, 2048}
};

struct Grid {
  int64_t groups;
  int64_t rows;
};

std::vector<GroupedShape> contiguous_shapes() {
  constexpr Grid kGrid[] = {
      {4,   8192},
      {8,   4096},
      {32,  256 },
      {256, 8   },
      {256, 1   }
  };
  std::vector<GroupedShape> shapes;
  for (const Grid& at : kGrid) {
    for (const Shape& w : kWeights) shapes.push_back({at.groups, at.rows, 0, w.n, w.k});
  }
  shapes.push_back({2, 128, 0, 2048, 4096});
  return shapes;
}

std::vector<GroupedShape> masked_shapes() {
  constexpr Grid kGrid[] = {
      {32,  1024},
      {6,   1024},
      {1,   2048},
      {256, 128 }
  };
  std::vector<GroupedShape> shapes;
  for (const Grid& at : kGrid) {
    for (const int64_t mean : {1, 8, 64, 128, 1024}) {
      if (mean > at.rows) continue;
      for (const Shape& w : kWeights) shapes.push_back({at.groups, at.rows, mean, w.n, w.k});
    }
  }
  return shapes;
}

Grouping grouping_of(GroupLayout layout, const GroupedShape& shape, int64_t expected_m) {
  Grouping grouping;
  grouping.layout = layout;
  grouping.groups = shape.groups;
  grouping.expected_m = expected_m;
  return grouping;
}

}  // namespace

std::vector<int64_t> group_counts(const GroupedShape& shape) {
  std::vector<int64_t> counts(static_cast<size_t>(shape.groups), shape.rows);
  if (!shape.masked()) return counts;
  const RandomStream random(1, kCountStream);
  for (size_t group = 0; group < counts.size(); ++group) {
    const double share = 0.7 + 0.6 * static_cast<double>(random.uniform(group));
    const double drawn = share * static_cast<double>(shape.mean) + 0.5;
    counts[group] = std::clamp<int64_t>(static_cast<int64_t>(drawn), 0, shape.rows);
  }
  return counts;
}

Shape product_of(const GroupedShape& shape) {
  const std::vector<int64_t> counts = group_counts(shape);
  return {std::accumulate(counts.begin(), counts.end(), int64_t{0}), shape.n, shape.k};
}

double fewest_bytes(const GroupedShape& shape, int out_bytes) {
  double bytes = 0;
  for (const int64_t count : group_counts(shape)) {
    if (count > 0) bytes += fewest_bytes(Shape{count, shape.n, shape.k}, out_bytes);
  }
  return bytes;
}

Result<std::vector<GroupedShape>> grouped_suite_shapes(std::string_view suite) {
  if (suite == "contiguous") return contiguous_shapes();
  if (suite == "masked") return masked_shapes();
  if (suite == "grouped") {
    std::vector<GroupedShape> shapes = contiguous_shapes();
    for (const GroupedShape& shape : masked_shapes()) shapes.push_back(shape);
    return shapes;
  }
  return invalid_argument(
      fmt::format("--suite: expected contiguous, masked or grouped, found '{}'", suite));
}

Result<std::vector<GroupedShape>> listed_grouped_shapes(const std::vector<int64_t>& groups,
                                                        const std::vector<int64_t>& rows,
                                                        const std::vector<int64_t>& means,
                                                        const std::vector<int64_t>& n,
                                                        const std::vector<int64_t>& k) {
  if (groups.empty()) return invalid_argument("--groups: expected how many groups there are");
  JITGEMM_ASSIGN(const std::vector<Shape> products, listed_shapes(rows, n, k));
  for (const std::vector<int64_t>* list : {&groups, &means}) {
    for (const int64_t value : *list) {
      if (value < 1) {
        return invalid_argument(
            fmt::format("--groups, --mean: expected at least 1, found {}", value));
      }
    }
  }
  const std::vector<int64_t> listed_means = means.empty() ? std::vector<int64_t>{0} : means;
  std::vector<GroupedShape> shapes;
  for (const int64_t count : groups) {
    for (const int64_t mean : listed_means) {
      for (const Shape& p : products) {
        if (mean > p.m) {
          return invalid_argument(
              fmt::format("--mean: expected at most the {} rows of a group, found {}", p.m, mean));
        }
        shapes.push_back({count, p.m, mean, p.n, p.k});
      }
    }
  }
  return shapes;
}

std::string_view grouped_form_name(GroupedForm form) {
  switch (form) {
    case GroupedForm::kTight: return "tight";
    case GroupedForm::kPadded: return "padded";
    case GroupedForm::kMasked: return "masked";
  }
  return "?";
}

FormLayout form_layout(const GroupedShape& shape, GroupedForm form) {
  const std::vector<int64_t> counts = group_counts(shape);
  FormLayout layout;
  layout.form = form;
  if (form == GroupedForm::kMasked) {
    layout.rows = shape.groups * shape.rows;
    layout.matrices = shape.groups;
    for (int64_t group = 0; group < shape.groups; ++group) {
      layout.begins.push_back(group * shape.rows);
    }
    layout.group_rows.assign(counts.begin(), counts.end());
    return layout;
  }
  const int64_t alignment = form == GroupedForm::kPadded ? kPeerAlignment : 1;
  for (size_t group = 0; group < counts.size(); ++group) {
    layout.begins.push_back(layout.rows);
    layout.row_pointers.push_back(static_cast<int32_t>(layout.rows));
    layout.rows = (layout.rows + counts[group] + alignment - 1) / alignment * alignment;
    const auto begin = static_cast<size_t>(layout.begins.back());
    layout.group_rows.resize(begin + static_cast<size_t>(counts[group]),
                             static_cast<int32_t>(group));
    layout.group_rows.resize(static_cast<size_t>(layout.rows), -1);
  }
  layout.row_pointers.push_back(static_cast<int32_t>(layout.rows));
  if (form == GroupedForm::kPadded) layout.row_pointers.clear();
  return layout;
}

std::vector<GroupedForm> forms_of(const GroupedShape& shape) {
  if (shape.masked()) return {GroupedForm::kMasked};
  if (shape.rows % kPeerAlignment == 0) return {GroupedForm::kTight};
  return {GroupedForm::kTight, GroupedForm::kPadded};
}

GroupedForm peer_form(const GroupedShape& shape) {
  return forms_of(shape).back();
}

std::vector<GemmProblem> grouped_problems(const GroupedShape& shape, const GemmProblem& base) {
  GemmProblem p = base;
  p.n = shape.n;
  p.k = shape.k;
  std::vector<GemmProblem> problems;
  const auto add = [&](GroupedForm form, const Grouping& grouping) {
    const FormLayout layout = form_layout(shape, form);
    p.m = layout.rows_of_matrix();
    if (p.a_scale_major == ScaleMajor::kColumn) p.a_scale_ld = layout.scale_rows();
    p.grouping = grouping;
    problems.push_back(p);
  };
  if (shape.masked()) {
    add(GroupedForm::kMasked, grouping_of(GroupLayout::kMasked, shape, shape.mean));
    return problems;
  }
  Grouping indices = grouping_of(GroupLayout::kRowIndices, shape, shape.rows);
  // The power of two, up to 128, that all groups begin at a multiple of.
  indices.row_alignment = static_cast<int32_t>(std::gcd(shape.rows, kPeerAlignment));
  add(GroupedForm::kTight, indices);
  add(GroupedForm::kTight, grouping_of(GroupLayout::kRowPointers, shape, shape.rows));
  if (peer_form(shape) == GroupedForm::kPadded) {
    add(GroupedForm::kPadded, grouping_of(GroupLayout::kRowIndices, shape, 0));
  }
  return problems;
}

GroupedForm form_of(const GroupedShape& shape, const GemmProblem& problem) {
  if (shape.masked()) return GroupedForm::kMasked;
  // Padding adds rows wherever the two forms differ.
  return problem.m == shape.groups * shape.rows ? GroupedForm::kTight : GroupedForm::kPadded;
}

}  // namespace jitgemm::bench
