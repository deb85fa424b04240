// SPDX-License-Identifier: Apache-2.0
// Reading and writing safetensors files. A file is distrusted: its header, offsets, shapes and
// types are checked before anything is used, and a bad one is CORRUPT_DATA with the reason, never a
// crash.
//
//   file   = length (8 bytes, little-endian) header (length bytes of JSON) data
//   header = { NAME: {"dtype": D, "shape": [..], "data_offsets": [begin, end]}, ..,
//              "__metadata__": {KEY: TEXT, ..} }
//
// Offsets count from the start of data; the tensors cover data exactly, without gap or overlap.
#pragma once

#include "support/result.h"
#include "verify/host_tensor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm {

struct SafetensorsEntry {
  std::string name;
  std::string dtype_name;      // as the file spells it
  std::optional<DType> dtype;  // none for a legal type that is not one of ours, e.g. I64
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

// The JSON text alone; data_bytes is the size of what follows it in the file.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t data_bytes);

class SafetensorsFile {
 public:
  // Reads and checks the header; the file stays open and tensors are read when asked for.
  static Result<SafetensorsFile> open(const std::string& path);

  const SafetensorsHeader& header() const { return header_; }
  // Null when there is no tensor of that name.
  const SafetensorsEntry* find(std::string_view name) const;
  // INVALID_ARGUMENT naming what the file has when the name is not there; UNSUPPORTED for a dtype
  // that is not one of ours.
  Result<HostTensor> load(std::string_view name) const;
  // The bytes of a tensor of any dtype.
  Result<std::vector<std::byte>> load_bytes(std::string_view name) const;

 private:
  SafetensorsFile() = default;
  Status no_tensor(std::string_view name) const;

  std::string path_;
  std::shared_ptr<const int> descriptor_;
  uint64_t data_start_ = 0;
  SafetensorsHeader header_;
};

// A tensor of any dtype that the format knows; the bytes are the caller's.
struct TensorBytes {
  std::string name;
  std::string dtype_name;  // as the format spells it
  uint32_t element_bytes = 1;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

// Writes beside the target and renames, so that a failure leaves no partial file under its name.
Status write_safetensors(const std::string& path, const std::vector<HostTensor>& tensors,
                         const std::map<std::string, std::string>& metadata = {});
Status write_safetensors(const std::string& path, const std::vector<TensorBytes>& tensors,
                         const std::map<std::string, std::string>& metadata = {});

}  // namespace jitgemm
