// SPDX-License-Identifier: Apache-2.0
// Files that a description names: what may be read, what may be written, and that both are known
// before a run is spent on them.
#include "simrun/named_file.h"

#include "simrun_test_kernels.h"
#include "support/filesystem.h"

#include <fmt/format.h>

#include <filesystem>
#include <sys/stat.h>
#include <thread>

namespace jitgemm::simrun {
namespace {

using ::testing::HasSubstr;

class NamedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/named_file_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_ + "/folder");
    ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Two buffers of 8 bytes that the kernel writes, with these further fields.
  std::string run(const std::string& x, const std::string& y = "") const {
    const std::string ptx = module_text(".param .u64 x",
                                        "ld.param.u64 %rd1, [x];\n"
                                        "st.global.u32 [%rd1], 7;");
    return outcome(ptx,
                   fmt::format(R"({{"schema": 1, "buffers": {{
        "x": {{"dtype": "U32", "shape": 2, "fill": {{"value": 1}}{}}},
        "y": {{"dtype": "U32", "shape": 2, "fill": {{"value": 2}}{}}}}},
        "launches": [{{"entry": "k", "parameters": [{{"buffer": "x"}}]}}]}})",
                               x, y),
                   folder_);
  }

  std::string folder_;
};

TEST_F(NamedFile, TextsHaveALimitAndAPipeIsReadToItsEnd) {
  const std::string pipe = folder_ + "/pipe";
  std::thread writer([&] { ASSERT_TRUE(write_file(pipe, "twelve bytes").ok()); });
  const Result<std::string> text = read_text(pipe);
  writer.join();
  ASSERT_TRUE(text.has_value()) << text.error().to_string();
  EXPECT_EQ(*text, "twelve bytes");
  EXPECT_THAT(read_text("/dev/zero", 1000).error().to_string(),
              HasSubstr("'/dev/zero': expected a file of at most 1000 bytes, found more"));
  EXPECT_THAT(read_text(folder_).error().to_string(), HasSubstr("Is a directory"));
  EXPECT_THAT(read_text(folder_ + "/none").error().to_string(), HasSubstr("cannot open"));
}

TEST_F(NamedFile, OutputsThatCannotBeWrittenAreToldBeforeTheRun) {
  struct Row {
    const char* x;
    const char* y;
    const char* expected;
  };
  const Row rows[] = {
      {R"(, "output": "none/x.bin")",                                      "",
       "buffers.x.output: cannot create '{}/none/x.bin': No such file or directory"                                                                                                           },
      {R"(, "output": "folder")",                                          "",
       "buffers.x.output: cannot create '{}/folder': Is a directory"                                                                                                                          },
      {R"(, "output": "pipe")",                                            "",
       "buffers.x.output: cannot write '{}/pipe': nobody reads the pipe"                                                                                                                      },
      {R"(, "output": "")",                                                "",                                 "buffers.x.output: expected the name of a file, found ''"                      },
      {R"(, "output": "a\u0000b")",                                        "",
       "buffers.x.output: expected the name of a file, found 'a?b'"                                                                                                                           },
      {R"(, "output": 5)",                                                 "",                                 "buffers.x.output: expected the name of a file, or an object"                  },
      {R"(, "output": {"safetensors": "/dev/null", "tensor": "t"})",       "",
       "buffers.x.output: cannot replace '/dev/null': it is no regular file"                                                                                                                  },
      {R"(, "output": {"safetensors": "t.st", "tensor": "__metadata__"})", "",
       "buffers.x.output.tensor: expected the name of a tensor"                                                                                                                               },
      {R"(, "output": "a.bin")",                                           R"(, "output": "folder/../a.bin")",
       "buffers.y.output: expected a place of its own, found that of buffers.x.output"                                                                                                        },
      {R"(, "output": {"safetensors": "t.st", "tensor": "t"})",
       R"(, "output": {"safetensors": "t.st", "tensor": "t"})",                                                "buffers.y.output: expected a place of its own, found that of buffers.x.output"},
      {R"(, "output": {"safetensors": "t.st", "tensor": "t"})",            R"(, "output": "t.st")",
       "buffers.y.output: expected a place of its own, found that of buffers.x.output"                                                                                                        },
      {R"(, "output": "/dev/full")",                                       "",
       "buffers.x.output: cannot write '/dev/full': No space left"                                                                                                                            },
      {R"(, "expect": {"value": 1, "max_abs": -1})",                       "",
       "buffers.x.expect.max_abs: expected a number from 0 up, found -1"                                                                                                                      },
  };
  for (const Row& row : rows) {
    EXPECT_THAT(run(row.x, row.y), HasSubstr(fmt::format(fmt::runtime(row.expected), folder_)))
        << row.x;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a.bin"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(NamedFile, TensorsOfOneFileAndInputsMayBeWritten) {
  EXPECT_EQ(run(R"(, "output": {"safetensors": "t.st", "tensor": "x"})",
                R"(, "access": "in", "output": {"safetensors": "t.st", "tensor": "y"})"),
            "");
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/t.st"));
}

TEST_F(NamedFile, ContentsAreNotWaitedForAtAPipe) {
  const std::string safetensors =
      outcome(module_text("", ""), R"({"schema": 1, "buffers": {"x": {"dtype": "U8", "shape": 1,
      "fill": {"safetensors": "pipe", "tensor": "t"}}}, "launches": [{"entry": "k"}]})",
              folder_);
  EXPECT_THAT(safetensors, HasSubstr("buffers.x.fill: "));
  EXPECT_THAT(safetensors, HasSubstr("not a regular file"));
}

TEST_F(NamedFile, ATraceThatDoesNotArriveIsAnError) {
  const std::string json = R"({"schema": 1, "launches": [{"entry": "k"}], "options": {"trace": ")";
  EXPECT_THAT(outcome(module_text("", ""), json + "/dev/full\"}}"),
              HasSubstr("trace: cannot write '/dev/full': No space left"));
  EXPECT_THAT(outcome(module_text("", ""), json + "none/t.txt\"}}", folder_),
              HasSubstr("trace: cannot create"));
  EXPECT_THAT(outcome(module_text("", ""), json + "pipe\"}}", folder_),
              HasSubstr("nobody reads the pipe"));
}

}  // namespace
}  // namespace jitgemm::simrun
