// SPDX-License-Identifier: Apache-2.0
#include "sim/report.h"

#include "fmt/format.h"
#include "ptx/instruction_table.h"

#include <algorithm>
#include <map>

namespace jitgemm::sim {
namespace {

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  const size_t last = text.find_last_not_of(" \t\r");
  return std::string(text.substr(first, last - first + 1));
}

std::string describe_value(const Warp& warp, const Operand& operand, uint32_t lane) {
  const LaneMask bit = LaneMask{1} << lane;
  if ((warp.undefined(operand) & bit) != 0) return "undefined";
  if (operand.kind == OperandKind::kPredicate)
    return (warp.predicate(operand) & bit) != 0 ? "true" : "false";
  if (operand.bytes == 16) return "128 bits";
  return fmt::format("{:#x}", warp.value(operand, lane));
}

const Op* op_of(const GridState& grid, const Origin& origin) {
  return origin.op < grid.kernel->ops.size() ? &grid.kernel->ops[origin.op] : nullptr;
}

// The group of an instruction: the chapter of the PTX ISA that has it, data movement in three.
std::string_view group_name(const Op& op) {
  if (op.instruction == nullptr) return "control flow";
  if ((op.flags & kOpMatrix) != 0) return "matrix";
  const std::string_view section = ptx::InstructionTable::get().row(*op.instruction).section;
  struct Chapter {
    std::string_view section, name;
  };
  constexpr Chapter kChapters[] = {
      {"9.7.1.",  "integer"              },
      {"9.7.2.",  "integer"              },
      {"9.7.3.",  "floating point"       },
      {"9.7.4.",  "half precision"       },
      {"9.7.5.",  "floating point"       },
      {"9.7.6.",  "compare and select"   },
      {"9.7.7.",  "compare and select"   },
      {"9.7.8.",  "logic and shift"      },
      {"9.7.12.", "control flow"         },
      {"9.7.13.", "synchronisation"      },
      {"9.7.14.", "warp matrix moves"    },
      {"9.7.15.", "wgmma synchronisation"},
      {"9.7.16.", "tcgen05, other"       },
  };
  if (section.starts_with("9.7.9.")) {
    if ((op.flags & kOpMemory) != 0) return "load and store";
    const std::string_view name = ptx::opcode_name(op.instruction->opcode);
    if (name.starts_with("cp.")) return "asynchronous copy";
    return "move and convert";
  }
  for (const Chapter& chapter : kChapters) {
    if (section.starts_with(chapter.section)) return chapter.name;
  }
  return "other";
}

void add_to(std::map<std::string, Counter>& counters, const std::string& name,
            const OpCount& count) {
  Counter& c = counters[name];
  c.name = name;
  c.instructions += count.issues;
  c.thread_instructions += count.lanes;
}

std::vector<Counter> most_frequent_first(std::map<std::string, Counter>& counters) {
  std::vector<Counter> sorted;
  sorted.reserve(counters.size());
  for (auto& [name, counter] : counters) sorted.push_back(std::move(counter));
  std::stable_sort(sorted.begin(), sorted.end(), [](const Counter& a, const Counter& b) {
    return a.instructions > b.instructions;
  });
  return sorted;
}

}  // namespace

std::string source_line(const GridState& grid, const Op& op) {
  if (op.instruction == nullptr) return "return of a function";
  const uint32_t line = op.instruction->position.line;
  if (line == 0 || line > grid.program->lines.size()) return "";
  std::string text = trimmed(grid.program->lines[line - 1]);
  // Compilers write a call over several lines.
  for (size_t next = line; next < grid.program->lines.size() && next < line + size_t{16} &&
                           text.find_first_of(";{}:/") == std::string::npos;
       ++next) {
    text += " " + trimmed(grid.program->lines[next]);
  }
  return text;
}

