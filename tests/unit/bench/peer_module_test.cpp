// SPDX-License-Identifier: Apache-2.0
// Peers from outside, against a driver without a GPU whose device memory is the host's.
#include "bench/peer_module.h"

#include "bench/gpu_session.h"
#include "bench/shape_run.h"
#include "support/filesystem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <unistd.h>

namespace jitgemm::bench::peer_module_test {
namespace {

using testing::HasSubstr;

class PeerModuleTest : public testing::Test {
 protected:
  void SetUp() override {
    ContextOptions options;
    options.driver = JITGEMM_FAKE_CUDA;
    context_ = std::move(*Context::create(options));
    auto session = GpuSession::create(*context_, **context_->device("cuda:0", std::nullopt));
    if (!session && session.error().code() == StatusCode::kNoCompiler) {
      GTEST_SKIP() << session.error().message();
    }
    ASSERT_TRUE(session) << session.error().to_string();
    session_ = std::move(*session);
  }

  static GemmProblem problem(int64_t n) {
    GemmProblem p;
    p.m = 5;
    p.n = n;
    p.k = 256;
    return p;
  }
  uint8_t first_byte(uint64_t address) {
    uint8_t byte = 0;
    EXPECT_TRUE(session_->device().copy_to_host(&byte, address, 1).ok());
    return byte;
  }
  // Launches set 2 of three, and returns the first byte of its out.
  void expect_launch_reaches_its_set(const PeerModule& module, uint8_t written,
                                     bool programmatic = false) {
    const auto operands = Operands::draw(*session_, problem(256), 3);
    ASSERT_TRUE(operands);
    const auto contender = make_module_contender(module, problem(256), *operands, programmatic);
    ASSERT_TRUE(contender) << contender.error().to_string();
    EXPECT_EQ((*contender)->info().programmatic, programmatic);
    for (const OperandSet& set : operands->sets()) {
      ASSERT_TRUE(session_->fill(set.out, 0xff, 1).ok());
    }
    const Status launched = (*contender)->launch(2, session_->stream());
    ASSERT_TRUE(launched.ok()) << launched.to_string();
    EXPECT_EQ(first_byte(operands->sets()[2].out), written);
    EXPECT_EQ(first_byte(operands->sets()[1].out), 0xff);
  }

  // The same of groups: the last row in use of the last group, in the form that peers get.
  void expect_launch_reaches_its_rows(const PeerModule& module, const GroupedShape& shape,
                                      uint8_t written) {
    const auto operands = GroupedOperands::draw(*session_, shape, DType::kBF16, 3);
    ASSERT_TRUE(operands);
    const auto contender = make_module_contender(module, DType::kBF16, *operands);
    ASSERT_TRUE(contender) << contender.error().to_string();
    const GroupedForms& form = operands->form(peer_form(shape));
    EXPECT_EQ((*contender)->info().form, form.layout.form);
    const auto last =
        static_cast<uint64_t>(form.layout.begins.back() + operands->counts().back() - 1);
    const uint64_t at = form.sets[2].out + last * static_cast<uint64_t>(2 * shape.n);
    ASSERT_TRUE(session_->fill(at, 0xff, 1).ok());
    const Status launched = (*contender)->launch(2, session_->stream());
    ASSERT_TRUE(launched.ok()) << launched.to_string();
    EXPECT_EQ(first_byte(at), written);
  }

