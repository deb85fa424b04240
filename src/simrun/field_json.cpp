// SPDX-License-Identifier: Apache-2.0
#include "simrun/field_json.h"

#include "support/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace jitgemm::simrun {
namespace {

struct NamedElement {
  std::string_view name;
  sim::TensorElement element;
};
constexpr NamedElement kElements[] = {
    {"U8",            sim::TensorElement::kU8          },
    {"U16",           sim::TensorElement::kU16         },
    {"U32",           sim::TensorElement::kU32         },
    {"I32",           sim::TensorElement::kS32         },
    {"U64",           sim::TensorElement::kU64         },
    {"I64",           sim::TensorElement::kS64         },
    {"F16",           sim::TensorElement::kF16         },
    {"BF16",          sim::TensorElement::kBf16        },
    {"F32",           sim::TensorElement::kF32         },
    {"F64",           sim::TensorElement::kF64         },
    {"F32_FTZ",       sim::TensorElement::kF32Ftz      },
    {"TF32",          sim::TensorElement::kTf32        },
    {"TF32_FTZ",      sim::TensorElement::kTf32Ftz     },
    {"U4X16_ALIGN8",  sim::TensorElement::kU4x16Align8 },
    {"U4X16_ALIGN16", sim::TensorElement::kU4x16Align16},
    {"U6X16_ALIGN16", sim::TensorElement::kU6x16Align16},
};

struct NamedSwizzle {
  std::string_view name;
  sim::SwizzleMode mode;
};
constexpr NamedSwizzle kSwizzles[] = {
    {"none",                  sim::SwizzleMode::kNone             },
    {"32B",                   sim::SwizzleMode::k32B              },
    {"64B",                   sim::SwizzleMode::k64B              },
    {"128B",                  sim::SwizzleMode::k128B             },
    {"128B_atom_32B",         sim::SwizzleMode::k128BAtom32B      },
    {"128B_atom_32B_flip_8B", sim::SwizzleMode::k128BAtom32BFlip8B},
    {"128B_atom_64B",         sim::SwizzleMode::k128BAtom64B      },
};

template <typename Table>
std::string names_of(const Table& table) {
  std::string list;
  for (const auto& row : table) list += (list.empty() ? "" : ", ") + std::string(row.name);
  return list;
}

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

// The element type of a tensor map by its own name, or by the dtype of what it moves.
std::optional<sim::TensorElement> find_element(std::string_view name) {
  const std::string wanted = upper(std::string(name));
  for (const NamedElement& row : kElements) {
    if (row.name == wanted) return row.element;
  }
  const ElementType* type = find_element_type(wanted);
  if (type == nullptr) return std::nullopt;
  switch (type->bytes) {
    case 1: return sim::TensorElement::kU8;
    case 2: return sim::TensorElement::kU16;
    case 4: return sim::TensorElement::kU32;
    default: return sim::TensorElement::kU64;
  }
}

std::vector<std::byte> to_bytes(uint64_t bits, uint32_t count) {
  std::vector<std::byte> bytes(count);
  std::memcpy(bytes.data(), &bits, count);
  return bytes;
}

Result<std::vector<std::byte>> parse_hex(const JsonCursor& json) {
  JITGEMM_ASSIGN(const std::string text, json.text());
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    uint8_t value = 0;
    const char* first = text.data() + i;
    const char* last = text.data() + std::min(i + 2, text.size());
    const auto [end, error] = std::from_chars(first, last, value, 16);
    if (error != std::errc() || end != first + 2) return json.expected("pairs of hex digits");
    bytes.push_back(std::byte{value});
  }
  if (bytes.empty()) return json.expected("pairs of hex digits");
  return bytes;
}

// Array `name` of `count` integers, or what is there already.
template <typename Array>
Status parse_integers(const JsonCursor& map, std::string_view name, size_t count, uint64_t least,
                      uint64_t most, bool optional, Array& out) {
  const auto json = map.field(name);
  if (!json && optional) return ok_status();
  JITGEMM_ASSIGN(const JsonCursor array, map.required(name));
  JITGEMM_TRY(array.require_array());
  if (array.size() != count) return array.expected(fmt::format("an array of {} integers", count));
  for (size_t i = 0; i < count; ++i) {
    JITGEMM_ASSIGN(const uint64_t value, array.element(i).integer(least, most));
    out[i] = static_cast<typename Array::value_type>(value);
  }
  return ok_status();
}