std::string describe_operands(const Warp& warp, const Op& op, int32_t lane) {
  std::string text;
  const uint32_t l =
      lane < 0 ? static_cast<uint32_t>(std::countr_zero(warp.exists)) : static_cast<uint32_t>(lane);
  const auto& lists = warp.cta.cluster.grid.kernel->lists;
  for (uint32_t i = 0; i < op.slot_count; ++i) {
    const Operand& o = op.slot(i);
    std::string value;
    switch (o.kind) {
      case OperandKind::kNone: continue;
      case OperandKind::kSink: value = "_"; break;
      case OperandKind::kValue:
      case OperandKind::kPredicate: value = describe_value(warp, o, l); break;
      case OperandKind::kAddress:
        value = (warp.undefined(o) >> l & 1) != 0 ? "[undefined]"
                                                  : fmt::format("[{:#x}]", warp.address(o, l));
        break;
      case OperandKind::kList:
        value = "{";
        for (uint32_t e = 0; e < std::min(o.count, 8u); ++e) {
          value += (e == 0 ? "" : ", ") + (lists[o.offset + e].kind == OperandKind::kSink
                                               ? std::string("_")
                                               : describe_value(warp, lists[o.offset + e], l));
        }
        value += o.count > 8 ? ", ...}" : "}";
        break;
    }
    text += (text.empty() ? "" : ", ") + value;
  }
  return text;
}

std::string describe_thread(const GridState& grid, uint64_t cluster, uint32_t warp, int32_t lane,
                            uint32_t op) {
  const Launch& l = grid.launch;
  const uint64_t nx = l.grid[0] / l.cluster[0], ny = l.grid[1] / l.cluster[1];
  const uint32_t rank = warp / grid.warps_per_cta;
  const uint64_t x = cluster % nx * l.cluster[0] + rank % l.cluster[0];
  const uint64_t y = cluster / nx % ny * l.cluster[1] + rank / l.cluster[0] % l.cluster[1];
  const uint64_t z = cluster / (nx * ny) * l.cluster[2] + rank / (l.cluster[0] * l.cluster[1]);
  const Op& other = grid.kernel->ops[op];
  return fmt::format("CTA ({}, {}, {}), warp {}, {}at line {}: {}", x, y, z,
                     warp % grid.warps_per_cta, lane < 0 ? "" : fmt::format("lane {}, ", lane),
                     other.instruction->position.line, source_line(grid, other));
}

std::string describe_results(const Warp& warp, const Op& op, uint32_t lane) {
  std::string text;
  const auto add = [&](const Operand& o) {
    if (!o.written || (o.kind != OperandKind::kValue && o.kind != OperandKind::kPredicate)) return;
    text += (text.empty() ? "" : ", ") + describe_value(warp, o, lane);
  };
  const auto& lists = warp.cta.cluster.grid.kernel->lists;
  for (uint32_t i = 0; i < op.slot_count; ++i) {
    const Operand& o = op.slot(i);
    if (o.kind != OperandKind::kList) {
      add(o);
      continue;
    }
    for (uint32_t e = 0; e < std::min(o.count, 8u); ++e) add(lists[o.offset + e]);
  }
  return text;
}

std::string describe_fault(const GridState& grid, const Fault& fault) {
  const Op* op = op_of(grid, fault.origin);
  std::string text =
      fmt::format("{}\n  kernel:   {}\n", fault_name(fault.kind), grid.kernel->function->name);
  if (op != nullptr) {
    const ptx::Function& function = grid.program->module.functions[op->function];
    if (&function != grid.kernel->function) text += fmt::format("  function: {}\n", function.name);
    if (op->instruction != nullptr) {
      text += fmt::format("  line:     {}: {}\n", op->instruction->position.line,
                          source_line(grid, *op));
    }
    const Origin& o = fault.origin;
    text +=
        fmt::format("  thread:   CTA ({}, {}, {}), warp {}", o.cta[0], o.cta[1], o.cta[2], o.warp);
    if (o.lane >= 0) text += fmt::format(", lane {}", o.lane);
    text += "\n";
  }
  if (!fault.operands.empty()) text += fmt::format("  operands: {}\n", fault.operands);
  if (!fault.detail.empty()) text += fmt::format("  found:    {}\n", fault.detail);
  text += fmt::format("  rule:     {}", fault_rule(fault.kind));
  // Limits of a run are in no section.
  if (fault_section(fault.kind) != "-")
    text += fmt::format(" (PTX ISA {})", fault_section(fault.kind));
  return text;
}

