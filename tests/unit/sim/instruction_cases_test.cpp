// SPDX-License-Identifier: Apache-2.0
// Runs the programs of tests/ptx/cases, a smallest one for each row of the instruction table, and
// checks what they leave in registers and memory. A row that no case executes must say in the table
// why the simulator refuses it, or the test fails. The format of the files is described in
// tests/ptx/cases/README.md.
#include "ptx/instruction_table.h"
#include "sim/models_tensor_map.h"
#include "sim/program.h"
#include "sim/simulator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace jitgemm::sim {
namespace {

constexpr size_t kSlots = 8;          // a0..a7 and so on
constexpr size_t kThreadBytes = 512;  // of the input and of the output of a thread
constexpr size_t kMemoryBytes = 1 << 16;

using Values = std::vector<uint64_t>;  // one for all threads, or one a thread
using Assignment = std::map<std::string, Values>;

struct CaseRun {
  Assignment in, out;
  std::vector<std::pair<size_t, Values>> memory_in, memory_out;  // 32-bit words from a byte offset
};

struct Case {
  std::string place;  // file:line
  std::string body, globals;
  uint32_t threads = 1, ctas = 1, cluster = 1, shared = 0;
  std::string map;  // words that describe a tensor map over the memory
  std::vector<CaseRun> runs;
};

Values parse_values(std::istream& words) {
  Values values;
  for (std::string word; words >> word;) {
    // first..last: rising by one.
    if (const size_t dots = word.find(".."); dots != std::string::npos) {
      const uint64_t last = std::stoull(word.substr(dots + 2), nullptr, 16);
      for (uint64_t v = std::stoull(word.substr(0, dots), nullptr, 16); v <= last; ++v)
        values.push_back(v);
    } else if (const size_t times = word.find('*'); times != std::string::npos) {
      values.insert(values.end(), std::stoul(word.substr(times + 1)),
                    std::stoull(word.substr(0, times), nullptr, 16));
    } else {
      values.push_back(std::stoull(word, nullptr, 16));
    }
  }
  return values;
}

// "a0=5 a1=7", or "a0: 1 2 3 ..." with a value a thread.
void parse_assignment(const std::string& text, Assignment& out) {
  if (const size_t colon = text.find(':'); colon != std::string::npos) {
    std::istringstream words(text.substr(colon + 1));
    out[text.substr(0, colon)] = parse_values(words);
    return;
  }
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    out[word.substr(0, equals)] = {std::stoull(word.substr(equals + 1), nullptr, 16)};
  }
}

std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  Case current;
  int number = 0;
  const auto finish = [&] {
    if (current.runs.empty() && !current.body.empty()) current.runs.emplace_back();
    if (!current.body.empty()) cases.push_back(std::move(current));
    current = Case{};
  };
  bool after_out = false;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty()) {
      finish();
      continue;
    }
    if (line[0] == '#') continue;
    if (current.place.empty())
      current.place = fmt::format("{}:{}", path.filename().string(), number);
    std::istringstream words(line);
    std::string first;
    words >> first;
    const std::string rest = line.size() > first.size() ? line.substr(first.size() + 1) : "";
    const auto run = [&](bool is_out) -> CaseRun& {
      if (current.runs.empty() || (!is_out && after_out)) current.runs.emplace_back();
      after_out = is_out;
      return current.runs.back();
    };
    if (first == "threads") {
      words >> current.threads;
    } else if (first == "ctas") {
      words >> current.ctas;
    } else if (first == "cluster") {
      words >> current.cluster;
    } else if (first == "shared") {
      words >> current.shared;
    } else if (first == "map") {
      current.map = rest;
    } else if (first == "global") {
      current.globals += rest + "\n";
    } else if (first == "in") {
      parse_assignment(rest, run(false).in);
    } else if (first == "out") {
      parse_assignment(rest, run(true).out);
    } else if (first == "mem" || first == "memout") {
      size_t offset = 0;
      words >> std::hex >> offset;
      CaseRun& r = run(first == "memout");
      (first == "mem" ? r.memory_in : r.memory_out).emplace_back(offset, parse_values(words));
    } else {
      current.body += line + "\n";
    }
    if (first == "out" || first == "memout") after_out = true;
  }
  finish();
  return cases;
}

struct Kind {
  char letter;
  const char* type;  // of loads and stores
  size_t offset;     // in the thread's bytes
  size_t bytes;
};
constexpr Kind kInputs[] = {
    {'a', "b32",  0,   4},
    {'A', "b64",  64,  8},
    {'h', "b16",  128, 2},
    {'p', "pred", 160, 4}
};
constexpr Kind kOutputs[] = {
    {'o', "b32",  0,   4},
    {'O', "b64",  64,  8},
    {'k', "b16",  128, 2},
    {'q', "pred", 160, 4}
};

