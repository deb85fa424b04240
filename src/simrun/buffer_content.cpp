// SPDX-License-Identifier: Apache-2.0
#include "simrun/buffer_content.h"

#include "simrun/named_file.h"
#include "support/filesystem.h"
#include "support/strict_json.h"
#include "verify/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

namespace jitgemm::simrun {
namespace {

// splitmix64: the same numbers everywhere.
uint64_t next_random(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t z = state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

void put(const ElementType& type, std::span<std::byte> bytes, uint64_t i, uint64_t bits) {
  std::memcpy(bytes.data() + i * type.bytes, &bits, type.bytes);
}

Status fill_from_tensor(const ContentDescription& content, const BufferDescription& buffer,
                        const std::string& folder, std::span<std::byte> bytes) {
  auto file = SafetensorsFile::open(path_in(folder, content.file));
  if (!file) return file.error().with_context(content.path);
  auto tensor = file->load_bytes(content.tensor);
  if (!tensor) return tensor.error().with_context(content.path);
  const SafetensorsEntry& entry = *file->find(content.tensor);
  if (entry.dtype_name != buffer.type->name) {
    return invalid_argument(fmt::format("{}: expected a tensor of {}, found {}", content.path,
                                        buffer.type->name, entry.dtype_name));
  }
  if (tensor->size() != bytes.size()) {
    return invalid_argument(fmt::format("{}: expected a tensor of {} bytes, found {}", content.path,
                                        bytes.size(), tensor->size()));
  }
  std::copy(tensor->begin(), tensor->end(), bytes.begin());
  return ok_status();
}

Status fill_from_file(const ContentDescription& content, const std::string& folder,
                      std::span<std::byte> bytes) {
  const std::string path = path_in(folder, content.file);
  std::error_code code;
  // Asked first, so that a device or a wrong file is not read.
  const uintmax_t size = std::filesystem::file_size(path, code);
  if (code) return io_error(fmt::format("{}: {}: {}", content.path, path, code.message()));
  if (size != bytes.size()) {
    return invalid_argument(
        fmt::format("{}: expected a file of {} bytes, found {}", content.path, bytes.size(), size));
  }
  auto text = read_file(path);
  if (!text) return text.error().with_context(content.path);
  if (text->size() != bytes.size()) {
    return corrupt_data(fmt::format("{}: {}: its size changes", content.path, path));
  }
  std::memcpy(bytes.data(), text->data(), text->size());
  return ok_status();
}

Status put_number(const ContentDescription& content, const ElementType& type,
                  std::span<std::byte> bytes, uint64_t i, double value) {
  const std::optional<uint64_t> bits = encode(type, value);
  if (!bits) {
    return invalid_argument(fmt::format("{}: expected values of {}, found {} for element {}",
                                        content.path, type.name, value, i));
  }
  put(type, bytes, i, *bits);
  return ok_status();
}

}  // namespace

std::string path_in(const std::string& folder, const std::string& file) {
  return folder.empty() || file.starts_with('/') ? file : folder + "/" + file;
}

uint64_t element_bits(const ElementType& type, std::span<const std::byte> bytes, uint64_t i) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + i * type.bytes, type.bytes);
  return bits;
}

