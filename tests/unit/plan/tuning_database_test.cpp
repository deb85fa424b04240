// SPDX-License-Identifier: Apache-2.0
#include "plan/tuning_database.h"

#include "plan/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

namespace jitgemm::tuning_database_test {
namespace {

using testing::HasSubstr;

GemmProblem problem(int64_t m = 64) {
  GemmProblem p;
  p.m = m;
  p.n = 4096;
  p.k = 7168;
  return p;
}

// A plan that the model does not choose by itself.
PlanOverrides narrow_plan() {
  PlanOverrides overrides;
  overrides.family = KernelFamily::kSm90;
  overrides.tile_m = 64;
  overrides.tile_n = 48;
  overrides.split_k = 1;
  return overrides;
}

TunedPlan row(const GemmProblem& p, std::string device = "GPU A",
              std::string date = "2026-01-01T00:00:00Z") {
  TunedPlan tuned;
  tuned.problem = tuning_key(p);
  tuned.device = std::move(device);
  tuned.sm_count = 132;
  tuned.plan = narrow_plan();
  tuned.time_us = 12.5;
  tuned.spread = 0.02;
  tuned.model_time_us = 13;
  tuned.candidates = 12;
  tuned.driver_version = 13000;
  tuned.version = "0.1.0";
  tuned.date = std::move(date);
  return tuned;
}

PlanRequest request_for(const TuningDatabase& database, std::string device = "GPU A") {
  PlanRequest request;
  request.sm_count = 132;
  request.tuning = &database;
  request.device_name = std::move(device);
  return request;
}

TEST(TuningDatabase, AFileHoldsEveryField) {
  TuningDatabase database;
  database.put(row(problem()));
  const auto again = TuningDatabase::parse(database.to_json());
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->to_json(), database.to_json());
  const auto found = again->find(problem(), "GPU A", 132);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->plan, narrow_plan());
  EXPECT_EQ(found->time_us, 12.5);
}

TEST(TuningDatabase, OfTwoRowsTheLaterMeasurementStaysWhateverTheOrder) {
  TunedPlan early = row(problem(), "GPU A", "2026-01-01T00:00:00Z");
  TunedPlan late = row(problem(), "GPU A", "2026-02-01T00:00:00Z");
  late.time_us = 11;
  TuningDatabase one;
  one.put(early);
  TuningDatabase two;
  two.put(late);
  TuningDatabase forward = one;
  forward.merge(two);
  TuningDatabase backward = two;
  backward.merge(one);
  EXPECT_EQ(forward.to_json(), backward.to_json());
  EXPECT_EQ(forward.size(), 1u);
  EXPECT_EQ(forward.find(problem(), "GPU A", 132)->time_us, 11);
}

TEST(TuningDatabase, ARowIsForItsDeviceAndSmCountAlone) {
  TuningDatabase database;
  database.put(row(problem()));
  EXPECT_FALSE(database.find(problem(), "GPU B", 132));
  EXPECT_FALSE(database.find(problem(), "GPU A", 114));
  EXPECT_FALSE(database.find(problem(65), "GPU A", 132));
  // What plans for a device that is not there does not know its name.
  EXPECT_TRUE(database.find(problem(), "", 132));
}

TEST(TuningKey, MCountsAsFarAsItsPolicyLetsAPlanSeeIt) {
  const auto key = [](int64_t m, MPolicy policy) {
    GemmProblem p = problem(m);
    p.m_policy = policy;
    return tuning_key(p);
  };
  EXPECT_NE(key(65, MPolicy::kExact), key(66, MPolicy::kExact));
  EXPECT_EQ(key(65, MPolicy::kClass), key(96, MPolicy::kClass));
  EXPECT_NE(key(64, MPolicy::kClass), key(65, MPolicy::kClass));
  EXPECT_EQ(key(1, MPolicy::kAny), key(5000, MPolicy::kAny));
}

TEST(TuningKey, OfGroupsHoldsTheRowsOfOneAndNotHowManyThereAre) {
  const auto key = [](int64_t m, int64_t expected_m, MPolicy policy, auto change) {
    GemmProblem p = problem(m);
    p.m_policy = policy;
    p.grouping.layout = GroupLayout::kRowIndices;
    p.grouping.groups = 8;
    p.grouping.expected_m = expected_m;
    change(p.grouping);
    return tuning_key(p);
  };
  const auto nothing = [](Grouping&) {};
  const std::string one = key(64, 0, MPolicy::kExact, nothing);
  EXPECT_EQ(one, key(5000, 8, MPolicy::kClass, nothing));
  EXPECT_EQ(one, key(5000, 8, MPolicy::kAny, nothing));
  EXPECT_EQ(one, key(64, 0, MPolicy::kExact, [](Grouping& g) {
              g.row_alignment = 128, g.zero_ungrouped = true, g.count_invalid = true;
            }));
  EXPECT_NE(one, key(64, 200, MPolicy::kExact, nothing));
  EXPECT_NE(one, key(64, 0, MPolicy::kExact, [](Grouping& g) { g.row_alignment = 8; }));
  EXPECT_NE(one, key(64, 0, MPolicy::kExact, [](Grouping& g) { g.groups = 9; }));
  EXPECT_NE(one, key(64, 0, MPolicy::kExact, [](Grouping& g) { g.layout = GroupLayout::kMasked; }));
}

