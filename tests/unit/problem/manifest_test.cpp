// SPDX-License-Identifier: Apache-2.0
#include "problem/manifest.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

namespace jitgemm {
namespace {

std::string with_entry(const std::string& entry, const std::string& defaults = "{}") {
  return R"({"schema":1,"name":"t","description":"d","defaults":)" + defaults + R"(,"entries":[)" +
         entry + "]}";
}

constexpr const char* kDefaults = R"({"op":"block_scaled_mm","archs":["sm_90a"],"n":256,"k":512})";

TEST(Manifest, AnEntryTakesDefaultsAndOverridesThem) {
  const auto manifest = parse_manifest(with_entry(
      R"({"name":"x","m":7,"k":1024,"group_n":64,"out_dtype":"F16","a_dtype":"F8_E5M2",
          "scale_values":"pow2","b_scale_major":"column","archs":["sm_100a","sm_103a"]})",
      kDefaults));
  ASSERT_TRUE(manifest) << manifest.error().to_string();
  ASSERT_EQ(manifest->entries.size(), 1U);
  const ManifestEntry& entry = manifest->entries[0];
  EXPECT_EQ(entry.name, "x");
  EXPECT_EQ(entry.m_first, 7);
  EXPECT_EQ(entry.m_last, 7);
  EXPECT_EQ(entry.archs, (std::vector<Arch>{Arch::kSm100a, Arch::kSm103a}));
  EXPECT_EQ(entry.problem.m, 7);
  EXPECT_EQ(entry.problem.n, 256);
  EXPECT_EQ(entry.problem.k, 1024);
  EXPECT_EQ(entry.problem.group_n, 64);
  EXPECT_EQ(entry.problem.group_k, 128);
  EXPECT_EQ(entry.problem.a_dtype, DType::kF8E5M2);
  EXPECT_EQ(entry.problem.b_dtype, DType::kF8E4M3);
  EXPECT_EQ(entry.problem.out_dtype, DType::kF16);
  EXPECT_EQ(entry.problem.scale_values, ScaleValues::kPowerOfTwo);
  EXPECT_EQ(entry.problem.a_scale_major, ScaleMajor::kRow);
  EXPECT_EQ(entry.problem.b_scale_major, ScaleMajor::kColumn);
}

TEST(Manifest, ThePolicyFollowsTheFormOfMUnlessStated) {
  struct Case {
    const char* fields;
    MPolicy policy;
    int64_t first;
    int64_t last;
  };
  const Case cases[] = {
      {R"("m":5)",                         MPolicy::kExact, 5, 5   },
      {R"("m":0)",                         MPolicy::kExact, 0, 0   },
      {R"("m":[1,4096])",                  MPolicy::kClass, 1, 4096},
      {R"("m":[1,4096],"m_policy":"any")", MPolicy::kAny,   1, 4096},
      {R"("m":[1,3],"m_policy":"exact")",  MPolicy::kExact, 1, 3   },
      {R"("m":9,"m_policy":"class")",      MPolicy::kClass, 9, 9   },
  };
  for (const Case& c : cases) {
    const auto manifest =
        parse_manifest(with_entry(std::string(R"({"name":"x",)") + c.fields + "}", kDefaults));
    ASSERT_TRUE(manifest) << c.fields << manifest.error().to_string();
    EXPECT_EQ(manifest->entries[0].problem.m_policy, c.policy) << c.fields;
    EXPECT_EQ(manifest->entries[0].m_first, c.first) << c.fields;
    EXPECT_EQ(manifest->entries[0].m_last, c.last) << c.fields;
  }
}

TEST(Manifest, GroupedEntriesHaveALayoutAndGroups) {
  const auto manifest = parse_manifest(with_entry(
      R"({"name":"x","op":"group_gemm_fp8_nt_groupwise","m":[1,4096],"layout":"row_indices",)"
      R"("groups":7,"expected_m":9,"row_alignment":16,"zero_ungrouped":true})",
      kDefaults));
  ASSERT_TRUE(manifest) << manifest.error().to_string();
  const Grouping& grouping = manifest->entries[0].problem.grouping;
  EXPECT_EQ(grouping.layout, GroupLayout::kRowIndices);
  EXPECT_EQ(grouping.groups, 7);
  EXPECT_EQ(grouping.expected_m, 9);
  EXPECT_EQ(grouping.row_alignment, 16);
  EXPECT_TRUE(grouping.zero_ungrouped);
}

