// SPDX-License-Identifier: Apache-2.0
// Launches from descriptions: what reaches the kernel, what comes back, what is shared between
// launches, limits.
#include "simrun_test_kernels.h"
#include "support/filesystem.h"
#include "verify/safetensors.h"

#include <fmt/format.h>

#include <filesystem>

namespace jitgemm::simrun {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string source_file(const std::string& name) {
  return *read_file(std::string(JITGEMM_SOURCE_DIR) + "/" + name);
}

class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Copies 8-byte words: parameter i of the entry to out[i].
std::string dump_kernel(const std::string& parameters, const std::string& loads) {
  return module_text(".param .u64 out" + parameters, "ld.param.u64 %rd1, [out];\n" + loads);
}

TEST(KernelRun, ScalarsArriveWithTheirBits) {
  struct Row {
    const char* type;
    const char* scalar;
    const char* load;  // into %rd2
    const char* expected;
  };
  const Row rows[] = {
      {"u8",  R"({"u8": 255})",              "ld.param.u8 %rd2, [v];",  "0xff"              },
      {"s32", R"({"s32": -1})",              "ld.param.u32 %rd2, [v];", "0xffffffff"        },
      {"u64", R"({"u64": "0x123456789ab"})", "ld.param.u64 %rd2, [v];", "0x123456789ab"     },
      {"f32", R"({"f32": 1})",               "ld.param.u32 %rd2, [v];", "0x3f800000"        },
      {"f32", R"({"f32": "nan"})",           "ld.param.u32 %rd2, [v];", "0x7fc00000"        },
      {"f64", R"({"f64": -0.5})",            "ld.param.u64 %rd2, [v];", "0xbfe0000000000000"},
      {"b16", R"({"bf16": 1.5})",            "ld.param.u16 %rd2, [v];", "0x3fc0"            },
      {"b16", R"({"f16": "-inf"})",          "ld.param.u16 %rd2, [v];", "0xfc00"            },
      {"b32", R"({"hex": "01020304"})",      "ld.param.u32 %rd2, [v];", "0x4030201"         },
  };
  for (const Row& row : rows) {
    const std::string ptx = dump_kernel(std::string(", .param .") + row.type + " v",
                                        std::string(row.load) + "\nst.global.u64 [%rd1], %rd2;");
    const std::string json =
        std::string(
            R"({"schema": 1, "buffers": {"out": {"dtype": "B64", "shape": 1, "expect": {"values": [")") +
        row.expected + R"("]}}}, "launches": [{"entry": "k", "parameters": [{"buffer": "out"}, )" +
        row.scalar + "]}]}";
    EXPECT_EQ(outcome(ptx, json), "") << row.scalar;
  }
}

TEST(KernelRun, StructsHoldScalarsAndAddressesAtTheirPlaces) {
  // struct { u32 a; u64 p; f32 b; } with p pointing at the second word of x.
  const std::string ptx = dump_kernel(", .param .align 8 .b8 s[24]",
                                      "ld.param.u32 %r1, [s];\nld.param.u64 %rd2, [s+8];\n"
                                      "ld.param.u32 %r2, [s+16];\nld.param.u32 %r4, [s+20];\n"
                                      "ld.global.u32 %r3, [%rd2];\n"
                                      "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};");
  EXPECT_EQ(outcome(ptx, R"({"schema": 1, "buffers": {
    "out": {"dtype": "U32", "shape": [4], "access": "out", "expect": {"values": [7, "0x40000000", 22, 0]}},
    "x": {"dtype": "U32", "shape": [2], "access": "in", "fill": {"values": [11, 22]}}},
    "launches": [{"entry": "k", "parameters": [{"buffer": "out"}, {"name": "s", "struct": [
      {"at": 0, "u32": 7}, {"at": 8, "buffer": "x", "offset": 4}, {"at": 16, "f32": 2}]}]}]})"),
            "");
}

