// SPDX-License-Identifier: Apache-2.0
// Descriptions that are wrong: every error says where, what was expected and what was found.
#include "simrun_test_kernels.h"

namespace jitgemm::simrun {
namespace {

using ::testing::HasSubstr;

// A legal description; each row of a table replaces one piece of it.
constexpr const char* kLegal = R"({"schema": 1,
 "buffers": {"x": {"dtype": "F32", "shape": [2, 4], "access": "in", "fill": {"value": 1}},
             "y": {"dtype": "U32", "shape": 4, "access": "out", "expect": {"values": [1, 2, 3, 4]}}},
 "tensor_maps": {"m": {"buffer": "x", "dims": [4, 2], "strides": [16], "box": [4, 2], "swizzle": "none"}},
 "launches": [{"entry": "k", "grid": [1], "block": 32, "parameters": [
   {"buffer": "x"}, {"u32": 5}, {"struct": [{"at": 0, "f32": 1}, {"at": 4, "u8": 2}]}]}],
 "options": {"seed": 3}})";

const char* const kEntry =
    ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 x, .param .u32 "
    "n, "
    ".param .align 4 .b8 s[8])\n{\nret;\n}\n";

std::string replaced(std::string_view piece, std::string_view by) {
  std::string text = kLegal;
  const size_t at = text.find(piece);
  if (at == std::string::npos) return "the piece is not there";
  return text.replace(at, piece.size(), by);
}

TEST(LaunchJson, TheLegalDescriptionIsLegal) {
  // It runs, and the kernel that does nothing leaves y as it was.
  EXPECT_THAT(outcome(kEntry, kLegal), HasSubstr("buffer 'y': 4 of 4 elements differ"));
}

TEST(LaunchJson, ErrorsNameThePathTheExpectedAndTheFound) {
  struct Row {
    const char* piece;
    const char* by;
    const char* expected;
  };
  const Row rows[] = {
      {"\"schema\": 1",             "\"schema\": 2",                           "schema: expected 1, found 2"                                       },
      {"\"schema\": 1,",            "",                                        "document: expected a field 'schema', found none"                   },
      {"\"options\"",               "\"option\"",
       "expected fields among schema, buffers, tensor_maps, launches, options, found 'option'"                                                     },
      {"\"seed\": 3",               "\"seed\": -3",                            "options.seed: expected an integer from 0 to"                       },
      {"\"seed\": 3",               "\"seed\": 3, \"seed\": 4",                "key 'seed' appears twice"                                          },
      {"\"seed\": 3",               "\"numerics\": \"fast\"",
       "options.numerics: expected exact, hopper or blackwell, found 'fast'"                                                                       },
      {"\"F32\"",                   "\"F31\"",                                 "buffers.x.dtype: expected one of U8"                               },
      {"[2, 4]",                    "[2, -4]",                                 "buffers.x.shape[1]: expected an integer from 0 to"                 },
      {"[2, 4]",                    "[1099511627776, 1099511627776]",          "buffers.x.shape: expected at most"                                 },
      {"\"in\"",                    "\"read\"",                                "buffers.x.access: expected in, out or inout, found 'read'"         },
      {"{\"value\": 1}",            "{\"value\": \"one\"}",
       "buffers.x.fill.value: expected a value of F32, found 'one'"                                                                                },
      {"{\"value\": 1}",            "{\"value\": 1, \"seed\": 2}",
       "buffers.x.fill: expected fields among value, found 'seed'"                                                                                 },
      {"{\"value\": 1}",            "{\"random\": {\"low\": 2, \"high\": 1}}",
       "buffers.x.fill.random: expected low <= high"                                                                                               },
      {"{\"value\": 1}",            "7",                                       "buffers.x.fill: expected an object with one of file"               },
      {"[1, 2, 3, 4]",              "[1, 2, 3]",
       "buffers.y.expect.values: expected 4 values for the buffer's shape, found 3"                                                                },
      {"[1, 2, 3, 4]",              "[1, 2, 3, 4294967296]",
       "buffers.y.expect.values[3]: expected a value of U32, found 4294967296"                                                                     },
      {"[1, 2, 3, 4]",              "[1, 2, 3, 1.5]",
       "buffers.y.expect.values[3]: expected a value of U32, found 1.5"                                                                            },
      {"\"dims\": [4, 2]",          "\"dims\": []",
       "tensor_maps.m.dims: expected 1 to 5 integers, found an array of 0"                                                                         },
      {"\"strides\": [16]",         "\"strides\": [16, 16]",
       "tensor_maps.m.strides: expected an array of 1 integers"                                                                                    },
      {"\"strides\": [16]",         "\"strides\": [20]",                       "tensor_maps.m: "                                                   },
      {"\"swizzle\": \"none\"",     "\"swizzle\": \"256B\"",
       "tensor_maps.m.swizzle: expected one of none, 32B"                                                                                          },
      {"\"swizzle\": \"none\"",     "\"interleave\": \"16B\"",                 "UNSUPPORTED: tensor_maps.m.interleave"                             },
      {"\"m\": {\"buffer\": \"x\"", "\"m\": {\"buffer\": \"w\"",
       "tensor_maps.m.buffer: expected the name of a buffer, found 'w'"                                                                            },
      {"\"k\"",                     "\"kk\"",                                  "launches[0].entry: expected an entry of the module (k), found 'kk'"},
      {"\"grid\": [1]",             "\"grid\": [0]",                           "launches[0].grid[0]: expected an integer from 1 to"                },
      {"\"block\": 32",             "\"block\": [1, 1, 1, 1]",                 "launches[0].block: expected 1 to 3 integers"                       },
      {"\"block\": 32",             "\"block\": [1024, 2]",                    "2048 threads a CTA, at most 1024 allowed"                          },
      {"{\"u32\": 5}",              "{\"u64\": 5}",
       "launches[0].parameters[1]: expected 4 bytes for parameter 'n', found 8"                                                                    },
      {"{\"u32\": 5}",              "{\"u32\": 5, \"name\": \"m\"}",
       "launches[0].parameters[1].name: expected 'n'"                                                                                              },
      {"{\"u32\": 5}",              "{\"i31\": 5}",
       "launches[0].parameters[1]: expected one of buffer, tensor_map"                                                                             },
      {"{\"u32\": 5},",             "",                                        "launches[0].parameters: expected 3 for entry k, found 2"           },
      {"{\"u32\": 5}",              "{\"hex\": \"012\"}",
       "launches[0].parameters[1].hex: expected pairs of hex digits"                                                                               },
      {"\"at\": 4",                 "\"at\": 3",
       "launches[0].parameters[2].struct[1]: expected a place of its own, found an overlap with "
       "launches[0].parameters[2].struct[0]"                                                                                                       },
      {"\"at\": 4",                 "\"at\": 8",
       "launches[0].parameters[2].struct[1]: expected to end within the 8 bytes of parameter 's'"                                                  },
      {"\"schema\": 1,",            "\"schema\": 1,,",                         "not JSON: line "                                                   },
      {"\"seed\": 3",               "\"seed\": 1e999",                         "not JSON: a number is too large for a double"                      },
      {"[{\"entry\"",               "[[[[[[[[[[[[[{\"entry\"",                 "nested too deeply"                                                 },
  };
  for (const Row& row : rows) {
    EXPECT_THAT(outcome(kEntry, replaced(row.piece, row.by)), HasSubstr(row.expected))
        << row.piece << " replaced by " << row.by;
  }
}