Status fill_content(const ContentDescription& content, const BufferDescription& buffer,
                    const std::string& folder, std::span<std::byte> bytes) {
  using Kind = ContentDescription::Kind;
  const ElementType& type = *buffer.type;
  const uint64_t count = bytes.size() / type.bytes;
  switch (content.kind) {
    case Kind::kNone: return ok_status();
    case Kind::kFile: return fill_from_file(content, folder, bytes);
    case Kind::kSafetensors: return fill_from_tensor(content, buffer, folder, bytes);
    case Kind::kValues:
      for (uint64_t i = 0; i < count; ++i) put(type, bytes, i, content.values[i]);
      return ok_status();
    case Kind::kValue:
      for (uint64_t i = 0; i < count; ++i) put(type, bytes, i, content.values[0]);
      return ok_status();
    case Kind::kIota:
      for (uint64_t i = 0; i < count; ++i) {
        JITGEMM_TRY(put_number(content, type, bytes, i,
                               content.start + content.step * static_cast<double>(i)));
      }
      return ok_status();
    case Kind::kRandom: {
      uint64_t state = content.seed;
      const double range = content.step - content.start;
      for (uint64_t i = 0; i < count; ++i) {
        const double unit = static_cast<double>(next_random(state) >> 11) * 0x1p-53;
        double value = content.start + range * unit;
        if (type.kind != ElementKind::kFloat) value = std::floor(value);
        JITGEMM_TRY(put_number(content, type, bytes, i, value));
      }
      return ok_status();
    }
    case Kind::kFields: std::fill(bytes.begin(), bytes.end(), std::byte{0}); return ok_status();
  }
  return ok_status();
}

std::string compare_content(const ExpectationDescription& expectation,
                            const BufferDescription& buffer, std::span<const std::byte> found,
                            std::span<const std::byte> expected) {
  const ElementType& type = *buffer.type;
  const uint64_t count = found.size() / type.bytes;
  uint64_t wrong = 0, first = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t f = element_bits(type, found, i), e = element_bits(type, expected, i);
    if (f == e) continue;
    const double fv = decode(type, f), ev = decode(type, e);
    const double allowed = expectation.max_abs + expectation.max_rel * std::fabs(ev);
    if (allowed > 0 && std::fabs(fv - ev) <= allowed) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return fmt::format("buffer {}: {} of {} elements differ; element {}: expected {}, found {}",
                     printable(buffer.name), wrong, count, first,
                     format_element(type, element_bits(type, expected, first)),
                     format_element(type, element_bits(type, found, first)));
}

Status check_outputs(std::span<const BufferDescription> buffers, const std::string& folder) {
  std::map<std::string, const BufferDescription*> files;
  std::set<std::pair<std::string, std::string>> tensors;
  for (const BufferDescription& buffer : buffers) {
    if (!buffer.output) continue;
    const OutputDescription& output = *buffer.output;
    const std::string where = buffer.path + ".output";
    const std::string path = path_in(folder, output.file);
    JITGEMM_TRY(check_target(path, !output.tensor.empty()).with_context(where));
    const auto [other, first] =
        files.emplace(std::filesystem::path(path).lexically_normal().string(), &buffer);
    const bool together = !output.tensor.empty() && !other->second->output->tensor.empty();
    if ((!first && !together) || !tensors.emplace(other->first, output.tensor).second) {
      return invalid_argument(fmt::format(
          "{}: expected a place of its own, found that of {}.output", where, other->second->path));
    }
  }
  return ok_status();
}

Status write_outputs(std::span<const BufferDescription> buffers,
                     std::span<const std::span<const std::byte>> contents,
                     const std::string& folder) {
  std::map<std::string, std::vector<TensorBytes>> tensors;  // by file
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].output) continue;
    const OutputDescription& output = *buffers[i].output;
    const std::string path = path_in(folder, output.file);
    if (output.tensor.empty()) {
      auto file = create_file(path);
      if (!file) return file.error().with_context(buffers[i].path + ".output");
      std::fwrite(contents[i].data(), 1, contents[i].size(), file->get());
      JITGEMM_TRY(finish_file(std::move(*file), path).with_context(buffers[i].path + ".output"));
      continue;
    }
    std::string_view dtype = buffers[i].type->name;
    if (dtype == "B8") dtype = "U8";
    if (dtype == "B16") dtype = "U16";
    if (dtype == "B32") dtype = "U32";
    if (dtype == "B64") dtype = "U64";
    tensors[path].push_back({output.tensor, std::string(dtype), buffers[i].type->bytes,
                             std::vector<int64_t>(buffers[i].shape.begin(), buffers[i].shape.end()),
                             contents[i]});
  }
  for (const auto& [path, list] : tensors) JITGEMM_TRY(write_safetensors(path, list));
  return ok_status();
}

}  // namespace jitgemm::simrun