TEST(TuningKey, DistancesOfDenseRowsSayNothing) {
  GemmProblem p = problem();
  p.lda = p.k;
  p.ldo = p.n;
  p.a_scale_ld = p.k_blocks();
  EXPECT_EQ(tuning_key(p), tuning_key(problem()));
  p.lda = p.k + 16;
  EXPECT_NE(tuning_key(p), tuning_key(problem()));
}

TEST(TuningDatabase, WhatIsNoDatabaseIsRefusedWithItsRow) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"",                                           "tuning database"          },
      {"[]",                                         "\"schema\": 1"            },
      {R"({"schema": 2, "rows": []})",               "\"schema\": 1"            },
      {R"({"schema": 1})",                           "rows: expected an array"  },
      {R"({"schema": 1, "rows": [7]})",              "row 0: expected an object"},
      {R"({"schema": 1, "rows": [{"problem": 1}]})", "row 0: problem"           },
      {R"({"schema": 1, "rows": [], "rows": []})",   "tuning database"          },
  };
  for (const auto& c : cases) {
    const auto database = TuningDatabase::parse(c.text);
    ASSERT_FALSE(database) << c.text;
    EXPECT_EQ(database.error().code(), StatusCode::kCorruptData) << c.text;
    EXPECT_THAT(database.error().message(), HasSubstr(c.says)) << c.text;
  }
}

TEST(TuningDatabase, APlanWithAnUnknownFieldIsRefused) {
  TuningDatabase database;
  database.put(row(problem()));
  std::string text = database.to_json();
  text.replace(text.find("tile_m"), 6, "tile_q");
  EXPECT_THAT(TuningDatabase::parse(text).error().message(), HasSubstr("tile_q"));
}

TEST(TuningDatabase, WhatTheLibraryShipsCanBeRead) {
  for (const std::string_view text : embedded_tuning_files()) {
    const auto database = TuningDatabase::parse(text);
    EXPECT_TRUE(database) << database.error().to_string();
  }
  EXPECT_FALSE(embedded_tuning_files().empty());
}

// Of a text that is not read whole, each row is found, and the later of two measurements wins.
TEST(TuningDatabase, RowsAreReadOneAtATimeFromATextThatIsNotReadWhole) {
  TuningDatabase written;
  for (const int64_t m : {1, 64, 65}) written.put(row(problem(m)));
  const std::string text = written.to_json();
  TuningDatabase lazy;
  lazy.add_unread(text);
  EXPECT_EQ(lazy.size(), 0u);
  for (const int64_t m : {1, 64, 65}) {
    const auto found = lazy.find(problem(m), "GPU A", 132);
    ASSERT_TRUE(found);
    const auto whole = written.find(problem(m), "GPU A", 132);
    EXPECT_EQ(found->problem, whole->problem);
    EXPECT_EQ(found->time_us, whole->time_us);
    EXPECT_EQ(found->plan, whole->plan);
  }
  EXPECT_FALSE(lazy.find(problem(2), "GPU A", 132));
  EXPECT_FALSE(lazy.find(problem(), "GPU A", 114));
  TunedPlan later = row(problem());
  later.date = "2999-01-01T00:00:00Z";
  later.time_us = 3;
  lazy.put(later);
  EXPECT_EQ(lazy.find(problem(), "GPU A", 132)->time_us, 3);
  later.date = "1999-01-01T00:00:00Z";
  TuningDatabase older;
  older.put(later);
  older.add_unread(text);
  EXPECT_NE(older.find(problem(), "GPU A", 132)->time_us, 3);
}

TEST(TunedPlanning, ARowWinsOverTheModelAndSaysSo) {
  TuningDatabase database;
  database.put(row(problem()));
  const auto plan = plan_gemm(problem(), request_for(database));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->source, PlanSource::kDatabase);
  EXPECT_EQ(plan->tile_n, 48);
  EXPECT_THAT(plan->reasons.front(), HasSubstr("12.50 us"));
  EXPECT_THAT(to_string(*plan), HasSubstr("(database)"));
  EXPECT_EQ(plan_gemm(problem(), request_for(database, "GPU B"))->source, PlanSource::kModel);
}