// Im2col mode: corners of the box of pixels in W, H and D, and what a copy takes from it.
Status parse_im2col(const JsonCursor& json, sim::TensorMap& map) {
  if (map.rank < 3) return json.error("expected 3 to 5 dims beside im2col, found fewer");
  map.im2col = true;
  JITGEMM_TRY(json.require_object({"lower", "upper", "channels", "pixels"}));
  for (const bool lower : {true, false}) {
    JITGEMM_ASSIGN(const JsonCursor corner, json.required(lower ? "lower" : "upper"));
    JITGEMM_TRY(corner.require_array());
    if (corner.size() + 2 != map.rank)
      return corner.expected(fmt::format("an array of {} integers", map.rank - 2));
    for (size_t i = 0; i < corner.size(); ++i) {
      JITGEMM_ASSIGN(const int64_t value, corner.element(i).signed_integer(INT16_MIN, INT16_MAX));
      (lower ? map.lower_corner : map.upper_corner)[i] = static_cast<int16_t>(value);
    }
  }
  JITGEMM_ASSIGN(const JsonCursor channels, json.required("channels"));
  JITGEMM_ASSIGN(const JsonCursor pixels, json.required("pixels"));
  JITGEMM_ASSIGN(const uint64_t wide, channels.integer(1, 256));
  JITGEMM_ASSIGN(const uint64_t count, pixels.integer(1, 1024));
  map.box[0] = static_cast<uint32_t>(wide);
  map.box[1] = static_cast<uint32_t>(count);
  return ok_status();
}

// An optional word among a few.
Result<size_t> parse_choice(const JsonCursor& map, std::string_view name,
                            std::initializer_list<std::string_view> words) {
  const auto json = map.field(name);
  if (!json) return size_t{0};
  JITGEMM_ASSIGN(const std::string word, json->text());
  size_t index = 0;
  std::string list;
  for (const std::string_view known : words) {
    if (word == known) return index;
    list += (list.empty() ? "" : ", ") + std::string(known);
    ++index;
  }
  return json->expected("one of " + list);
}

}  // namespace

uint64_t FieldDescription::size() const {
  switch (kind) {
    case Kind::kBytes: return bytes.size();
    case Kind::kBuffer: return 8;
    case Kind::kTensorMap: return sizeof(sim::EncodedMap);
  }
  return 0;
}

Result<uint64_t> parse_element(const JsonCursor& json, const ElementType& type) {
  const nlohmann::json& value = json.json();
  std::optional<uint64_t> bits;
  if (value.is_number_unsigned()) {
    bits = encode_unsigned(type, value.get<uint64_t>());
  } else if (value.is_number_integer()) {
    bits = encode_signed(type, value.get<int64_t>());
  } else if (value.is_number_float()) {
    bits = encode(type, value.get<double>());
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.starts_with("0x")) {
      uint64_t code = 0;
      const char* last = text.data() + text.size();
      const auto [end, error] = std::from_chars(text.data() + 2, last, code, 16);
      const bool fits = type.bytes == 8 || code >> (8 * type.bytes) == 0;
      if (error == std::errc() && end == last && fits) bits = code;
    } else if (type.kind == ElementKind::kFloat) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (text == "nan") bits = encode(type, std::numeric_limits<double>::quiet_NaN());
      if (text == "inf") bits = encode(type, kInfinity);
      if (text == "-inf") bits = encode(type, -kInfinity);
    }
  }
  if (bits) return *bits;
  return json.expected(fmt::format("a value of {}", type.name));
}

Result<FieldDescription> parse_field(const JsonCursor& json, const NameTable& names,
                                     bool with_place) {
  FieldDescription field;
  field.path = json.path();
  if (!json.json().is_object()) return json.expected("an object");
  JsonCursor::Json rest = json.json();
  if (with_place) {
    JITGEMM_ASSIGN(const JsonCursor at, json.required("at"));
    JITGEMM_ASSIGN(field.at, at.integer(0, uint64_t{1} << 40));
    rest.erase("at");
  }
  const JsonCursor value(rest, json.path());
  if (const auto name = value.field("buffer")) {
    JITGEMM_TRY(value.require_object({"buffer", "offset"}));
    JITGEMM_ASSIGN(const std::string text, name->text());
    const auto found = names.buffers.find(text);
    if (found == names.buffers.end()) return name->expected("the name of a buffer");
    field.kind = FieldDescription::Kind::kBuffer;
    field.index = found->second.index;
    if (const auto offset = value.field("offset")) {
      JITGEMM_ASSIGN(field.offset, offset->integer(0, found->second.bytes));
    }
    return field;
  }
  if (const auto name = value.field("tensor_map")) {
    JITGEMM_TRY(value.require_object({"tensor_map"}));
    JITGEMM_ASSIGN(const std::string text, name->text());
    const auto found = names.tensor_maps.find(text);
    if (found == names.tensor_maps.end()) return name->expected("the name of a tensor map");
    field.kind = FieldDescription::Kind::kTensorMap;
    field.index = found->second;
    return field;
  }
  if (const auto hex = value.field("hex")) {
    JITGEMM_TRY(value.require_object({"hex"}));
    JITGEMM_ASSIGN(field.bytes, parse_hex(*hex));
    return field;
  }
  if (rest.size() == 1) {
    const std::string& key = rest.begin().key();
    if (const ElementType* type = find_element_type(key)) {
      JITGEMM_ASSIGN(const uint64_t bits, parse_element(*value.field(key), *type));
      field.bytes = to_bytes(bits, type->bytes);
      return field;
    }
  }
  std::string found;
  for (const auto& [key, unused] : rest.items()) {
    found += (found.empty() ? "" : ", ") + printable(key);
  }
  return json.error(fmt::format(
      "expected one of buffer, tensor_map, hex{}, or a scalar named by its type ({}), "
      "found {}",
      with_place ? "" : ", struct", element_type_list(), found.empty() ? "nothing" : found));
}

