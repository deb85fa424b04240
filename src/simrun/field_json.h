// SPDX-License-Identifier: Apache-2.0
// The parts of a launch description that name other parts: scalars, fields of structs, tensor maps.
// Not for other folders.
#pragma once

#include "simrun/json_cursor.h"
#include "simrun/launch_description.h"

#include <map>
#include <string>

namespace jitgemm::simrun {

// What a description has named so far.
struct NameTable {
  struct Buffer {
    size_t index = 0;
    uint64_t bytes = 0;
    const ElementType* type = nullptr;
  };
  std::map<std::string, Buffer> buffers;
  std::map<std::string, size_t> tensor_maps;
};

// A number, or a string: "0x..." for bits, "nan", "inf", "-inf".
Result<uint64_t> parse_element(const JsonCursor& json, const ElementType& type);
// {"f32": 1}, {"buffer": "x", "offset": 16}, {"tensor_map": "m"} or {"hex": "00ff"}; with
// `with_place` also the field "at".
Result<FieldDescription> parse_field(const JsonCursor& json, const NameTable& names,
                                     bool with_place);
// An array of fields with places that do not overlap and end before `bytes`.
Result<std::vector<FieldDescription>> parse_fields(const JsonCursor& json, const NameTable& names,
                                                   uint64_t bytes);
Result<TensorMapDescription> parse_tensor_map(const JsonCursor& json, const NameTable& names);

}  // namespace jitgemm::simrun