template <size_t N>
const Kind& kind_of(const Kind (&kinds)[N], const std::string& name) {
  for (const Kind& kind : kinds) {
    if (kind.letter == name[0]) return kind;
  }
  throw std::runtime_error("no such register: " + name);
}
template <size_t N>
size_t offset_of(const Kind (&kinds)[N], const std::string& name) {
  const Kind& kind = kind_of(kinds, name);
  return kind.offset + kind.bytes * std::stoul(name.substr(1));
}

std::string text_of(const Case& c) {
  std::string text = ".version 9.0\n.target sm_100a\n.address_size 64\n" + c.globals;
  if (c.shared != 0) text += fmt::format(".shared .align 1024 .b8 shared[{}];\n", c.shared);
  text +=
      ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 mem, .param .align 64 .b8 "
      "map[128])\n{\n"
      ".reg .b32 a<8>;\n.reg .b32 o<8>;\n.reg .b32 t<300>;\n.reg .b64 A<8>;\n.reg .b64 O<8>;\n"
      ".reg .b64 T<40>;\n.reg .b16 h<8>;\n.reg .b16 k<8>;\n.reg .b16 s<40>;\n.reg .b128 Q<4>;\n"
      ".reg .pred p<8>;\n.reg .pred q<8>;\n.reg .pred u<8>;\n.reg .b64 IN;\n.reg .b64 OUT;\n"
      ".reg .b64 M;\n.reg .b64 MAP;\n.reg .b32 tid;\n.reg .b32 wtmp;\n.reg .b32 S;\n"
      "ld.param.u64 IN, [in];\nld.param.u64 OUT, [out];\nld.param.u64 M, [mem];\n"
      "mov.u64 MAP, map;\ncvta.param.u64 MAP, MAP;\n"
      "{ .reg .b32 c, n; mov.u32 c, %ctaid.x; mov.u32 n, %ntid.x; mov.u32 tid, %tid.x;\n"
      "mad.lo.u32 wtmp, c, n, tid; }\n"
      "mad.wide.u32 IN, wtmp, 512, IN;\nmad.wide.u32 OUT, wtmp, 512, OUT;\n";
  if (c.shared != 0) text += "mov.u32 S, shared;\n";
  std::set<std::string> ins, outs;
  for (const CaseRun& run : c.runs) {
    for (const auto& [name, v] : run.in) ins.insert(name);
    for (const auto& [name, v] : run.out) outs.insert(name);
  }
  for (const std::string& name : ins) {
    const Kind& kind = kind_of(kInputs, name);
    const size_t at = offset_of(kInputs, name);
    if (kind.letter == 'p') {
      text += fmt::format("ld.global.b32 wtmp, [IN+{}];\nsetp.ne.b32 {}, wtmp, 0;\n", at, name);
    } else {
      text += fmt::format("ld.global.{} {}, [IN+{}];\n", kind.type, name, at);
    }
  }
  text += c.body;
  for (const std::string& name : outs) {
    const Kind& kind = kind_of(kOutputs, name);
    const size_t at = offset_of(kOutputs, name);
    if (kind.letter == 'q') {
      text += fmt::format("selp.b32 wtmp, 1, 0, {};\nst.global.b32 [OUT+{}], wtmp;\n", name, at);
    } else {
      text += fmt::format("st.global.{} [OUT+{}], {};\n", kind.type, at, name);
    }
  }
  return text + "ret;\n}\n";
}

// "u8 64 8 box 32 4 swizzle 1": element type, dimensions, box, swizzle mode; strides follow from
// the dimensions.
TensorMap map_of(const std::string& words, uint64_t address) {
  TensorMap map;
  map.address = address;
  std::istringstream text(words);
  std::string type, word;
  text >> type;
  map.element = type == "f32"   ? TensorElement::kF32
                : type == "f16" ? TensorElement::kF16
                : type == "u32" ? TensorElement::kU32
                                : TensorElement::kU8;
  std::vector<uint64_t> dims, box;
  std::vector<uint64_t>* to = &dims;
  while (text >> word) {
    if (word == "box") {
      to = &box;
    } else if (word == "swizzle") {
      int mode = 0;
      text >> mode;
      map.swizzle = static_cast<SwizzleMode>(mode);
    } else {
      to->push_back(std::stoull(word));
    }
  }
  map.rank = static_cast<uint32_t>(dims.size());
  uint64_t stride = unit_of(map.element).global_bytes;
  for (size_t i = 0; i < dims.size(); ++i) {
    map.dims[i] = dims[i];
    map.box[i] = static_cast<uint32_t>(box[i]);
    stride *= dims[i];
    if (i < 4) map.strides[i] = stride;
  }
  return map;
}

