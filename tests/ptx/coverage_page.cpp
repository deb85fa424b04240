// SPDX-License-Identifier: Apache-2.0
#include "ptx/coverage_page.h"

#include "ptx/gpu_cases.h"
#include "ptx/instruction_table.h"
#include "sim/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace jitgemm::ptx_cases {
namespace {

struct Chapter {
  std::string_view section, title;
};
constexpr Chapter kChapters[] = {
    {"9.7.1.",  "Integer arithmetic"                                },
    {"9.7.2.",  "Extended-precision integer arithmetic"             },
    {"9.7.3.",  "Floating point"                                    },
    {"9.7.4.",  "Half precision floating point"                     },
    {"9.7.5.",  "Mixed precision floating point"                    },
    {"9.7.6.",  "Comparison and selection"                          },
    {"9.7.7.",  "Half precision comparison"                         },
    {"9.7.8.",  "Logic and shift"                                   },
    {"9.7.9.",  "Data movement and conversion"                      },
    {"9.7.11.", "Surfaces"                                          },
    {"9.7.12.", "Control flow"                                      },
    {"9.7.13.", "Synchronisation and communication"                 },
    {"9.7.14.", "Warp-level matrix instructions"                    },
    {"9.7.15.", "Asynchronous warpgroup matrix instructions (wgmma)"},
    {"9.7.16.", "Tensor core of the fifth generation (tcgen05)"     },
    {"9.7.19.", "Miscellaneous"                                     },
};

size_t chapter_of(std::string_view section) {
  for (size_t i = 0; i < std::size(kChapters); ++i) {
    if (section.starts_with(kChapters[i].section)) return i;
  }
  return std::size(kChapters);
}

// The forms that the case's own lines use; without any, those of the whole text.
Result<std::set<size_t>> forms_of(const Case& c, bool whole) {
  const std::string_view target = case_target(c);
  const std::string text = case_text(c, target);
  auto program = sim::Program::load(text);
  if (!program) return program.error().with_context(c.place());
  const auto [first, last] = body_lines(c, target);
  const auto globals = static_cast<uint32_t>(std::count(c.globals.begin(), c.globals.end(), '\n'));
  std::set<size_t> forms;
  for (const ptx::Function& f : program->decoded().module.functions) {
    for (const ptx::Instruction& i : f.instructions) {
      const uint32_t line = i.position.line;
      const bool own = (line >= first && line <= last) || (line > 3 && line <= 3 + globals);
      if (own || whole) forms.insert(i.form);
    }
  }
  return forms;
}

struct FormCases {
  std::map<std::string, size_t> by_file;  // how many cases
  size_t cases = 0, confirmed = 0, refused = 0, unknown = 0;
  std::string trouble;   // the first case that differs
  std::string failure;   // the first case that could not be run to its end
  std::string distance;  // where the expected words are not those of the GPU: how far
};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string status_of(const ptx::FormRow& row, const FormCases& form) {
  if (row.unsupported[0] != '\0') return fmt::format("not simulated: {}", row.unsupported);
  if (form.cases == 0) return "no case";
  if (!form.trouble.empty()) return "**" + form.trouble + "**";
  if (form.confirmed > 0) {
    const std::string distance = form.distance.empty() ? "" : ": " + form.distance;
    return form.confirmed == form.cases
               ? "confirmed" + distance
               : fmt::format("confirmed by {} of {}{}", form.confirmed, form.cases, distance);
  }
  return form.refused == form.cases ? "not on sm_90a" : "not run on a GPU yet";
}

// Also where a driver compiles only when the kernel is asked for (the first records said "failed").
bool refused_by_compiler(const Confirmation& record) {
  return record.result == "refused" ||
         (record.result == "failed" &&
          record.message.find("CUDA_ERROR_INVALID_PTX") != std::string::npos);
}

}  // namespace