TEST(KernelRun, ABufferMayHoldAddresses) {
  const std::string ptx = dump_kernel(", .param .u64 table",
                                      "ld.param.u64 %rd2, [table];\nld.global.u64 %rd3, [%rd2+8];\n"
                                      "ld.global.u32 %r1, [%rd3];\nst.global.u32 [%rd1], %r1;");
  EXPECT_EQ(outcome(ptx, R"({"schema": 1, "buffers": {
    "out": {"dtype": "U32", "shape": 1, "expect": {"value": 5}},
    "x": {"dtype": "U32", "shape": 1, "fill": {"value": 5}},
    "table": {"dtype": "U64", "shape": 2, "fill": {"fields": [{"at": 8, "buffer": "x"}]}}},
    "launches": [{"entry": "k", "parameters": [{"buffer": "out"}, {"buffer": "table"}]}]})"),
            "");
}

TEST(KernelRun, LaunchesShareBuffersAndModuleVariables) {
  const std::string ptx =
      module_text(".param .u64 out",
                  "ld.param.u64 %rd1, [out];\natom.global.add.u32 %r1, [count], "
                  "1;\nst.global.u32 [%rd1], %r1;",
                  ".global .u32 count = 5;");
  const std::string json = R"({"schema": 1, "buffers": {
    "out": {"dtype": "U32", "shape": 3, "access": "out", "expect": {"values": [5, 6, 7]}}},
    "launches": [{"entry": "k", "parameters": [{"buffer": "out"}]},
                 {"entry": "k", "parameters": [{"buffer": "out", "offset": 4}]},
                 {"entry": "k", "parameters": [{"buffer": "out", "offset": 8}]}]})";
  Result<RunDescription> description = parse_launch_json(json);
  ASSERT_TRUE(description.has_value()) << description.error().to_string();
  Result<KernelRun> run = KernelRun::create(ptx, std::move(*description), "");
  ASSERT_TRUE(run.has_value()) << run.error().to_string();
  // A second run starts from the module's initial values again.
  for (int i = 0; i < 2; ++i) {
    const Result<RunReport> report = run->run();
    ASSERT_TRUE(report.has_value()) << report.error().to_string();
    EXPECT_TRUE(report->mismatches.empty()) << report->mismatches.front();
  }
}

TEST(KernelRun, ReadingWhatNoLaunchHasWrittenIsAFault) {
  const std::string copy = module_text(".param .u64 from, .param .u64 to",
                                       "ld.param.u64 %rd1, [from];\nld.param.u64 %rd2, [to];\n"
                                       "ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd2], %r1;");
  const std::string buffers = R"({"schema": 1, "buffers": {
    "x": {"dtype": "U32", "shape": 2, "fill": {"value": 1}},
    "y": {"dtype": "U32", "shape": 2, "access": "out"}, "z": {"dtype": "U32", "shape": 2}}, )";
  const std::string first = R"({"entry": "k", "parameters": [{"buffer": "x"}, {"buffer": "y"}]})";
  EXPECT_EQ(
      outcome(copy, buffers + R"("launches": [)" + first +
                        R"(, {"entry": "k", "parameters": [{"buffer": "y"}, {"buffer": "z"}]}]})"),
      "");
  // The second word of y.
  const std::string error = outcome(
      copy,
      buffers + R"("launches": [)" + first +
          R"(, {"entry": "k", "parameters": [{"buffer": "y", "offset": 4}, {"buffer": "z"}]}]})");
  EXPECT_THAT(error, HasSubstr("SIMULATOR_FAULT: launches[1]: "));
  EXPECT_THAT(error, HasSubstr("buffer 'y'"));
}

