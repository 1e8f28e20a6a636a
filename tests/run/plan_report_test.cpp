#include "kedge/run/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kGiB = int64_t{1} << 30U;

MemoryFit verdict_of(bool fits) {
  MemoryFit verdict;
  verdict.phases = {{.name = "generate", .device = 2 * kGiB}, {.name = "update", .device = 3 * kGiB}};
  verdict.needed = 3 * kGiB;
  verdict.free = fits ? 4 * kGiB : kGiB;
  verdict.fits = fits;
  if (!fits) verdict.remedies = {"model.micro_batch_size=1"};
  return verdict;
}

TEST(PlanReport, TheWorstPhaseIsMarkedAndWhatWouldFitIsNamed) {
  const std::string good = memory_text(verdict_of(true), {{"critic", kGiB}, {"nothing", 0}});
  EXPECT_THAT(good, HasSubstr("  update                 3.0 GiB  most\n"));
  EXPECT_THAT(good, HasSubstr("critic"));
  EXPECT_THAT(good, Not(HasSubstr("nothing")));
  EXPECT_THAT(good, HasSubstr("\nfits: 3.0 GiB needed, 4.0 GiB free\n"));
  const std::string bad = memory_text(verdict_of(false), {});
  EXPECT_THAT(bad, HasSubstr("does not fit: 3.0 GiB needed, 1.0 GiB free\n  would fit: model.micro_batch_size=1\n"));
}

TEST(PlanReport, JsonSaysTheSame) {
  Json json;
  add_verdict(json, verdict_of(false));
  EXPECT_FALSE(json.at("fits", "").as_bool(""));
  EXPECT_EQ(json.at("phases", "").at("update", "").as_integer(""), 3 * kGiB);
  EXPECT_EQ(json.at("would_fit", "").as_array("").size(), 1U);
}

TEST(PlanReport, ADiskThatIsTooSmallDoesNotFit) {
  PlanReport report;
  add_disk(report, {.folder = "/x", .free = 10 * kGiB, .checkpoint = kGiB, .num_kept = 2});
  EXPECT_TRUE(report.fits);
  EXPECT_THAT(report.text, HasSubstr("2 checkpoints of 1.0 GiB; 10.0 GiB free in /x"));
  add_disk(report, {.folder = "/x", .free = kGiB, .checkpoint = kGiB, .num_kept = 2});
  EXPECT_FALSE(report.fits);
}

}  // namespace
}  // namespace kedge