// A planner that has changed may no longer have a plan that was measured with an older one.
TEST(TunedPlanning, EveryRowThatTheLibraryShipsIsAPlanOfThisBuild) {
  for (const std::string_view text : embedded_tuning_files()) {
    const auto database = TuningDatabase::parse(text);
    ASSERT_TRUE(database);
    TuningDatabase as_opened;
    as_opened.add_unread(text);
    for (const TunedPlan* shipped : database->rows()) {
      GemmProblem p;
      long long m = 0;
      long long n = 0;
      long long k = 0;
      char out[8] = {};
      // A row of groups is known by its name, which this does not take apart.
      if (!shipped->problem.starts_with("block_scaled_mm")) continue;
      ASSERT_EQ(std::sscanf(shipped->problem.c_str(),
                            "block_scaled_mm sm_90a m=%lld n=%lld k=%lld e4m3*e4m3->%7s", &m, &n,
                            &k, out),
                4)
          << shipped->problem;
      p.m = m;
      p.n = n;
      p.k = k;
      p.out_dtype = *parse_dtype(out);
      // Of products behind aligned rows.
      const auto field = [&](const char* name, int64_t& value) {
        const size_t at = shipped->problem.find(name);
        if (at != std::string::npos)
          value = std::stoll(shipped->problem.substr(at + std::strlen(name)));
      };
      field(" lda=", p.lda);
      field(" ldb=", p.ldb);
      field(" a_scale_ld=", p.a_scale_ld);
      field(" b_scale_ld=", p.b_scale_ld);
      ASSERT_EQ(tuning_key(p), shipped->problem);
      PlanRequest request = request_for(as_opened, shipped->device);
      request.sm_count = shipped->sm_count;
      EXPECT_EQ(plan_gemm(p, request)->source, PlanSource::kDatabase) << shipped->problem;
    }
  }
}

TEST(TunedPlanning, AnOverrideWinsOverARow) {
  TuningDatabase database;
  database.put(row(problem()));
  PlanRequest request = request_for(database);
  request.overrides.stages = 3;
  const auto plan = plan_gemm(problem(), request);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->source, PlanSource::kOverride);
}

TEST(TunedPlanning, ARowThatThisBuildCannotPlanIsPassedOverWithAReason) {
  TuningDatabase database;
  TunedPlan gone = row(problem());
  gone.plan.constants = {
      {"kOfAnOtherVersion", 1}
  };
  database.put(gone);
  const auto plan = plan_gemm(problem(), request_for(database));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->source, PlanSource::kModel);
  EXPECT_THAT(plan->reasons.back(), HasSubstr("does not have"));
}

TEST(TunedPlanning, TheOverridesOfAPlanMakeItAgain) {
  for (const int64_t m : {1, 64, 349, 4096}) {
    const auto candidates = plan_candidates(problem(m), {132});
    ASSERT_TRUE(candidates);
    ASSERT_FALSE(candidates->empty());
    for (const size_t i : {size_t{0}, candidates->size() / 2, candidates->size() - 1}) {
      const GemmPlan& wanted = (*candidates)[i];
      PlanRequest request{132};
      request.overrides = overrides_of(wanted);
      const auto made = plan_gemm(problem(m), request);
      ASSERT_TRUE(made) << plan_identity(wanted);
      EXPECT_EQ(plan_identity(*made), plan_identity(wanted));
    }
  }
}

TEST(RowBits, ArePromisedWhereOnePlanServesEveryM) {
  GemmProblem p = problem();
  EXPECT_TRUE(row_bits_depend_on_m(*plan_gemm(p)));
  p.m_policy = MPolicy::kAny;
  EXPECT_FALSE(row_bits_depend_on_m(*plan_gemm(p)));
  p.m_policy = MPolicy::kExact;
  p.batch_invariant = true;
  const auto plan = plan_gemm(p);
  EXPECT_FALSE(row_bits_depend_on_m(*plan));
  EXPECT_EQ(plan->split_k, 1);
  EXPECT_THAT(to_string(*plan), HasSubstr("do not depend on m"));
}

TEST(RowBits, NoCandidateOfABatchInvariantProblemSplitsOrSwaps) {
  GemmProblem p = problem(1);
  p.batch_invariant = true;
  const auto candidates = plan_candidates(p, {132});
  ASSERT_TRUE(candidates) << candidates.error().to_string();
  EXPECT_FALSE(candidates->empty());
  for (const GemmPlan& plan : *candidates) {
    EXPECT_EQ(plan.split_k, 1);
    EXPECT_EQ(plan.family, KernelFamily::kSm90);
  }
}

}  // namespace
}  // namespace jitgemm::tuning_database_test