TEST(KernelRun, AnInBufferMayNotBeWritten) {
  const std::string error =
      outcome(module_text(".param .u64 x", "ld.param.u64 %rd1, [x];\nst.global.u32 [%rd1], 1;"),
              R"({"schema": 1, "buffers": {"x": {"dtype": "U32", "shape": 2, "access": "in",
                 "fill": {"value": 1}}}, "launches": [{"entry": "k", "parameters": [{"buffer": "x"}]}]})");
  EXPECT_THAT(error, HasSubstr("SIMULATOR_FAULT"));
  EXPECT_THAT(error, HasSubstr("buffer 'x'"));
}

TEST(KernelRun, TensorMapsDescribeTiles) {
  // A box of 4 x 8 at row 4, column 8 of a 6 x 16 matrix whose rows are 48 bytes apart: rows 6 and
  // 7 are beyond it.
  const std::string ptx =
      module_text(".param .u64 out, .param .align 64 .b8 map[128]", R"(
ld.param.u64 %rd1, [out];
mov.b64 %rd2, map;
cvta.param.u64 %rd2, %rd2;
mov.u32 %r1, tile;
mov.u32 %r2, bar;
mbarrier.init.shared.b64 [%r2], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r2], 64;
mov.u32 %r3, 8;
mov.u32 %r4, 4;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2, {%r3, %r4}], [%r2];
W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
@!%p1 bra W;
mov.u32 %r5, 0;
L: ld.shared.b32 %r6, [%r1];
st.global.b32 [%rd1], %r6;
add.u32 %r1, %r1, 4;
add.u64 %rd1, %rd1, 4;
add.u32 %r5, %r5, 1;
setp.lt.u32 %p2, %r5, 16;
@%p2 bra L;
)",
                  ".shared .align 128 .b8 tile[64];\n.shared .align 8 .b64 bar;");
  const std::string json = R"({"schema": 1, "buffers": {
    "x": {"dtype": "BF16", "shape": [6, 24], "access": "in", "fill": {"iota": {}}},
    "out": {"dtype": "BF16", "shape": [4, 8], "access": "out", "expect": {"values": [
       104, 105, 106, 107, 108, 109, 110, 111,  128, 129, 130, 131, 132, 133, 134, 135,
       0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0]}}},
    "tensor_maps": {"m": {"buffer": "x", "dims": [16, 6], "strides": [48], "box": [8, 4],
       "swizzle": "none", "interleave": "none", "l2_promotion": "128B", "oob_fill": "zero"}},
    "launches": [{"entry": "k", "parameters": [{"buffer": "out"}, {"tensor_map": "m"}]}]})";
  EXPECT_EQ(outcome(ptx, json), "");
}

TEST(KernelRun, ProgrammaticDependenceIsADeclarationOfTheLaunch) {
  const std::string ptx =
      module_text("", "griddepcontrol.launch_dependents;\ngriddepcontrol.wait;");
  EXPECT_EQ(outcome(ptx, R"({"schema": 1, "launches": [{"entry": "k", "parameters": []},
                           {"entry": "k", "pdl": true}]})"),
            "");
}

// x[i] = i if `first` is 0, else y = x reversed.
std::string two_steps(const std::string& before_read) {
  return module_text(".param .u64 x, .param .u64 y, .param .u32 first", R"(
ld.param.u64 %rd1, [x];
ld.param.u64 %rd2, [y];
ld.param.u32 %r1, [first];
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd3, %r2, 4;
add.u64 %rd1, %rd1, %rd3;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra reads;
griddepcontrol.launch_dependents;
st.global.u32 [%rd1], %r2;
bra done;
reads:
)" + before_read + R"(
ld.global.u32 %r3, [%rd1];
sub.u64 %rd4, %rd2, %rd3;
st.global.u32 [%rd4+252], %r3;
done:)");
}

