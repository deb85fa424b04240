// SPDX-License-Identifier: Apache-2.0
#include "verify/safetensors.h"

#include "support/strict_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

namespace jitgemm {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own implementation
constexpr const char* kMetadata = "__metadata__";

// Every type that the format knows, with its width; some are narrower than a byte.
struct FileType {
  std::string_view name;
  uint64_t bits;
};
constexpr FileType kFileTypes[] = {
    {"BOOL",    8 },
    {"F4",      4 },
    {"F6_E2M3", 6 },
    {"F6_E3M2", 6 },
    {"U8",      8 },
    {"I8",      8 },
    {"F8_E5M2", 8 },
    {"F8_E4M3", 8 },
    {"F8_E8M0", 8 },
    {"I16",     16},
    {"U16",     16},
    {"F16",     16},
    {"BF16",    16},
    {"I32",     32},
    {"U32",     32},
    {"F32",     32},
    {"C64",     64},
    {"F64",     64},
    {"I64",     64},
    {"U64",     64},
};

const FileType* find_file_type(std::string_view name) {
  for (const FileType& type : kFileTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

// Spelling counts in a file, so the lenient parse_dtype must not see what the table refuses.
std::optional<DType> dtype_of_file_type(std::string_view name) {
  const std::optional<DType> dtype = parse_dtype(name);
  if (dtype && dtype_info(*dtype).name == name) return dtype;
  return std::nullopt;
}

Status corrupt_entry(std::string_view name, std::string_view what) {
  return corrupt_data(fmt::format("tensor {}: {}", printable(name), what));
}

bool multiply_within(uint64_t a, uint64_t b, uint64_t limit, uint64_t& product) {
  if (a != 0 && b > limit / a) return false;
  product = a * b;
  return true;
}

Status parse_shape(const std::string& name, const Json& value, const FileType& type,
                   SafetensorsEntry& entry) {
  if (!value.is_array()) return corrupt_entry(name, "shape: expected an array");
  uint64_t bits = type.bits;
  bool empty = false;
  for (const Json& extent : value) {
    if (!extent.is_number_unsigned()) {
      return corrupt_entry(name, "shape: expected integers >= 0");
    }
    const auto size = extent.get<uint64_t>();
    if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return corrupt_entry(name, fmt::format("shape: {} exceeds 2^63 - 1", size));
    }
    empty = empty || size == 0;
    entry.shape.push_back(static_cast<int64_t>(size));
    // Overflow counts even when another extent is zero: partial products must be usable.
    if (!multiply_within(bits, std::max<uint64_t>(size, 1),
                         static_cast<uint64_t>(std::numeric_limits<int64_t>::max()), bits)) {
      return corrupt_entry(name, "shape: the size overflows");
    }
  }
  if (empty) bits = 0;
  if (bits % 8 != 0) return corrupt_entry(name, "shape: not a whole number of bytes");
  if (entry.end - entry.begin != bits / 8) {
    return corrupt_entry(name, fmt::format("data_offsets: expected {} bytes from dtype and shape, "
                                           "found {}",
                                           bits / 8, entry.end - entry.begin));
  }
  return ok_status();
}

Status parse_offsets(const std::string& name, const Json& value, uint64_t data_bytes,
                     SafetensorsEntry& entry) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() ||
      !value[1].is_number_unsigned()) {
    return corrupt_entry(name, "data_offsets: expected two integers >= 0");
  }
  entry.begin = value[0].get<uint64_t>();
  entry.end = value[1].get<uint64_t>();
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return corrupt_entry(
        name, fmt::format("data_offsets: expected begin <= end <= {}, found {}, {}", data_bytes,
                          entry.begin, entry.end));
  }
  return ok_status();
}

Result<SafetensorsEntry> parse_entry(const std::string& name, const Json& value,
                                     uint64_t data_bytes) {
  if (!value.is_object()) return corrupt_entry(name, "expected an object");
  for (const auto& [key, unused] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return corrupt_entry(name, "unknown field " + printable(key));
    }
  }
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!value.contains(key)) return corrupt_entry(name, fmt::format("no field '{}'", key));
  }
  SafetensorsEntry entry;
  entry.name = name;
  if (!value["dtype"].is_string()) return corrupt_entry(name, "dtype: expected a string");
  entry.dtype_name = value["dtype"].get<std::string>();
  const FileType* type = find_file_type(entry.dtype_name);
  if (type == nullptr) return corrupt_entry(name, "unknown dtype " + printable(entry.dtype_name));
  entry.dtype = dtype_of_file_type(entry.dtype_name);
  JITGEMM_TRY(parse_offsets(name, value["data_offsets"], data_bytes, entry));
  JITGEMM_TRY(parse_shape(name, value["shape"], *type, entry));
  return entry;
}

