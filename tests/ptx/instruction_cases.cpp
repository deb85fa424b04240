// SPDX-License-Identifier: Apache-2.0
#include "ptx/instruction_cases.h"

#include "support/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <stdexcept>

namespace jitgemm::ptx_cases {
namespace {

constexpr size_t kMapOffset = 64;  // of the map in the parameters
constexpr size_t kParameterBytes = 192;

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

std::vector<Case> read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  Case current;
  uint32_t number = 0;
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
    if (current.line == 0) {
      current.line = number;
      current.file = path.filename().string();
    }
    current.block += line + "\n";
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
    } else if (first == "within") {
      words >> current.within;
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

// What stands before the case's own lines.
std::string text_before(const Case& c, std::string_view target) {
  std::string text =
      fmt::format(".version 9.0\n.target {}\n.address_size 64\n{}", target, c.globals);
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
  std::set<std::string> ins;
  for (const CaseRun& run : c.runs) {
    for (const auto& [name, v] : run.in) ins.insert(name);
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
  return text;
}

// "u8 64 8 box 32 4 swizzle 1": element type, dimensions, box, swizzle mode; strides follow from
// the dimensions. "nan": fills with NaN. "f16 8 5 3 im2col 8 4 lower -1 upper -1 step 2": channels
// and pixels, corners, and every how many pixels.
sim::TensorMap map_of(const std::string& words, uint64_t address) {
  sim::TensorMap map;
  map.address = address;
  std::istringstream text(words);
  std::string type, word;
  text >> type;
  map.element = type == "f32"       ? sim::TensorElement::kF32
                : type == "f16"     ? sim::TensorElement::kF16
                : type == "u32"     ? sim::TensorElement::kU32
                : type == "f32ftz"  ? sim::TensorElement::kF32Ftz
                : type == "tf32"    ? sim::TensorElement::kTf32
                : type == "tf32ftz" ? sim::TensorElement::kTf32Ftz
                                    : sim::TensorElement::kU8;
  std::vector<uint64_t> dims, box;
  std::vector<uint64_t>* to = &dims;
  while (text >> word) {
    if (word == "box") {
      to = &box;
    } else if (word == "im2col") {
      to = &box;
      map.im2col = true;
    } else if (word == "lower" || word == "upper") {
      for (size_t i = 0; i + 2 < dims.size(); ++i) {
        int corner = 0;
        text >> corner;
        (word == "lower" ? map.lower_corner : map.upper_corner)[i] = static_cast<int16_t>(corner);
      }
    } else if (word == "step") {
      for (size_t i = 0; i + 2 < dims.size(); ++i) text >> map.element_strides[i + 1];
    } else if (word == "nan") {
      map.nan_fill = true;
    } else if (word == "swizzle") {
      int mode = 0;
      text >> mode;
      map.swizzle = static_cast<sim::SwizzleMode>(mode);
    } else {
      to->push_back(std::stoull(word));
    }
  }
  map.rank = static_cast<uint32_t>(dims.size());
  uint64_t stride = sim::unit_of(map.element).global_bytes;
  for (size_t i = 0; i < dims.size(); ++i) {
    map.dims[i] = dims[i];
    map.box[i] = i < box.size() ? static_cast<uint32_t>(box[i]) : 1;
    stride *= dims[i];
    if (i < 4) map.strides[i] = stride;
  }
  return map;
}

// Element i of a thread's values, or the one for all.
uint64_t value_for(const Values& values, size_t thread) {
  return values[std::min(thread, values.size() - 1)];
}

}  // namespace

std::string Case::place() const {
  return fmt::format("{}:{}", file, line);
}

std::vector<Case> read_cases(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".case") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Case> cases;
  for (const auto& path : paths) {
    for (Case& c : read_file(path)) cases.push_back(std::move(c));
  }
  return cases;
}

std::string case_text(const Case& c, std::string_view target) {
  std::string text = text_before(c, target);
  std::set<std::string> outs;
  for (const CaseRun& run : c.runs) {
    for (const auto& [name, v] : run.out) outs.insert(name);
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

std::string_view case_target(const Case& c) {
  for (const char* target : {"sm_100a", "sm_90a", "sm_103a"}) {
    if (sim::Program::load(case_text(c, target))) return target;
  }
  return "sm_120a";
}

std::pair<uint32_t, uint32_t> body_lines(const Case& c, std::string_view target) {
  const auto lines = [](const std::string& text) {
    return static_cast<uint32_t>(std::count(text.begin(), text.end(), '\n'));
  };
  const uint32_t first = lines(text_before(c, target)) + 1;
  return {first, first + lines(c.body) - 1};
}

std::string case_digest(const Case& c, std::string_view target) {
  return to_hex(sha256(fmt::format("case\n{}text\n{}", c.block, case_text(c, target))));
}

CaseBytes initial_bytes(const Case& c, const CaseRun& run) {
  const size_t threads = size_t{c.threads} * c.ctas;
  CaseBytes bytes{std::vector<std::byte>(threads * kThreadBytes),
                  std::vector<std::byte>(threads * kThreadBytes),
                  std::vector<std::byte>(kMemoryBytes)};
  for (const auto& [offset, words] : run.memory_in) {
    for (size_t i = 0; i < words.size(); ++i) {
      const auto word = static_cast<uint32_t>(words[i]);
      std::memcpy(bytes.memory.data() + offset + 4 * i, &word, 4);
    }
  }
  for (const auto& [name, values] : run.in) {
    for (size_t t = 0; t < threads; ++t) {
      const uint64_t v = value_for(values, t);
      std::memcpy(bytes.in.data() + t * kThreadBytes + offset_of(kInputs, name), &v,
                  kind_of(kInputs, name).bytes);
    }
  }
  return bytes;
}

sim::TensorMap case_map(const Case& c, uint64_t memory_address) {
  return map_of(c.map, memory_address);
}

std::vector<std::byte> case_parameters(uint64_t in, uint64_t out, uint64_t memory,
                                       const void* encoded_map) {
  std::vector<std::byte> parameters(kParameterBytes);
  const uint64_t addresses[3] = {in, out, memory};
  std::memcpy(parameters.data(), addresses, sizeof(addresses));
  if (encoded_map != nullptr) std::memcpy(parameters.data() + kMapOffset, encoded_map, 128);
  return parameters;
}

Result<sim::Report> run_on_simulator(const Case& c, const sim::Program& program,
                                     const sim::Options& options, CaseBytes& bytes) {
  // Tensor copies and maps want more alignment than a vector has.
  constexpr size_t kAlignment = 1024;
  std::vector<std::byte> room(kMemoryBytes + kAlignment);
  std::byte* memory =
      room.data() +
      (kAlignment - reinterpret_cast<uintptr_t>(room.data()) % kAlignment) % kAlignment;
  std::memcpy(memory, bytes.memory.data(), kMemoryBytes);
  const auto address = [](const void* p) { return reinterpret_cast<uint64_t>(p); };
  sim::EncodedMap map{};
  if (!c.map.empty()) map = sim::encode_tensor_map(case_map(c, address(memory)));
  const std::vector<std::byte> parameters =
      case_parameters(address(bytes.in.data()), address(bytes.out.data()), address(memory),
                      c.map.empty() ? nullptr : map.data());
  sim::Launch launch;
  launch.entry = "k";
  launch.grid = {c.ctas, 1, 1};
  launch.block = {c.threads, 1, 1};
  launch.cluster = {c.cluster, 1, 1};
  launch.parameters = parameters;
  launch.memory = {
      {bytes.in.data(),  bytes.in.size(),  true, false, true },
      {bytes.out.data(), bytes.out.size(), true, true,  false},
      {memory,           kMemoryBytes,     true, true,  true }
  };
  Result<sim::Report> report = sim::run(program, launch, options);
  std::memcpy(bytes.memory.data(), memory, kMemoryBytes);
  return report;
}

std::string comparable_bytes(const Case& c, const CaseBytes& bytes) {
  std::string text;
  if (c.within == 0) text.assign(reinterpret_cast<const char*>(bytes.out.data()), bytes.out.size());
  if (c.body.find("tensormap.") == std::string::npos) {
    text.append(reinterpret_cast<const char*>(bytes.memory.data()), bytes.memory.size());
  }
  return text;
}

double greatest_distance(const Case& c, const CaseRun& run, const CaseBytes& found) {
  double greatest = 0;
  for (const auto& [name, values] : run.out) {
    if (name[0] != 'o') continue;
    for (size_t t = 0; t < size_t{c.threads} * c.ctas; ++t) {
      uint32_t v = 0;
      std::memcpy(&v, found.out.data() + t * kThreadBytes + offset_of(kOutputs, name), 4);
      const auto expected = static_cast<uint32_t>(value_for(values, t));
      if (v == expected) continue;  // infinities and NaN are compared as bits
      const double e = std::bit_cast<float>(expected);
      const double away = std::abs(std::bit_cast<float>(v) - e) / std::max(1.0, std::abs(e));
      greatest = away >= 0 ? std::max(greatest, away) : std::numeric_limits<double>::infinity();
    }
  }
  return greatest;
}

std::string difference(const Case& c, const CaseRun& run, const CaseBytes& found) {
  if (c.within != 0 && greatest_distance(c, run, found) <= std::ldexp(1.0, -c.within)) return "";
  const size_t threads = size_t{c.threads} * c.ctas;
  for (const auto& [name, values] : run.out) {
    for (size_t t = 0; t < threads; ++t) {
      uint64_t v = 0;
      std::memcpy(&v, found.out.data() + t * kThreadBytes + offset_of(kOutputs, name),
                  kind_of(kOutputs, name).bytes);
      if (v != value_for(values, t)) {
        return fmt::format("{} of thread {} is {:#x}, expected {:#x}", name, t, v,
                           value_for(values, t));
      }
    }
  }
  for (const auto& [offset, words] : run.memory_out) {
    for (size_t i = 0; i < words.size(); ++i) {
      uint32_t v = 0;
      std::memcpy(&v, found.memory.data() + offset + 4 * i, 4);
      if (v != words[i]) {
        return fmt::format("memory at {:#x} is {:#x}, expected {:#x}", offset + 4 * i, v, words[i]);
      }
    }
  }
  return "";
}

}  // namespace jitgemm::ptx_cases