TEST(ElementTypes, EveryCodeOfTheSmallFloatsComesBackFromItsValue) {
  for (const char* name : {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F16", "BF16"}) {
    const ElementType& type = *find_element_type(name);
    for (uint64_t code = 0; code < uint64_t{1} << (8 * type.bytes); ++code) {
      const double value = decode(type, code);
      if (value != value) continue;
      ASSERT_EQ(encode(type, value), std::optional<uint64_t>(code)) << name << " " << code;
    }
  }
}

TEST(ElementTypes, NumbersAreRoundedToNearestEvenOrRefused) {
  const ElementType& e4m3 = *find_element_type("f8_e4m3");
  EXPECT_EQ(encode(e4m3, 448), std::optional<uint64_t>(0x7e));
  EXPECT_EQ(encode(e4m3, 463), std::optional<uint64_t>(0x7e));
  EXPECT_EQ(encode(e4m3, 480), std::nullopt);
  EXPECT_EQ(encode(e4m3, 1.0625), std::optional<uint64_t>(0x38));  // a tie, down to even
  EXPECT_EQ(encode(e4m3, 1.1875), std::optional<uint64_t>(0x3a));  // a tie, up to even
  EXPECT_EQ(encode(e4m3, 0x1p-10), std::optional<uint64_t>(0));    // half of the least subnormal
  EXPECT_EQ(encode(*find_element_type("f16"), 65520), std::nullopt);
  EXPECT_EQ(encode(*find_element_type("f32"), 0.1), std::optional<uint64_t>(0x3dcccccd));
  EXPECT_EQ(encode(*find_element_type("u8"), -1), std::nullopt);
  EXPECT_EQ(encode(*find_element_type("s8"), -128), std::optional<uint64_t>(0x80));
  EXPECT_EQ(encode(*find_element_type("i8"), 128), std::nullopt);
}

}  // namespace
}  // namespace jitgemm::simrun