void expect_run(const Case& c, const Program& program, const CaseRun& run) {
  const size_t threads = size_t{c.threads} * c.ctas;
  std::vector<std::byte> in(threads * kThreadBytes), out(threads * kThreadBytes);
  alignas(1024) static std::byte memory[kMemoryBytes];
  std::fill(std::begin(memory), std::end(memory), std::byte{0});
  for (const auto& [offset, words] : run.memory_in) {
    for (size_t i = 0; i < words.size(); ++i) {
      const auto word = static_cast<uint32_t>(words[i]);
      std::memcpy(memory + offset + 4 * i, &word, 4);
    }
  }
  for (const auto& [name, values] : run.in) {
    for (size_t t = 0; t < threads; ++t) {
      const uint64_t v = values[std::min(t, values.size() - 1)];
      std::memcpy(in.data() + t * kThreadBytes + offset_of(kInputs, name), &v,
                  kind_of(kInputs, name).bytes);
    }
  }
  std::vector<std::byte> parameters(24 + 8 * 5 + 128);
  parameters.resize(192);
  const void* pointers[3] = {in.data(), out.data(), memory};
  std::memcpy(parameters.data(), pointers, sizeof pointers);
  if (!c.map.empty()) {
    const EncodedMap map = encode_tensor_map(map_of(c.map, reinterpret_cast<uint64_t>(memory)));
    std::memcpy(parameters.data() + 64, map.data(), map.size());
  }
  Launch launch;
  launch.entry = "k";
  launch.grid = {c.ctas, 1, 1};
  launch.block = {c.threads, 1, 1};
  launch.cluster = {c.cluster, 1, 1};
  launch.parameters = parameters;
  launch.memory = {
      {in.data(),  in.size(),    true, false, true },
      {out.data(), out.size(),   true, true,  false},
      {memory,     kMemoryBytes, true, true,  true }
  };
  Options options;
  options.strict = true;
  const Result<Report> report = sim::run(program, launch, options);
  ASSERT_TRUE(report.has_value()) << c.place << ": " << report.error().to_string() << c.body;
  for (const auto& [name, values] : run.out) {
    for (size_t t = 0; t < threads; ++t) {
      uint64_t found = 0;
      std::memcpy(&found, out.data() + t * kThreadBytes + offset_of(kOutputs, name),
                  kind_of(kOutputs, name).bytes);
      ASSERT_EQ(found, values[std::min(t, values.size() - 1)])
          << c.place << ": " << name << " of thread " << t << fmt::format(" is {:#x}\n", found)
          << c.body;
    }
  }
  for (const auto& [offset, words] : run.memory_out) {
    for (size_t i = 0; i < words.size(); ++i) {
      uint32_t found = 0;
      std::memcpy(&found, memory + offset + 4 * i, 4);
      ASSERT_EQ(found, words[i]) << c.place << ": memory at "
                                 << fmt::format("{:#x} is {:#x}\n", offset + 4 * i, found)
                                 << c.body;
    }
  }
}

TEST(InstructionCases, EveryRowOfTheTableIsExecutedToTheExpectedResult) {
  const ptx::InstructionTable& table = ptx::InstructionTable::get();
  std::set<size_t> executed;
  size_t runs = 0;
  const std::filesystem::path folder =
      std::filesystem::path(JITGEMM_SOURCE_DIR) / "tests/ptx/cases";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".case") continue;
    for (const Case& c : read_cases(entry.path())) {
      const std::string text = text_of(c);
      const Result<Program> program = Program::load(text);
      EXPECT_TRUE(program.has_value()) << c.place << ": " << program.error().to_string() << "\n"
                                       << c.body;
      if (!program) continue;
      for (const ptx::Function& function : program->decoded().module.functions) {
        for (const ptx::Instruction& i : function.instructions) executed.insert(i.form);
      }
      for (const CaseRun& run : c.runs) {
        expect_run(c, *program, run);
        ++runs;
      }
    }
  }
  for (size_t i = 0; i < table.size(); ++i) {
    const ptx::FormRow& row = *table.form(i).row;
    if (row.unsupported[0] != '\0') {
      EXPECT_FALSE(executed.contains(i)) << row.syntax << " is executed and marked as refused";
    } else {
      EXPECT_TRUE(executed.contains(i))
          << "no case for " << row.syntax << " (" << row.section << ")";
    }
  }
  EXPECT_GT(runs, 1000u);
}

}  // namespace
}  // namespace jitgemm::sim
