// SPDX-License-Identifier: Apache-2.0
// Running small PTX kernels in tests: parameters from values and pointers, memory from vectors.
#pragma once

#include "fmt/format.h"
#include "sim/simulator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace jitgemm::sim {

// A module around the body of one entry `k`. Registers of every kind are declared in plenty.
inline std::string kernel_text(const std::string& parameters, const std::string& body,
                               const std::string& globals = "") {
  return ".version 8.6\n.target sm_100a\n.address_size 64\n" + globals + "\n.visible .entry k(" +
         parameters +
         ")\n{\n.reg .pred %p<20>;\n.reg .b16 %h<20>;\n.reg .b32 %r<60>;\n.reg .b64 %rd<40>;\n.reg "
         ".f32 %f<40>;\n.reg .f64 %fd<20>;\n" +
         body + "\n}\n";
}

class Runner {
 public:
  explicit Runner(std::string text) : text_(std::move(text)) {
    launch.entry = "k";
    options.strict = true;
  }

  template <typename T>
  Runner& value(T v) {
    static_assert(std::is_trivially_copyable_v<T>);
    const size_t at = (parameters_.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    parameters_.resize(at + sizeof(T));
    std::memcpy(parameters_.data() + at, &v, sizeof(T));
    return *this;
  }
  template <typename T>
  Runner& buffer(std::vector<T>& v, bool initialised = true, bool writable = true) {
    launch.memory.push_back({v.data(), v.size() * sizeof(T), true, writable, initialised});
    return value(static_cast<const void*>(v.data()));
  }
  Runner& grid(uint32_t x, uint32_t block, uint32_t cluster = 1) {
    launch.grid = {x, 1, 1};
    launch.block = {block, 1, 1};
    launch.cluster = {cluster, 1, 1};
    return *this;
  }
  Result<Report> run() {
    Result<Program> program = Program::load(text_);
    if (!program) return program.error();
    return run(*program);
  }
  Result<Report> run(const Program& program) {
    launch.parameters = parameters_;
    return sim::run(program, launch, options);
  }
  // The message of the fault, or "" after a clean run, or the error's text with its name.
  std::string outcome() {
    const Result<Report> r = run();
    if (r) return "";
    return r.error().code() == StatusCode::kSimulatorFault ? r.error().message()
                                                           : r.error().to_string();
  }

  Launch launch;
  Options options;

 private:
  std::string text_;
  std::vector<std::byte> parameters_;
};

inline void expect_clean(Runner& runner) {
  const Result<Report> r = runner.run();
  EXPECT_TRUE(r.has_value()) << (r ? "" : r.error().to_string());
}

}  // namespace jitgemm::sim