std::string two_launches(const char* second) {
  return fmt::format(R"({{"schema": 1, "buffers": {{
    "x": {{"dtype": "U32", "shape": [64], "access": "out"}},
    "y": {{"dtype": "U32", "shape": [64], "access": "out",
          "expect": {{"iota": {{"start": 63, "step": -1}}}}}}}},
    "launches": [
      {{"entry": "k", "block": 64, "parameters": [{{"buffer": "x"}}, {{"buffer": "y"}}, {{"u32": 0}}]}},
      {{"entry": "k", "block": 64, {} "parameters":
        [{{"buffer": "x"}}, {{"buffer": "y"}}, {{"u32": 1}}]}}]}})",
                     second);
}

TEST(KernelRun, WhatTheGridBeforeWroteIsReadAfterTheWaitOnly) {
  const char* kPdl = "\"pdl\": true,";
  EXPECT_EQ(outcome(two_steps("griddepcontrol.wait;"), two_launches(kPdl)), "");
  // One warp waits, a barrier tells the other.
  EXPECT_EQ(outcome(two_steps("setp.lt.u32 %p2, %r2, 32;\n@%p2 griddepcontrol.wait;\nbar.sync 0;"),
                    two_launches(kPdl)),
            "");
  EXPECT_THAT(outcome(two_steps("setp.lt.u32 %p2, %r2, 32;\n@%p2 griddepcontrol.wait;"),
                      two_launches(kPdl)),
              HasSubstr("access that may overtake the grid before"));
  const std::string missing = outcome(two_steps(""), two_launches(kPdl));
  EXPECT_THAT(missing, HasSubstr("launches[1]"));
  EXPECT_THAT(missing, HasSubstr("ld.global.u32 %r3"));
  EXPECT_THAT(missing, HasSubstr("of buffer 'x'"));
  // Without programmatic dependence the grid before has ended.
  EXPECT_EQ(outcome(two_steps(""), two_launches("")), "");
}

TEST(KernelRun, TheGridBeforeIsNotOverwrittenBeforeTheWait) {
  // The second launch writes what the first wrote; it reads nothing of it.
  const auto writer = [](const char* wait) {
    return module_text(".param .u64 x", std::string("ld.param.u64 %rd1, [x];\n") + wait +
                                            "\nst.global.u32 [%rd1], 5;");
  };
  const char* json =
      R"({"schema": 1, "buffers": {"x": {"dtype": "U32", "shape": [1], "access": "out"}},
    "launches": [{"entry": "k", "parameters": [{"buffer": "x"}]},
                 {"entry": "k", "pdl": true, "parameters": [{"buffer": "x"}]}]})";
  EXPECT_EQ(outcome(writer("griddepcontrol.wait;"), json), "");
  EXPECT_THAT(outcome(writer(""), json), HasSubstr("griddepcontrol.wait"));
}

TEST(KernelRun, StrictRulesAreAnOption) {
  // A bulk store that nobody waits for before the CTA ends.
  const std::string ptx = module_text(".param .u64 out", R"(
ld.param.u64 %rd1, [out];
mov.u32 %r1, tile;
st.shared.u32 [%r1], 1;
st.shared.u32 [%r1+4], 2;
st.shared.u32 [%r1+8], 3;
st.shared.u32 [%r1+12], 4;
fence.proxy.async;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;
cp.async.bulk.commit_group;)",
                                      ".shared .align 16 .b8 tile[16];");
  const auto json = [](const char* options) {
    return std::string(R"({"schema": 1, "buffers": {"out": {"dtype": "U32", "shape": [4],
      "access": "out", "expect": {"iota": {"start": 1, "step": 1}}}},
      "launches": [{"entry": "k", "parameters": [{"buffer": "out"}]}])") +
           options + "}";
  };
  EXPECT_EQ(outcome(ptx, json("")), "");
  EXPECT_EQ(outcome(ptx, json(R"(, "options": {"strict": false})")), "");
  EXPECT_THAT(outcome(ptx, json(R"(, "options": {"strict": true})")),
              HasSubstr("is still pending when CTA rank 0 ends"));
}