  std::shared_ptr<Context> context_;
  std::unique_ptr<GpuSession> session_;
};

constexpr GroupedShape kPaddedGroups{3, 9, 0, 256, 256};
constexpr GroupedShape kMaskedGroups{3, 20, 9, 256, 256};

TEST_F(PeerModuleTest, ALibraryIsLaunchedWithItsSet) {
  const auto module = PeerModule::load(JITGEMM_PEER_STUB, "");
  ASSERT_TRUE(module) << module.error().to_string();
  EXPECT_EQ((*module)->name(), "stub");
  expect_launch_reaches_its_set(**module, 2);
  expect_launch_reaches_its_set(**module, 102, /*programmatic=*/true);
}

TEST_F(PeerModuleTest, EdgesAreOffOnBothSidesAndThenOnOnBoth) {
  const auto module = PeerModule::load(JITGEMM_PEER_STUB, "");
  ASSERT_TRUE(module);
  ShapeRunOptions options;
  options.modules = {module->get()};
  options.pdl = PdlEdges::kBoth;
  const auto shape = run_shape(*session_, {*plan_operation(problem(256), {132})}, nullptr, options);
  ASSERT_TRUE(shape) << shape.error().to_string();
  std::string contenders;
  for (const ContenderResult& c : shape->contenders) {
    contenders += fmt::format("{} {}, ", c.info.name, c.info.programmatic);
  }
  EXPECT_EQ(contenders, "jitgemm false, jitgemm true, stub false, stub true, ");
}

TEST_F(PeerModuleTest, ARefusalIsTheReasonInTheResultAndOthersGoOn) {
  const auto module = PeerModule::load(JITGEMM_PEER_STUB, "");
  ASSERT_TRUE(module);
  ShapeRunOptions options;
  options.modules = {module->get()};
  const auto shape = run_shape(*session_, {*plan_operation(problem(128), {132})}, nullptr, options);
  ASSERT_TRUE(shape) << shape.error().to_string();
  ASSERT_EQ(shape->contenders.size(), 2u);
  EXPECT_EQ(shape->contenders[1].info.name, "stub");
  EXPECT_THAT(shape->contenders[1].not_timed,
              HasSubstr("n = 128 with 20 sets of m = 5 (8) is not for me"));
}

TEST_F(PeerModuleTest, ALibraryIsLaunchedWithItsGroups) {
  const auto module = PeerModule::load(JITGEMM_PEER_STUB, "");
  ASSERT_TRUE(module);
  expect_launch_reaches_its_rows(**module, kPaddedGroups, 2);
  expect_launch_reaches_its_rows(**module, kMaskedGroups, 2);
}

TEST_F(PeerModuleTest, ARefusedGroupedShapeIsInTheResultBesideOurForms) {
  const auto module = PeerModule::load(JITGEMM_PEER_STUB, "");
  ASSERT_TRUE(module);
  ShapeRunOptions options;
  options.modules = {module->get()};
  const GroupedShape groups{3, 9, 0, 128, 256};
  std::vector<OperationPlan> plans;
  for (const GemmProblem& p : grouped_problems(groups, problem(128))) {
    const auto plan = plan_operation(p, {132});
    ASSERT_TRUE(plan) << plan.error().to_string();
    plans.push_back(*plan);
  }
  const auto shape = run_grouped_shape(*session_, groups, plans, nullptr, options);
  ASSERT_TRUE(shape) << shape.error().to_string();
  EXPECT_EQ(shape->shape, (Shape{27, 128, 256}));
  std::string ours;
  for (const ContenderResult& c : shape->contenders) {
    ours += fmt::format("{} {} {}, ", c.info.name, grouped_form_name(c.info.form), c.info.layout);
  }
  EXPECT_EQ(ours,
            "jitgemm tight row_indices, jitgemm tight row_pointers, jitgemm padded row_indices, "
            "stub padded , ");
  EXPECT_THAT(shape->contenders[0].not_timed, HasSubstr("wrong result"));
  EXPECT_THAT(shape->contenders[3].not_timed,
              HasSubstr("layout 1, 3 groups of 384 rows, the last with 9"));
}

TEST_F(PeerModuleTest, AWrongResultOfAPeerIsNotTimed) {
  const auto module = PeerModule::load(JITGEMM_PEER_STUB, "");
  ASSERT_TRUE(module);
  ShapeRunOptions options;
  options.modules = {module->get()};
  const auto shape = run_shape(*session_, {*plan_operation(problem(256), {132})}, nullptr, options);
  ASSERT_TRUE(shape) << shape.error().to_string();
  EXPECT_THAT(shape->contenders[1].not_timed, HasSubstr("wrong result"));
  EXPECT_TRUE(shape->contenders[1].rested_us.empty());
}

TEST_F(PeerModuleTest, APythonFileIsLaunchedWithItsSetAndItsExceptionsAreReasons) {
#ifdef JITGEMM_SANITIZED
  GTEST_SKIP() << "an interpreter is not built for sanitizers";
#endif
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("peer's_{}.py", getpid())).string();
  constexpr const char* kSource = R"py(
import ctypes
name = "python_stub"
def open(problem):
    if problem.n == 128:
        raise ValueError(f"{problem.set_count} sets of m = {problem.m} ({problem.padded_m})")
    return problem
def launch(problem, index, stream):
    assert stream
    ctypes.memset(getattr(problem, "row", 0) + problem.sets[index].out, 40 + index, 1)
def open_grouped(problem):
    assert problem.k_blocks == 2 and len(problem.counts) == problem.groups
    rows = (ctypes.c_int32 * (problem.rows if problem.layout == 1 else problem.groups)).from_address(
        problem.group_rows)
    last = 2 * problem.rows + rows[2] - 1 if problem.layout == 4 else max(i for i, g in enumerate(rows) if g >= 0)
    problem.row = last * problem.n * problem.out_bytes
    return problem
)py";
  ASSERT_TRUE(write_file(file, kSource).ok());
  const auto module = PeerModule::load(file, "");
  std::filesystem::remove(file);
  if (!module && module.error().code() == StatusCode::kUnsupported) {
    GTEST_SKIP() << module.error().message();
  }
  ASSERT_TRUE(module) << module.error().to_string();
  EXPECT_EQ((*module)->name(), "python_stub");
  expect_launch_reaches_its_set(**module, 42);
  expect_launch_reaches_its_rows(**module, kPaddedGroups, 42);
  expect_launch_reaches_its_rows(**module, kMaskedGroups, 42);
  const auto operands = Operands::draw(*session_, problem(128), 2);
  const auto refused = make_module_contender(**module, problem(128), *operands);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("ValueError: 2 sets of m = 5 (8)"));
  const auto late = make_module_contender(**module, problem(256), *operands, /*programmatic=*/true);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message(), HasSubstr("programmatic dependence"));
}

TEST_F(PeerModuleTest, APythonFileThatIsWrongIsRefusedWithPythonsWords) {
#ifdef JITGEMM_SANITIZED
  GTEST_SKIP() << "an interpreter is not built for sanitizers";
#endif
  const auto module = PeerModule::load("/nowhere/peer.py", "");
  ASSERT_FALSE(module);
  if (module.error().code() == StatusCode::kUnsupported) GTEST_SKIP() << module.error().message();
  EXPECT_EQ(module.error().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(module.error().message(), HasSubstr("FileNotFoundError"));
}

TEST(PeerModuleAlone, ALibraryWithoutTheInterfaceIsRefusedWithWhatItLacks) {
  const auto module = PeerModule::load(JITGEMM_FAKE_CUDA, "");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().message(), HasSubstr("lacks jitgemm_peer_version"));
}

}  // namespace
}  // namespace jitgemm::bench::peer_module_test
