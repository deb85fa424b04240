// SPDX-License-Identifier: Apache-2.0
// What is to be run, as plain values: buffers and what they hold, tensor maps, launches in sequence
// with their parameters, options. Made from JSON by launch_json.h or by a program; executed by
// kernel_run.h. It knows no kernel: parameters are checked against an entry only when it runs.
#pragma once

#include "sim/models_tensor_map.h"
#include "sim/simulator.h"
#include "simrun/element_type.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm::simrun {

// A value at a place of a parameter or of a buffer.
struct FieldDescription {
  enum class Kind : uint8_t { kBytes, kBuffer, kTensorMap };
  std::string path;  // in the description, for messages
  uint64_t at = 0;   // offset in the parameter or the buffer
  Kind kind = Kind::kBytes;
  std::vector<std::byte> bytes;  // kBytes
  size_t index = 0;              // of the buffer or tensor map
  uint64_t offset = 0;           // kBuffer: added to the buffer's address

  uint64_t size() const;  // 8 for an address, 128 for a tensor map
};

// Where the elements of a buffer come from.
struct ContentDescription {
  enum class Kind : uint8_t {
    kNone,         // nothing was written there
    kFile,         // raw bytes
    kSafetensors,  // a tensor of a file
    kValues,       // one for each element
    kValue,        // one for all
    kIota,         // start, start + step, ...
    kRandom,       // uniform in [low, high)
    kFields,       // addresses, tensor maps, scalars at offsets; zero elsewhere
  };
  std::string path;
  Kind kind = Kind::kNone;
  std::string file, tensor;
  std::vector<uint64_t> values;  // bits
  double start = 0, step = 1;    // kIota; kRandom: low, high
  uint64_t seed = 0;
  std::vector<FieldDescription> fields;
};

struct OutputDescription {
  std::string file;
  std::string tensor;  // of a safetensors file; empty: raw bytes
};

// What a buffer has to hold after the last launch.
struct ExpectationDescription {
  ContentDescription content;
  // A found value may differ by max_abs + max_rel * |expected|. Both 0: the bits must be equal.
  double max_abs = 0, max_rel = 0;
};

enum class BufferAccess : uint8_t {
  kIn,     // the kernel may read it
  kOut,    // may write it, and read where it has written
  kInOut,  // may do both
};

struct BufferDescription {
  std::string path, name;
  const ElementType* type = nullptr;
  std::vector<uint64_t> shape;
  uint64_t bytes = 0;
  BufferAccess access = BufferAccess::kInOut;
  ContentDescription content;
  std::optional<OutputDescription> output;
  std::optional<ExpectationDescription> expect;
};

struct TensorMapDescription {
  std::string path, name;
  size_t buffer = 0;
  uint64_t offset = 0;  // bytes into the buffer
  sim::TensorMap map;   // its address is set when the buffer has one
};

struct ParameterDescription {
  std::string path;
  std::string name;                      // of the entry's parameter; empty: not checked
  std::vector<FieldDescription> fields;  // one at 0, unless it is a struct
  bool is_struct = false;                // bytes that no field covers are zero
};

struct LaunchDescription {
  std::string path, entry;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  std::array<uint32_t, 3> cluster = {1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  bool programmatic_dependent = false;
  std::vector<ParameterDescription> parameters;  // in the order of the entry's
};

struct RunOptions {
  sim::Options simulator;
  std::optional<sim::Numerics> numerics;  // none: hopper for sm_90a, exact for others
  // Bytes of all buffers and, apart from them, of the simulator's state.
  uint64_t memory_limit = uint64_t{8} << 30;
  std::string trace_file;  // empty: no trace
  // Gets what kernels print, as they print it. The report has it, too.
  std::function<void(std::string_view text)> print = {};
};

// "exact", "hopper" or "blackwell".
std::optional<sim::Numerics> parse_numerics(std::string_view word);

struct RunDescription {
  std::vector<BufferDescription> buffers;
  std::vector<TensorMapDescription> tensor_maps;
  std::vector<LaunchDescription> launches;
  RunOptions options;
};

}  // namespace jitgemm::simrun