Status parse_metadata(const Json& value, std::map<std::string, std::string>& metadata) {
  if (!value.is_object()) return corrupt_data("__metadata__: expected an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      return corrupt_data("__metadata__: " + printable(key) + ": expected a string");
    }
    metadata[key] = text.get<std::string>();
  }
  return ok_status();
}

Status check_coverage(std::vector<SafetensorsEntry>& entries, uint64_t data_bytes) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t covered = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != covered) {
      return corrupt_entry(
          entry.name, fmt::format("data_offsets: {}: expected begin {}, found {}",
                                  entry.begin < covered ? "overlap" : "gap", covered, entry.begin));
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    return corrupt_data(
        fmt::format("the tensors cover {} of {} bytes of data", covered, data_bytes));
  }
  return ok_status();
}

std::string last_error() {
  return std::strerror(errno);
}

// Exactly `size` bytes from `offset`; a shorter file is an error.
Status read_exactly(int descriptor, uint64_t offset, void* target, size_t size) {
  auto* bytes = static_cast<char*>(target);
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(descriptor, bytes + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("read: " + last_error());
    if (got == 0) return corrupt_data("the file ends early");
    done += static_cast<size_t>(got);
  }
  return ok_status();
}

Status write_exactly(int descriptor, const void* source, size_t size) {
  const auto* bytes = static_cast<const char*>(source);
  size_t done = 0;
  while (done < size) {
    const ssize_t put = ::write(descriptor, bytes + done, size - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return io_error("write: " + last_error());
    done += static_cast<size_t>(put);
  }
  return ok_status();
}

uint64_t read_little_endian(const unsigned char* bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | bytes[i];
  return value;
}

Status write_all(int descriptor, const std::string& header,
                 const std::vector<const TensorBytes*>& order) {
  unsigned char length[kLengthBytes];
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length[i] = static_cast<unsigned char>(header.size() >> (8 * i));
  }
  JITGEMM_TRY(write_exactly(descriptor, length, sizeof(length)));
  JITGEMM_TRY(write_exactly(descriptor, header.data(), header.size()));
  for (const TensorBytes* tensor : order) {
    JITGEMM_TRY(write_exactly(descriptor, tensor->bytes.data(), tensor->bytes.size()));
  }
  return ok_status();
}