TEST(KernelRun, FilesAndTensorsComeInAndGoOut) {
  const TemporaryFolder folder;
  const std::string bytes("\1\0\0\0\2\0\0\0", 8);
  ASSERT_TRUE(write_file(folder.path() + "/x.bin", bytes).ok());
  const std::string copy = module_text(".param .u64 from, .param .u64 to",
                                       "ld.param.u64 %rd1, [from];\nld.param.u64 %rd2, [to];\n"
                                       "ld.global.v2.u32 {%r1, %r2}, [%rd1];\n"
                                       "st.global.v2.u32 [%rd2], {%r2, %r1};");
  EXPECT_EQ(outcome(copy, R"({"schema": 1, "buffers": {
    "x": {"dtype": "I32", "shape": [2], "fill": {"file": "x.bin"}},
    "y": {"dtype": "I32", "shape": [1, 2], "access": "out", "output": {"safetensors": "y.safetensors", "tensor": "y"}}},
    "launches": [{"entry": "k", "parameters": [{"buffer": "x"}, {"buffer": "y"}]}]})",
                    folder.path()),
            "");
  EXPECT_EQ(outcome(copy, R"({"schema": 1, "buffers": {
    "y": {"dtype": "I32", "shape": [2], "fill": {"safetensors": "y.safetensors", "tensor": "y"}},
    "z": {"dtype": "I32", "shape": [2], "access": "out", "output": "z.bin"}},
    "launches": [{"entry": "k", "parameters": [{"buffer": "y"}, {"buffer": "z"}]}]})",
                    folder.path()),
            "");
  EXPECT_EQ(*read_file(folder.path() + "/z.bin"), bytes);
  const Result<SafetensorsFile> file = SafetensorsFile::open(folder.path() + "/y.safetensors");
  ASSERT_TRUE(file.has_value()) << file.error().to_string();
  EXPECT_EQ(file->find("y")->shape, (std::vector<int64_t>{1, 2}));
}

TEST(KernelRun, ADifferenceIsReportedWithItsPlace) {
  const std::string ptx = module_text(".param .u64 y",
                                      "ld.param.u64 %rd1, [y];\nmov.f32 %f1, "
                                      "0f3f800000;\nst.global.f32 [%rd1+4], %f1;");
  const std::string json = R"({"schema": 1, "buffers": {"y": {"dtype": "F32", "shape": 3,
    "fill": {"value": 0}, "expect": {"values": [0, 1.01, 0], "max_rel": TOLERANCE}}},
    "launches": [{"entry": "k", "parameters": [{"buffer": "y"}]}]})";
  const auto with = [&](const std::string& tolerance) {
    std::string text = json;
    return text.replace(text.find("TOLERANCE"), 9, tolerance);
  };
  EXPECT_EQ(outcome(ptx, with("0.1")), "");
  EXPECT_EQ(outcome(ptx, with("0.001")),
            "buffer 'y': 1 of 3 elements differ; element 1: expected 1.00999999, found 1");
}

TEST(KernelRun, LimitsEndARunWithTheirNames) {
  const std::string spin = module_text("", "L: bra L;");
  EXPECT_THAT(outcome(spin, R"({"schema": 1, "launches": [{"entry": "k"}],
                              "options": {"step_limit": 1000}})"),
              HasSubstr("1000 warp instructions"));
  EXPECT_THAT(
      outcome(spin, R"({"schema": 1, "buffers": {"x": {"dtype": "U8", "shape": [1000, 1000]}},
                              "launches": [{"entry": "k"}], "options": {"memory_limit": 999999}})"),
      HasSubstr("OUT_OF_MEMORY: buffers.x: the buffers need more than memory_limit, 999999"));
  EXPECT_THAT(outcome(spin, R"({"schema": 1, "launches": [{"entry": "k", "block": 1024}],
                              "options": {"memory_limit": 100}})"),
              HasSubstr("the limit is 100"));
  EXPECT_THAT(
      outcome(module_text("", "L: bra L;"),
              R"({"schema": 1, "launches": [{"entry": "k"}], "options": {"time_limit": 1}})"),
      AllOf(HasSubstr("time limit reached"), HasSubstr("1000 ms")));
  EXPECT_THAT(outcome(spin, R"({"schema": 1, "launches": [{"entry": "k", "block": 2048}]})"),
              HasSubstr("at most"));
  EXPECT_THAT(outcome(spin, R"({"schema": 1, "launches": [{"entry": "k"}],
                              "options": {"threads": 5000}})"),
              HasSubstr("threads"));
  EXPECT_THAT(outcome(module_text("", "ret;", ".global .align 4 .b8 big[2000000];"),
                      R"({"schema": 1, "launches": [{"entry": "k"}],
                          "options": {"memory_limit": 1000000}})"),
              HasSubstr("variables need more than the memory limit"));
}