Result<std::vector<FieldDescription>> parse_fields(const JsonCursor& json, const NameTable& names,
                                                   uint64_t bytes) {
  JITGEMM_TRY(json.require_array());
  std::vector<FieldDescription> fields;
  for (size_t i = 0; i < json.size(); ++i) {
    JITGEMM_ASSIGN(FieldDescription field, parse_field(json.element(i), names, true));
    if (field.at > bytes || field.size() > bytes - field.at) {
      return json.element(i).error(fmt::format("expected to end within {} bytes, found {} + {}",
                                               bytes, field.at, field.size()));
    }
    fields.push_back(std::move(field));
  }
  std::vector<const FieldDescription*> sorted;
  sorted.reserve(fields.size());
  for (const FieldDescription& field : fields) sorted.push_back(&field);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->at < b->at; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->at < sorted[i - 1]->at + sorted[i - 1]->size()) {
      return invalid_argument(
          fmt::format("{}: expected a place of its own, found an overlap with {}", sorted[i]->path,
                      sorted[i - 1]->path));
    }
  }
  return fields;
}

Result<TensorMapDescription> parse_tensor_map(const JsonCursor& json, const NameTable& names) {
  JITGEMM_TRY(
      json.require_object({"buffer", "offset", "dtype", "dims", "strides", "box", "element_strides",
                           "swizzle", "interleave", "l2_promotion", "oob_fill", "im2col"}));
  TensorMapDescription description;
  description.path = json.path();
  sim::TensorMap& map = description.map;
  JITGEMM_ASSIGN(const JsonCursor name, json.required("buffer"));
  JITGEMM_ASSIGN(const std::string buffer_name, name.text());
  const auto buffer = names.buffers.find(buffer_name);
  if (buffer == names.buffers.end()) return name.expected("the name of a buffer");
  description.buffer = buffer->second.index;
  if (const auto offset = json.field("offset")) {
    JITGEMM_ASSIGN(description.offset, offset->integer(0, buffer->second.bytes));
  }
  std::string dtype(buffer->second.type->name);
  if (const auto field = json.field("dtype")) {
    JITGEMM_ASSIGN(dtype, field->text());
    if (!find_element(dtype)) return field->expected("a dtype or one of " + names_of(kElements));
  }
  map.element = *find_element(dtype);
  JITGEMM_ASSIGN(const JsonCursor dims, json.required("dims"));
  JITGEMM_TRY(dims.require_array());
  if (dims.size() < 1 || dims.size() > 5) return dims.expected("1 to 5 integers");
  map.rank = static_cast<uint32_t>(dims.size());
  constexpr uint64_t kMost = uint64_t{1} << 40;
  JITGEMM_TRY(parse_integers(json, "dims", map.rank, 1, uint64_t{1} << 32, false, map.dims));
  JITGEMM_TRY(parse_integers(json, "strides", map.rank - 1, 0, kMost, map.rank == 1, map.strides));
  if (const auto im2col = json.field("im2col")) {
    if (const auto box = json.field("box"))
      return box->error("expected no box beside im2col, found one");
    JITGEMM_TRY(parse_im2col(*im2col, map));
  } else {
    JITGEMM_TRY(parse_integers(json, "box", map.rank, 1, 256, false, map.box));
  }
  JITGEMM_TRY(parse_integers(json, "element_strides", map.rank, 1, 8, true, map.element_strides));
  if (const auto swizzle = json.field("swizzle")) {
    JITGEMM_ASSIGN(const std::string word, swizzle->text());
    const auto* found = std::find_if(std::begin(kSwizzles), std::end(kSwizzles),
                                     [&](const NamedSwizzle& s) { return s.name == word; });
    if (found == std::end(kSwizzles)) return swizzle->expected("one of " + names_of(kSwizzles));
    map.swizzle = found->mode;
  }
  // Whether lines come to L2 early has no effect on results: read and checked, not modelled.
  JITGEMM_ASSIGN([[maybe_unused]] const size_t promotion,
                 parse_choice(json, "l2_promotion", {"none", "64B", "128B", "256B"}));
  JITGEMM_ASSIGN(const size_t interleave, parse_choice(json, "interleave", {"none", "16B", "32B"}));
  if (interleave != 0) {
    return unsupported(
        fmt::format("{}.interleave: interleaved layouts are not simulated", json.path()));
  }
  JITGEMM_ASSIGN(const size_t fill, parse_choice(json, "oob_fill", {"zero", "nan"}));
  map.nan_fill = fill == 1;
  return description;
}

}  // namespace jitgemm::simrun