TEST(Manifest, EachBadFieldIsNamedWithItsEntry) {
  struct Case {
    const char* fields;
    const char* message;
  };
  const Case cases[] = {
      {R"("m":-1)",                                                                                        "field 'm': expected an integer from 0"                },
      {R"("m":1.5)",                                                                                       "field 'm': expected an integer"                       },
      {R"("m":"7")",                                                                                       "field 'm': expected an integer"                       },
      {R"("m":[1])",                                                                                       "field 'm': expected an integer, or [first, last]"     },
      {R"("m":[9,1])",                                                                                     "field 'm': expected first <= last"                    },
      {R"("m":[1,"x"])",                                                                                   "field 'm': expected an integer"                       },
      {R"("m":99999999999)",                                                                               "field 'm': expected an integer from 0 to 2147483647"  },
      {R"("k":2)",                                                                                         "field 'm' is missing"                                 },
      {R"("m":1,"n":0)",                                                                                   "n: expected 1"                                        },
      {R"("m":1,"n":null)",                                                                                "field 'n': expected an integer"                       },
      {R"("m":[1,2147483648])",                                                                            "field 'm': expected an integer from 0 to 2147483647"  },
      {R"("m":[1,65537],"m_policy":"exact")",
       "field 'm': expected a range of at most 65536 values"                                                                                                      },
      {R"("m":1,"group_n":0)",                                                                             "group_n: expected at least 1"                         },
      {R"("m":1,"group_k":48)",                                                                            "group_k: supported are the multiples of 32"           },
      {R"("m":1,"group_k":4294967296)",                                                                    "field 'group_k': expected an integer from 0"          },
      {R"("m":1,"a_dtype":"F8_E8M0")",
       "field 'a_dtype': expected F8_E4M3, F8_E5M2, F32, BF16 or F16"                                                                                             },
      {R"("m":1,"a_dtype":"F16","a_code_dtype":"BF16")",
       "field 'a_code_dtype': expected F8_E4M3 or F8_E5M2"                                                                                                        },
      {R"("m":1,"b_dtype":"f8_e4m3")",                                                                     "field 'b_dtype'"                                      },
      {R"("m":1,"scale_dtype":"BF16")",                                                                    "field 'scale_dtype': expected F32 or F8_E8M0"         },
      {R"("m":1,"out_dtype":1)",                                                                           "field 'out_dtype': expected F32, BF16 or F16"         },
      {R"("m":1,"scale_values":"two")",                                                                    "field 'scale_values': expected any or pow2"           },
      {R"("m":1,"a_scale_major":"x")",                                                                     "field 'a_scale_major'"                                },
      {R"("m":1,"b_scale_major":0)",                                                                       "field 'b_scale_major'"                                },
      {R"("m":1,"m_policy":"most")",                                                                       "field 'm_policy': expected exact, class or any"       },
      {R"("m":1,"archs":[])",                                                                              "field 'archs'"                                        },
      {R"("m":1,"archs":"sm_90a")",                                                                        "field 'archs'"                                        },
      {R"("m":1,"archs":[90])",                                                                            "field 'archs'"                                        },
      {R"("m":1,"archs":["sm_80"])",                                                                       "field 'archs'"                                        },
      {R"("m":1,"archs":["sm_90a","sm_90a"])",                                                             "each target once"                                     },
      {R"("m":1,"op":"other")",                                                                            "field 'op': expected \"block_scaled_mm\" or"          },
      {R"("m":1,"groups":4)",                                                                              "field 'groups' is for \"group_gemm_fp8_nt_groupwise\""},
      {R"("m":1,"layout":"masked")",                                                                       "field 'layout' is for"                                },
      {R"("m":1,"op":"group_gemm_fp8_nt_groupwise")",                                                      "field 'layout' is missing"                            },
      {R"("m":1,"op":"group_gemm_fp8_nt_groupwise","layout":"masked")",
       "field 'groups' is missing"                                                                                                                                },
      {R"("m":1,"op":"group_gemm_fp8_nt_groupwise","layout":"rows","groups":4)",
       "field 'layout': expected row_indices"                                                                                                                     },
      {R"("m":1,"op":"group_gemm_fp8_nt_groupwise","layout":"masked","groups":0)",
       "groups: expected 1"                                                                                                                                       },
      {R"("m":1,"op":"group_gemm_fp8_nt_groupwise","layout":"masked","groups":4,"expected_m":-1)",
       "field 'expected_m'"                                                                                                                                       },
      {R"("m":1,"op":"group_gemm_fp8_nt_groupwise","layout":"masked","groups":4,"row_alignment":8)",
       "row_alignment: expected 0"                                                                                                                                },
      {R"("m":1,"op":"group_gemm_fp8_nt_groupwise","layout":"row_indices","groups":4,"zero_ungrouped":1)",
       "field 'zero_ungrouped': expected true or false"                                                                                                           },
      {R"("m":1,"group_m":1)",                                                                             "unknown field 'group_m'"                              },
  };
  for (const Case& c : cases) {
    const auto manifest =
        parse_manifest(with_entry(std::string(R"({"name":"bad",)") + c.fields + "}", kDefaults));
    ASSERT_FALSE(manifest) << c.fields;
    const std::string& message = manifest.error().message();
    EXPECT_NE(message.find("entries[0] 'bad': "), std::string::npos) << message;
    EXPECT_NE(message.find(c.message), std::string::npos) << c.fields << "\n" << message;
    EXPECT_TRUE(manifest.error().code() == StatusCode::kCorruptData ||
                manifest.error().code() == StatusCode::kUnsupported)
        << message;
  }
}