TEST(KernelRun, TheExampleOfTheDocumentsRuns) {
  const TemporaryFolder folder;
  const std::string ptx = source_file("examples/sim_run/transpose.ptx");
  const std::string json = source_file("examples/sim_run/transpose.json");
  const Result<RunReport> report = run_json(ptx, json, folder.path());
  ASSERT_TRUE(report.has_value()) << report.error().to_string();
  EXPECT_TRUE(report->mismatches.empty());
  EXPECT_EQ(report->launches.size(), 2u);
  // The documents show the files as they are.
  const std::string document = source_file("docs/simulator.md");
  EXPECT_THAT(document, HasSubstr(json));
  EXPECT_THAT(document, HasSubstr(ptx));
}

TEST(KernelRun, BuffersMayBeFilledAndReadByAProgram) {
  Result<RunDescription> description = parse_launch_json(R"({"schema": 1, "buffers": {
    "x": {"dtype": "U32", "shape": 1}}, "launches": [{"entry": "k", "parameters": [{"buffer": "x"}]}]})");
  ASSERT_TRUE(description.has_value()) << description.error().to_string();
  Result<KernelRun> run =
      KernelRun::create(module_text(".param .u64 x",
                                    "ld.param.u64 %rd1, [x];\nld.global.u32 %r1, [%rd1];\nadd.u32 "
                                    "%r1, %r1, 1;\nst.global.u32 [%rd1], %r1;"),
                        std::move(*description), "");
  ASSERT_TRUE(run.has_value()) << run.error().to_string();
  EXPECT_THAT(run->run().error().to_string(), HasSubstr("SIMULATOR_FAULT"));  // nothing is there
  const uint32_t value = 41;
  ASSERT_TRUE(run->fill("x", std::as_bytes(std::span(&value, 1))).ok());
  ASSERT_TRUE(run->run().has_value());
  uint32_t found = 0;
  std::memcpy(&found, run->buffer("x")->data(), sizeof(found));
  EXPECT_EQ(found, 42u);
  EXPECT_EQ(run->fill("x", {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(run->buffer("nothing").error().code(), StatusCode::kInvalidArgument);
}

TEST(KernelRun, AGridOfManySmallClustersReachesItsLimits) {
  Result<RunDescription> description = parse_launch_json(
      R"({"schema": 1, "launches": [{"entry": "k", "grid": 2147483647}], "options": {"step_limit": 5000}})");
  ASSERT_TRUE(description.has_value());
  for (const bool time : {false, true}) {
    RunDescription limited = *description;
    if (time) {
      limited.options.simulator.step_limit = uint64_t{1} << 62;
      limited.options.simulator.time_limit_ms = 20;
    }
    Result<KernelRun> run = KernelRun::create(module_text("", ""), std::move(limited), "");
    ASSERT_TRUE(run.has_value());
    const Result<RunReport> report = run->run();
    ASSERT_FALSE(report.has_value());
    EXPECT_THAT(report.error().to_string(),
                HasSubstr(time ? "time limit reached" : "step limit reached"));
  }
}

TEST(KernelRun, EveryLaunchIsCheckedBeforeTheFirst) {
  // The first would fault.
  EXPECT_THAT(
      outcome(module_text("", "trap;"),
              R"({"schema": 1, "launches": [{"entry": "k"}, {"entry": "k", "block": 1025}]})"),
      HasSubstr("INVALID_ARGUMENT: launches[1]: launch of k: grid 1x1x1 and block 1025x1x1"));
}

TEST(KernelRun, AnIndexALittleTooFarFindsNoOtherBuffer) {
  const std::string ptx = module_text(".param .u64 x, .param .u64 at",
                                      "ld.param.u64 %rd1, [x];\nld.param.u64 %rd2, [at];\n"
                                      "add.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], 1;");
  for (const int64_t at : {1024, 2048, 4096, 65536, -2048, -4096}) {
    EXPECT_THAT(outcome(ptx, fmt::format(R"({{"schema": 1, "buffers": {{
      "w": {{"dtype": "U8", "shape": 1024}}, "x": {{"dtype": "U8", "shape": 1024}},
      "y": {{"dtype": "U8", "shape": 1024}}, "z": {{"dtype": "U8", "shape": 1024}}}},
      "launches": [{{"entry": "k", "parameters": [{{"buffer": "x"}}, {{"s64": {}}}]}}]}})",
                                         at)),
                HasSubstr("out of bounds"))
        << at;
  }
}