std::string describe_waits(const Cluster& cluster) {
  std::string text;
  for (const auto& cta : cluster.ctas) {
    for (const auto& warp : cta->warps) {
      for (const Split& s : warp->splits) {
        if (!s.parked) continue;
        const Op& op = cluster.grid.kernel->ops[s.pc];
        text += fmt::format("\n            CTA ({}, {}, {}), warp {}, lanes {:#010x} wait for {}",
                            cta->ctaid[0], cta->ctaid[1], cta->ctaid[2], warp->index, s.mask,
                            s.wait.what);
        if (s.wait.describe != nullptr) text += " " + s.wait.describe(*warp, s);
        if (op.instruction != nullptr) {
          text += fmt::format(" at line {}: {}", op.instruction->position.line,
                              source_line(cluster.grid, op));
        }
      }
    }
  }
  for (const auto& [id, operation] : cluster.engine.pending()) {
    text += fmt::format("\n            asynchronous {} of CTA rank {} has not completed",
                        operation.name, operation.cta_rank);
  }
  return text;
}

Report make_report(const GridState& grid, std::span<const OpCount> counts) {
  Report report;
  std::map<std::string, Counter> classes, groups, matrix;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].issues == 0) continue;
    const Op& op = grid.kernel->ops[i];
    const std::string name =
        op.instruction == nullptr ? "ret" : std::string(ptx::opcode_name(op.instruction->opcode));
    add_to(classes, name, counts[i]);
    add_to(groups, std::string(group_name(op)), counts[i]);
    report.instructions += counts[i].issues;
    report.thread_instructions += counts[i].lanes;
    if ((op.flags & kOpMatrix) != 0 && op.instruction != nullptr) {
      report.matrix_instructions += counts[i].issues;
      add_to(matrix, grid.program->module.mnemonics[op.instruction->mnemonic], counts[i]);
    }
    if ((op.flags & kOpMemory) == 0 || op.instruction == nullptr) continue;
    const ptx::Modifiers& m = op.modifiers();
    const uint64_t bytes = counts[i].lanes *
                           static_cast<uint64_t>(std::max(8, ptx::type_bits(m.type()))) / 8 *
                           std::max<uint64_t>(1, m.vector);
    classes[name].bytes += bytes;
    const bool writes =
        op.instruction->opcode != ptx::Opcode::kLd && op.instruction->opcode != ptx::Opcode::kLdu;
    switch (m.space) {
      case ptx::Space::kShared:
      case ptx::Space::kSharedCta:
      case ptx::Space::kSharedCluster:
        (writes ? report.shared_bytes_written : report.shared_bytes_read) += bytes;
        break;
      case ptx::Space::kLocal: report.local_bytes += bytes; break;
      case ptx::Space::kNone:
      case ptx::Space::kGlobal:
        (writes ? report.global_bytes_written : report.global_bytes_read) += bytes;
        break;
      default: break;
    }
  }
  report.classes = most_frequent_first(classes);
  report.groups = most_frequent_first(groups);
  report.matrix = most_frequent_first(matrix);
  report.numerics = grid.options.numerics;
  report.seed = grid.options.seed;
  return report;
}

std::string_view numerics_name(Numerics numerics) {
  switch (numerics) {
    case Numerics::kExact: return "exact";
    case Numerics::kHopper: return "hopper";
    case Numerics::kBlackwell: return "blackwell";
  }
  return "";
}

std::string Report::to_string() const {
  std::string text = fmt::format(
      "numerics {}, seed {}: {} clusters, {} CTAs, {} warps; {} warp instructions, {} thread "
      "instructions, {} matrix "
      "instructions, {} asynchronous operations\nglobal {} B read, {} B written; shared {} B read, "
      "{} B written; "
      "local {} B\n",
      numerics_name(numerics), seed, clusters, ctas, warps, instructions, thread_instructions,
      matrix_instructions, async_operations, global_bytes_read, global_bytes_written,
      shared_bytes_read, shared_bytes_written, local_bytes);
  if (unjudged_accesses != 0) {
    text += fmt::format(
        "{} accesses to global memory were not judged for data races: more state "
        "than a quarter of the memory limit\n",
        unjudged_accesses);
  }
  for (const Counter& c : classes) {
    text += fmt::format("  {:<28} {:>12} {:>14}", c.name, c.instructions, c.thread_instructions);
    if (c.bytes != 0) text += fmt::format(" {:>14} B", c.bytes);
    text += "\n";
  }
  return text;
}

}  // namespace jitgemm::sim