Result<std::string> coverage_page(const std::vector<Case>& cases, const Confirmations& records) {
  const ptx::InstructionTable& table = ptx::InstructionTable::get();
  std::vector<FormCases> forms(table.size());
  std::set<std::string> sources;
  for (const bool whole : {false, true}) {
    std::vector<size_t> lacking;
    for (size_t i = 0; i < forms.size(); ++i) {
      if (forms[i].cases == 0) lacking.push_back(i);
    }
    const std::set<size_t> wanted(lacking.begin(), lacking.end());
    for (const Case& c : cases) {
      JITGEMM_ASSIGN(const std::set<size_t> used, forms_of(c, whole));
      const auto record = records.find(case_digest(c, kGpuTarget));
      for (const size_t i : used) {
        if (!wanted.contains(i)) continue;
        FormCases& form = forms[i];
        ++form.cases;
        ++form.by_file[c.file];
        if (record == records.end()) {
          ++form.unknown;
          continue;
        }
        const Confirmation& r = record->second;
        sources.insert(fmt::format("{}, {}, commit {}, {}", r.gpu, r.driver, r.commit, r.date));
        if (r.result == "confirmed") {
          ++form.confirmed;
          if (form.distance.empty()) form.distance = r.message;
        } else if (refused_by_compiler(r)) {
          ++form.refused;
        } else if (std::string& trouble = r.result == "differs" ? form.trouble : form.failure;
                   trouble.empty()) {
          trouble = escaped(fmt::format("{}: {}: {}", c.place(), r.result, r.message));
        }
      }
    }
  }

  size_t simulated = 0, confirmed = 0, elsewhere = 0, trouble = 0;
  std::vector<std::string> tables(std::size(kChapters) + 1);
  for (size_t i = 0; i < forms.size(); ++i) {
    const ptx::FormRow& row = *table.form(i).row;
    FormCases& form = forms[i];
    // A case that fails says nothing against a form that another case confirms.
    if (form.trouble.empty() && form.confirmed == 0) form.trouble = form.failure;
    const bool runs = row.unsupported[0] == '\0';
    simulated += runs ? 1 : 0;
    confirmed += runs && form.confirmed > 0 && form.trouble.empty() ? 1 : 0;
    elsewhere += runs && form.cases > 0 && form.refused == form.cases ? 1 : 0;
    trouble += form.trouble.empty() ? 0 : 1;
    std::string files;
    for (const auto& [file, count] : form.by_file) {
      files += fmt::format("{}{} ({})", files.empty() ? "" : ", ", file, count);
    }
    tables[chapter_of(row.section)] += fmt::format("| `{}` | {} | {} | {} |\n", escaped(row.syntax),
                                                   row.section, files, status_of(row, form));
  }
  std::string page = fmt::format(
      "# PTX coverage\n\n"
      "Written by `ptx_cases coverage`; a test fails when it is out of date. One row for each form "
      "of the\n"
      "instruction table (`src/ptx/rows_*.cpp`), in its notation. A case is a smallest program in\n"
      "`tests/ptx/cases` that uses the form; the number in brackets says how many there are. CI "
      "runs every case on the\n"
      "simulator. *Confirmed* means: a GPU ran the same PTX on the same bytes, and every byte that "
      "it left was\n"
      "equal to the simulator's and to what the case expects (`tests/ptx/confirmations.json`, "
      "written by\n"
      "`tools/gpu_check` alone). Where the ISA bounds the error of an approximation only, the "
      "GPU's distance from the\n"
      "expected value is shown, in units of the bound. A record whose case or PTX has changed "
      "since counts for nothing. "
      "*Not on sm_90a*\n"
      "means that the driver's compiler refuses every case of the form for an H200. A case that "
      "fails is shown where no\n"
      "other confirms the form.\n\n"
      "{} forms; {} simulated; {} confirmed; {} not on sm_90a; {} in which a GPU differs or "
      "fails.\n\n",
      forms.size(), simulated, confirmed, elsewhere, trouble);
  for (const std::string& source : sources) page += fmt::format("- {}\n", source);
  if (!sources.empty()) page += "\n";
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i].empty()) continue;
    page += fmt::format("## {}\n\n| form | PTX ISA | cases | H200 |\n|---|---|---|---|\n{}\n",
                        i < std::size(kChapters) ? kChapters[i].title : "Other", tables[i]);
  }
  page.pop_back();
  return page;
}

}  // namespace jitgemm::ptx_cases