TEST(KernelRun, AnInstructionThatWaitsCountsOnceAndCopiesCountGlobalBytes) {
  // Warp 0 waits for the copy that warp 1 starts, then stores what came back to global memory.
  const std::string ptx = module_text(
      ".param .u64 x, .param .u64 y",
      "ld.param.u64 %rd1, [x];\nld.param.u64 %rd2, [y];\nmov.u32 %r1, %tid.x;\n"
      "mov.u32 %r2, tile;\nmov.u32 %r3, bar;\nsetp.eq.u32 %p1, %r1, 0;\n"
      "@%p1 mbarrier.init.shared.b64 [%r3], 1;\n@%p1 fence.mbarrier_init.release.cluster;\n"
      "bar.sync 0;\nsetp.eq.u32 %p2, %r1, 32;\n"
      "@%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 48;\n"
      "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 48, "
      "[%r3];\n"
      "WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0;\n@!%p3 bra WAIT;\n"
      "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 32;\n"
      "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;",
      ".shared .align 16 .b8 tile[64];\n.shared .align 8 .b64 bar;");
  const Result<RunReport> report = run_json(ptx, R"({"schema": 1, "buffers": {
      "x": {"dtype": "U32", "shape": 12, "access": "in", "fill": {"iota": {}}},
      "y": {"dtype": "U32", "shape": 8, "access": "out", "expect": {"iota": {}}}},
      "launches": [{"entry": "k", "block": 64, "parameters": [{"buffer": "x"}, {"buffer": "y"}]}],
      "options": {"statistics": true}})");
  ASSERT_TRUE(report.has_value()) << report.error().to_string();
  EXPECT_TRUE(report->mismatches.empty());
  const sim::Report& launch = report->launches.front();
  uint64_t waits = 0, by_warp = 0, all = 0;
  for (const sim::Counter& c : launch.classes) {
    if (c.name == "mbarrier.try_wait") waits = c.instructions;
    all += c.instructions;
  }
  for (const sim::WarpStatistics& w : launch.statistics.warps) by_warp += w.instructions;
  EXPECT_EQ(waits, 2u);  // one of each warp, whichever of them had to wait
  EXPECT_EQ(by_warp, all);
  EXPECT_EQ(launch.statistics.copied_to_shared, 48u);
  EXPECT_EQ(launch.statistics.copied_from_shared, 32u);
  EXPECT_EQ(launch.statistics.copied_global.read, 48u);
  EXPECT_EQ(launch.statistics.copied_global.written, 32u);
}

}  // namespace
}  // namespace jitgemm::simrun