TEST(Manifest, ARangeIsAsLongAsItsPolicyAllows) {
  for (const char* m : {R"("m":[1,65536],"m_policy":"exact")", R"("m":[0,2147482623])",
                        R"("m":[1,2147482623],"m_policy":"any")"}) {
    const auto manifest =
        parse_manifest(with_entry(std::string(R"({"name":"long",)") + m + "}", kDefaults));
    EXPECT_TRUE(manifest) << manifest.error().to_string();
  }
}

TEST(Manifest, EachBadFrameIsRefused) {
  struct Case {
    const char* json;
    const char* message;
  };
  const Case cases[] = {
      {"",                                                                                    "not JSON"                            },
      {"[]",                                                                                  "expected an object"                  },
      {"{}",                                                                                  "field 'schema' is missing"           },
      {R"({"schema":2})",                                                                     "field 'schema': this version reads 1"},
      {R"({"schema":1.0})",                                                                   "field 'schema': this version reads 1"},
      {R"({"schema":1})",                                                                     "field 'name' is missing"             },
      {R"({"schema":1,"name":""})",                                                           "field 'name': expected a text"       },
      {R"({"schema":1,"name":"t"})",                                                          "field 'description' is missing"      },
      {R"({"schema":1,"name":"t","description":"d"})",                                        "field 'entries' is missing"          },
      {R"({"schema":1,"name":"t","description":"d","entries":[]})",                           "field 'entries'"                     },
      {R"({"schema":1,"name":"t","description":"d","entries":[3]})",                          "entries[0]: expected"                },
      {R"({"schema":1,"name":"t","description":"d","entries":[{}]})",                         "entries[0]: field 'name'"            },
      {R"({"schema":1,"name":"t","description":"d","defaults":3,"entries":[{}]})",            "'defaults'"                          },
      {R"({"schema":1,"name":"t","description":"d","defaults":{"x":1},"entries":[{}]})",
       "defaults: unknown field 'x'"                                                                                                },
      {R"({"schema":1,"name":"t","description":"d","defaults":{"name":"x"},"entries":[{}]})",
       "defaults: unknown field 'name'"                                                                                             },
      {R"({"schema":1,"schema":1})",                                                          "key 'schema' appears twice"          },
      {R"({"schema":1,"extra":1})",                                                           "unknown field 'extra'"               },
      {R"({"schema":[[[[[[1]]]]]]})",                                                         "nested too deeply"                   },
  };
  for (const Case& c : cases) {
    const auto manifest = parse_manifest(c.json);
    ASSERT_FALSE(manifest) << c.json;
    EXPECT_NE(manifest.error().message().find(c.message), std::string::npos)
        << c.json << "\n"
        << manifest.error().message();
  }
  EXPECT_EQ(read_manifest("/no/such/manifest.json").error().code(), StatusCode::kIoError);
}

TEST(Manifest, EveryShippedFileParses) {
  std::map<std::string, size_t> counts;
  for (const auto& file :
       std::filesystem::directory_iterator(JITGEMM_SOURCE_DIR "/cache/manifests")) {
    const auto manifest = read_manifest(file.path().string());
    ASSERT_TRUE(manifest) << manifest.error().to_string();
    EXPECT_EQ(manifest->name, file.path().stem().string());
    counts[manifest->name] = manifest->entries.size();
  }
  const std::map<std::string, size_t> expected = {
      {"seed_block_scaled_mm", 24},
      {"deepseek_v3",          8 },
      {"qwen3",                12},
      {"llama4",               6 },
      {"gpt_oss_like",         4 },
      {"moe_experts",          8 }
  };
  EXPECT_EQ(counts, expected);
}

}  // namespace
}  // namespace jitgemm
