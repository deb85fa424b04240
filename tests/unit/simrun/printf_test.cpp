// SPDX-License-Identifier: Apache-2.0
// What kernels print by vprintf and say by failed assertions, through runs of descriptions.
#include "simrun_test_kernels.h"

#include <fmt/format.h>

namespace jitgemm::simrun {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A C string as a module variable.
std::string variable(const std::string& name, const std::string& text) {
  std::string bytes;
  for (const char c : text) bytes += fmt::format("{}, ", static_cast<int>(c));
  return fmt::format(".global .align 1 .b8 {}[{}] = {{{}0}};\n", name, text.size() + 1, bytes);
}

// A kernel that prints `format` with the block of arguments that `stores` fill. %rd1 is its
// address.
std::string printing(const std::string& format, const std::string& stores,
                     const std::string& pass = "st.param.b64 [f], %rd2;\nst.param.b64 [a], %rd3;") {
  return module_text(
      "",
      ".local .align 8 .b8 block[96];\nmov.u64 %rd1, block;\nmov.u32 %r1, %tid.x;\n" + stores +
          "\nmov.u64 %rd4, format;\ncvta.global.u64 %rd2, %rd4;\ncvta.local.u64 %rd3, %rd1;\n"
          "{\n.param .b64 f;\n.param .b64 a;\n.param .b32 r;\n" +
          pass + "\ncall.uni (r), vprintf, (f, a);\nld.param.b32 %r2, [r];\n}",
      ".extern .func (.param .b32 result) vprintf(.param .b64 f, .param .b64 a);\n" +
          variable("format", format) + variable("word", "word"));
}

std::string printed(const std::string& ptx, uint32_t threads = 1) {
  const Result<RunReport> report = run_json(
      ptx, fmt::format(R"({{"schema": 1, "launches": [{{"entry": "k", "block": {}}}]}})", threads));
  return report ? report->printed : report.error().to_string();
}

TEST(Printf, ConversionsTakeTheirArgumentsFromTheBlock) {
  const std::string kSeven = "st.local.u32 [%rd1], 7;";
  const std::string kMinus = "st.local.u32 [%rd1], -1;";
  const std::string kMinus64 = "st.local.u64 [%rd1], -1;";
  const std::string kDouble = "mov.b64 %rd5, 0d400A000000000000;\nst.local.u64 [%rd1], %rd5;";
  const std::string kWord =
      "mov.u64 %rd5, word;\ncvta.global.u64 %rd5, %rd5;\nst.local.u64 [%rd1], %rd5;";
  const auto expect = [](const std::string& format, const std::string& stores,
                         const std::string& text) {
    EXPECT_EQ(printed(printing(format, stores)), text) << format;
  };
  expect("plain 100%%\n", "", "plain 100%\n");
  expect("[%d %5d|%-4d|%04d]", "st.local.v4.u32 [%rd1], {%r1, %r1, %r1, %r1};",
         "[0     0|0   |0000]");
  expect("%i", kMinus, "-1");
  expect("%u %x", "st.local.u32 [%rd1], -1;\nst.local.u32 [%rd1+4], 255;", "4294967295 ff");
  expect("%hd %hhu", "st.local.u32 [%rd1], 65535;\nst.local.u32 [%rd1+4], 511;", "-1 255");
  expect("%lld %llx", kMinus64 + "\nst.local.u64 [%rd1+8], 255;", "-1 ff");
  // A wide argument begins at a multiple of its size.
  expect("%d %ld", kSeven + "\nst.local.u64 [%rd1+8], 5;", "7 5");
  expect("%.2f", kDouble, "3.25");
  expect("%e", kDouble, "3.250000e+00");
  expect("%a", kDouble, "0x1.ap+1");
  expect("%s!", kWord, "word!");
  expect("[%6s|%-6.2s]", kWord + "\nst.local.u64 [%rd1+8], %rd5;", "[  word|wo    ]");
  expect("%s", "st.local.u64 [%rd1], 0;", "(null)");
  expect("%c%c", "st.local.u32 [%rd1], 104;\nst.local.u32 [%rd1+4], 105;", "hi");
  expect("%p", "st.local.u64 [%rd1], 4096;", "0x1000");
  expect("%*d", "st.local.u32 [%rd1], 4;\nst.local.u32 [%rd1+4], 7;", "   7");
  expect("[%*d|%.*d]", "st.local.v4.u32 [%rd1], {-4, 7, 3, 7};", "[7   |007]");
  expect("[%.*d]", "st.local.u32 [%rd1], -1;\nst.local.u32 [%rd1+4], 7;", "[7]");
  expect("%q%", "", "%q%");
  expect("%999999999d|", kSeven, std::string(1023, ' ') + "7|");
}

TEST(Printf, LanesPrintInTheirOrder) {
  EXPECT_EQ(printed(printing("%d ", "st.local.u32 [%rd1], %r1;"), 5), "0 1 2 3 4 ");
}

TEST(Printf, NothingOutsideOfTheProgramsMemoryIsPrinted) {
  for (const char* address : {"1", "-8", "140737488351232"}) {
    EXPECT_THAT(printed(printing("%s", fmt::format("st.local.u64 [%rd1], {};", address))),
                HasSubstr("SIMULATOR_FAULT"));
    EXPECT_THAT(printed(printing("%d", "",
                                 fmt::format("st.param.b64 [f], %rd2;\n"
                                             "st.param.b64 [a], {};",
                                             address))),
                HasSubstr("SIMULATOR_FAULT"));
  }
  EXPECT_THAT(printed(printing("%d", "")), HasSubstr("never written"));
  EXPECT_EQ(printed(printing("%d", "", "st.param.b64 [f], 0;\nst.param.b64 [a], 0;")), "(null)");
}

TEST(Printf, AFaultTellsWhatWasPrintedBefore) {
  std::string ptx = printing("reached %d\n", "st.local.u32 [%rd1], 3;");
  ptx.replace(ptx.rfind("ret;"), 4, "trap;\nret;");
  EXPECT_THAT(printed(ptx), AllOf(HasSubstr("trap"), HasSubstr("printed:  reached 3\n")));
}

TEST(Assertion, TheFaultHasItsTextAndPlace) {
  const std::string ptx = module_text(
      "",
      "mov.u64 %rd1, text;\ncvta.global.u64 %rd1, %rd1;\nmov.u64 %rd2, file;\n"
      "cvta.global.u64 %rd2, %rd2;\nmov.u64 %rd3, function;\ncvta.global.u64 %rd3, %rd3;\n"
      "{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n.param .b64 d;\n.param .b64 e;\n"
      "st.param.b64 [a], %rd1;\nst.param.b64 [b], %rd2;\nst.param.b32 [c], 42;\n"
      "st.param.b64 [d], %rd3;\nst.param.b64 [e], 1;\n"
      "call.uni\n__assertfail,\n(a, b,\nc, d, e\n);\n}",
      ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "
      ".param .b64 e);\n" +
          variable("text", "n < 5") + variable("file", "kernel.cu") +
          variable("function", "void k()"));
  EXPECT_THAT(printed(ptx),
              AllOf(HasSubstr("failed in lanes 0x00000001: n < 5, at kernel.cu:42, in void k()"),
                    HasSubstr("call.uni __assertfail, (a, b, c, d, e );")));
}

}  // namespace
}  // namespace jitgemm::simrun