Result<std::string> make_header(const std::vector<const TensorBytes*>& order,
                                const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t offset = 0;
  for (const TensorBytes* tensor : order) {
    if (tensor->name == kMetadata || header.contains(tensor->name)) {
      return invalid_argument("safetensors: name " + printable(tensor->name) + " is taken");
    }
    size_t expected = tensor->element_bytes;
    for (const int64_t extent : tensor->shape) expected *= static_cast<size_t>(extent);
    if (tensor->bytes.size() != expected) {
      return invalid_argument(fmt::format("safetensors: {}: expected {} bytes, found {}",
                                          printable(tensor->name), expected, tensor->bytes.size()));
    }
    header[tensor->name] = {
        {"dtype",        tensor->dtype_name         },
        {"shape",        tensor->shape              },
        {"data_offsets", {offset, offset + expected}}
    };
    offset += expected;
  }
  try {
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');  // data starts at a multiple of 8
    return text;
  } catch (const nlohmann::json::exception&) {
    return invalid_argument("safetensors: names and metadata must be UTF-8");
  }
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t data_bytes) {
  if (json.empty() || json.front() != '{') return corrupt_data("header: expected '{' first");
  // The deepest legal nesting is the header, a tensor and its shape.
  const auto parsed = parse_strict_json(json, 3);
  if (!parsed) return parsed.error().with_context("header");
  if (!parsed->is_object()) return corrupt_data("header: not a JSON object");
  SafetensorsHeader header;
  for (const auto& [name, value] : parsed->items()) {
    if (name == kMetadata) {
      JITGEMM_TRY(parse_metadata(value, header.metadata));
      continue;
    }
    JITGEMM_ASSIGN(SafetensorsEntry entry, parse_entry(name, value, data_bytes));
    header.entries.push_back(std::move(entry));
  }
  JITGEMM_TRY(check_coverage(header.entries, data_bytes));
  return header;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  // Opening a pipe would wait for its writer; what is no regular file is refused below.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return io_error(fmt::format("{}: {}", path, last_error()));
  SafetensorsFile file;
  file.path_ = path;
  file.descriptor_ = std::shared_ptr<const int>(new int(descriptor), [](const int* fd) {
    ::close(*fd);
    delete fd;
  });
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return io_error(fmt::format("{}: {}", path, last_error()));
  if (!S_ISREG(info.st_mode)) return io_error(path + ": not a regular file");
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size < kLengthBytes) {
    return corrupt_data(fmt::format("{}: {} bytes are too few for a header", path, size));
  }
  unsigned char length_bytes[kLengthBytes];
  JITGEMM_TRY(read_exactly(descriptor, 0, length_bytes, kLengthBytes).with_context(path));
  const uint64_t length = read_little_endian(length_bytes);
  if (length > kMaxHeaderBytes || length > size - kLengthBytes) {
    return corrupt_data(fmt::format("{}: header of {} bytes: expected at most {}", path, length,
                                    std::min(kMaxHeaderBytes, size - kLengthBytes)));
  }
  std::string json(length, '\0');
  JITGEMM_TRY(read_exactly(descriptor, kLengthBytes, json.data(), json.size()).with_context(path));
  file.data_start_ = kLengthBytes + length;
  auto header = parse_safetensors_header(json, size - file.data_start_);
  if (!header) return header.error().with_context(path);
  file.header_ = std::move(*header);
  return file;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  for (const SafetensorsEntry& entry : header_.entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Status SafetensorsFile::no_tensor(std::string_view name) const {
  std::string present;
  for (size_t i = 0; i < std::min<size_t>(header_.entries.size(), 8); ++i) {
    present += (i == 0 ? "" : ", ") + printable(header_.entries[i].name);
  }
  if (header_.entries.size() > 8) present += ", ...";
  return invalid_argument(fmt::format("{}: no tensor {}; it has {}", path_, printable(name),
                                      present.empty() ? "none" : present));
}

Result<std::vector<std::byte>> SafetensorsFile::load_bytes(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) return no_tensor(name);
  std::vector<std::byte> bytes(entry->end - entry->begin);
  JITGEMM_TRY(read_exactly(*descriptor_, data_start_ + entry->begin, bytes.data(), bytes.size())
                  .with_context(path_));
  return bytes;
}

Result<HostTensor> SafetensorsFile::load(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) return no_tensor(name);
  if (!entry->dtype) {
    return unsupported(
        fmt::format("{}: tensor {} has dtype {}", path_, printable(name), entry->dtype_name));
  }
  HostTensor tensor = make_host_tensor(entry->name, *entry->dtype, entry->shape);
  JITGEMM_TRY(read_exactly(*descriptor_, data_start_ + entry->begin, tensor.bytes.data(),
                           tensor.bytes.size())
                  .with_context(path_));
  return tensor;
}

Status write_safetensors(const std::string& path, const std::vector<HostTensor>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::vector<TensorBytes> views;
  for (const HostTensor& tensor : tensors) {
    const DTypeInfo& info = dtype_info(tensor.dtype);
    views.push_back({tensor.name, std::string(info.name), static_cast<uint32_t>(info.bytes),
                     tensor.shape, tensor.bytes});
  }
  return write_safetensors(path, views, metadata);
}

Status write_safetensors(const std::string& path, const std::vector<TensorBytes>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorBytes*> order;
  order.reserve(tensors.size());
  for (const TensorBytes& tensor : tensors) order.push_back(&tensor);
  // Wide elements first, so that every tensor is aligned to its own element.
  std::stable_sort(order.begin(), order.end(), [](const TensorBytes* a, const TensorBytes* b) {
    return a->element_bytes > b->element_bytes;
  });
  JITGEMM_ASSIGN(const std::string header, make_header(order, metadata));
  struct stat old {};
  // Renaming over a device would replace it.
  if (::stat(path.c_str(), &old) == 0 && !S_ISREG(old.st_mode))
    return io_error(path + ": not a regular file");
  const std::string partial = fmt::format("{}.partial.{}", path, ::getpid());
  const int descriptor = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return io_error(fmt::format("{}: {}", partial, last_error()));
  Status status = write_all(descriptor, header, order);
  if (::close(descriptor) != 0 && status.ok()) status = io_error("close: " + last_error());
  if (status.ok() && ::rename(partial.c_str(), path.c_str()) != 0) {
    status = io_error("rename: " + last_error());
  }
  if (!status.ok()) ::unlink(partial.c_str());
  return status.with_context(path);
}

}  // namespace jitgemm
