#include "kedge/run/memory_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/model/spec/shapes.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kAmple = int64_t{1} << 42U;

MemoryInput input_of(const char* shape, int64_t rows, bool is_cuda = false) {
  MemoryInput input;
  input.model = shape_config(shape);
  input.is_cuda = is_cuda;
  input.rows = rows;
  input.longest = 512;
  input.tokens = rows * 512;
  return input;
}

MemoryFit check(const MemoryDemand& demand, const MemoryRoom& room, int64_t micro_size = 4) {
  return check_memory({demand, room, {.size_now = micro_size, .reference = "model.x.reference"}});
}

int64_t phase(const MemoryFit& verdict, const std::string& name) {
  for (const PhaseBytes& one : verdict.phases)
    if (one.name == name) return one.device;
  return 0;
}

TEST(MemoryCheck, WhatFitsFits) {
  const MemoryDemand demand{.update = input_of("135m", 4)};
  const MemoryFit verdict = check(demand, {.device = kAmple});
  EXPECT_TRUE(verdict.fits);
  EXPECT_FALSE(verdict.blocks);
  EXPECT_EQ(verdict.needed, verdict.plan.peak() + verdict.plan.snapshot);
  EXPECT_EQ(verdict.free, kAmple);
  EXPECT_EQ(verdict.worst().name, "update");
  EXPECT_LT(phase(verdict, "load"), phase(verdict, "save"));
  EXPECT_EQ(check({.update = input_of("135m", 4), .saves = false}, {.device = kAmple}).needed, verdict.plan.peak());
}

TEST(MemoryCheck, LogitsAreKeptWhereMemoryIsPlentiful) {
  const auto request = [](int64_t free, bool is_cuda = true) {
    return MemoryRequest{{.update = input_of("135m", 64, is_cuda), .saves = false}, {.device = free, .host = kAmple}, {}};
  };
  const int64_t logits = 64 * 512 * shape_config("135m").vocab_size * 4;
  MemoryRequest plenty = request(kAmple);
  const int64_t without = check_memory(plenty).needed;
  EXPECT_EQ(keep_logits(plenty), logits);
  EXPECT_EQ(plenty.demand.update.kept_logits, logits);
  const int64_t with = check_memory(plenty).needed;
  EXPECT_GT(with, without);
  EXPECT_LE(with, without + logits);
  // A quarter of what is free stays free.
  MemoryRequest enough = request(with / 3 * 4 + 4), tight = request(with / 3 * 4 - 4), cpu = request(kAmple, false);
  EXPECT_EQ(keep_logits(enough), logits);
  EXPECT_EQ(keep_logits(tight), 0);
  EXPECT_EQ(check_memory(tight).needed, without);
  EXPECT_EQ(keep_logits(cpu), 0);
  MemoryRequest score = request(kAmple);
  score.demand.update.head = {HeadKind::score, 1, false};
  EXPECT_EQ(keep_logits(score), 0);
}

TEST(MemoryCheck, WithoutRoomForACopySavesBlock) {
  const MemoryDemand demand{.update = input_of("135m", 4)};
  const MemoryPlan plan = plan_memory(demand.update);
  const MemoryFit verdict = check(demand, {.device = plan.peak() + plan.snapshot - 1});
  EXPECT_TRUE(verdict.fits);
  EXPECT_TRUE(verdict.blocks);
  EXPECT_EQ(verdict.needed, plan.peak());
}

// The copy of a GPU's state lies in the host's memory.
TEST(MemoryCheck, BesideAGpuTheHostIsLookedAtToo) {
  MemoryDemand demand{.update = input_of("135m", 4, true)};
  const MemoryFit verdict = check(demand, {.device = kAmple, .host = kAmple});
  EXPECT_EQ(verdict.needed, verdict.plan.peak());
  EXPECT_GT(verdict.host_needed, verdict.plan.snapshot);
  const MemoryFit blocking = check(demand, {.device = kAmple, .host = verdict.host_needed - 1});
  EXPECT_TRUE(blocking.fits);
  EXPECT_TRUE(blocking.blocks);
  EXPECT_EQ(blocking.host_needed, verdict.host_needed - verdict.plan.snapshot);
  demand.update.optimizer.offload_adam_states = true;
  const MemoryFit offloaded = check(demand, {.device = kAmple, .host = blocking.host_needed});
  EXPECT_FALSE(offloaded.fits) << "the moments have no room";
  EXPECT_THAT(testing::error_of([&] { require_fit(offloaded, "the run"); }), ::testing::HasSubstr("of host memory, and"));
}

TEST(MemoryCheck, RanksShareWhatIsFree) {
  const MemoryDemand demand{.update = input_of("135m", 4), .beside = 1000, .saves = false};
  const int64_t one = plan_memory(demand.update).peak();
  EXPECT_EQ(check(demand, {.device = kAmple, .num_ranks = 3}).needed, 3 * one + 1000);
  EXPECT_FALSE(check(demand, {.device = 3 * one + 999, .num_ranks = 3}).fits);
}

// Keys and values get what is left, and at most what all answers need.
TEST(MemoryCheck, KeysAndValuesTakeWhatIsLeft) {
  MemoryDemand demand{.update = input_of("135m", 4, true), .saves = false};
  const int64_t one = plan_memory(demand.update).peak();
  demand.generation = {.bytes = {.cache = 1'000'000'000, .one = 10'000'000, .workspace = 1000}};
  const auto with = [&](int64_t room) { return check(demand, {.device = room, .host = kAmple}); };
  EXPECT_EQ(with(kAmple).cache, 1'000'000'000);
  EXPECT_EQ(with(kAmple).needed, one + 1'000'000'000);
  EXPECT_EQ(with(one + 500'000'000).cache, 475'000'000) << "a twentieth is spared";
  EXPECT_TRUE(with(one + 500'000'000).fits);
  EXPECT_TRUE(with(one + 10'000'000).fits);
  EXPECT_FALSE(with(one + 10'000'000 - 1).fits) << "no room for one answer";
  EXPECT_THAT(with(one + 10'000'000 - 1).remedies, ::testing::Contains("model.engine.release_in_training=true"));
  demand.generation->releases = true;
  EXPECT_EQ(with(kAmple).needed, std::max(one, phase(with(kAmple), "generate")));
  demand.generation->given = 2'000'000'000;
  EXPECT_EQ(with(kAmple).cache, 2'000'000'000);
}

TEST(MemoryCheck, AReferenceIsSwappedWhereItDoesNotFitAndMay) {
  MemoryDemand demand{.update = input_of("135m", 4, true), .saves = false};
  demand.generation = {.bytes = {.cache = 1000, .one = 1000}};
  demand.reference = {ReferenceKind::resident, true};
  const MemoryFit wide = check(demand, {.device = kAmple, .host = kAmple});
  EXPECT_EQ(wide.reference, ReferenceKind::resident);
  EXPECT_GT(wide.reference_bytes, 0);
  const MemoryFit tight = check(demand, {.device = wide.needed - 1, .host = kAmple});
  EXPECT_TRUE(tight.fits);
  EXPECT_EQ(tight.reference, ReferenceKind::swapped);
  EXPECT_EQ(tight.needed, wide.needed - wide.reference_bytes);
  demand.reference->may_swap = false;
  const MemoryFit refused = check(demand, {.device = wide.needed - 1, .host = kAmple});
  EXPECT_FALSE(refused.fits);
  EXPECT_THAT(refused.remedies, ::testing::Contains("model.x.reference=swapped"));
}

TEST(MemoryCheck, OneChangeThatWillDoIsNamed) {
  const MemoryDemand demand{.update = input_of("135m", 8)};
  const MemoryFit verdict = check(demand, {.device = plan_memory(input_of("135m", 2)).peak()}, 8);
  EXPECT_FALSE(verdict.fits);
  EXPECT_THAT(verdict.remedies, ::testing::Contains("micro_batch_size=2"));
  EXPECT_THAT(verdict.remedies, ::testing::Not(::testing::Contains("micro_batch_size=4")));
  EXPECT_THAT(verdict.remedies, ::testing::Not(::testing::Contains("micro_batch_size=1"))) << "the largest is enough";
}

TEST(MemoryCheck, OtherwiseSeveralTogether) {
  MemoryDemand demand{.update = input_of("135m", 8)};
  MemoryInput small = input_of("135m", 1);
  demand.update.lora.emplace();
  small.lora.emplace();
  small.checkpoint = true;
  const MemoryFit verdict = check(demand, {.device = plan_memory(small).peak()}, 8);
  EXPECT_FALSE(verdict.fits);
  EXPECT_THAT(verdict.remedies, ElementsAre("micro_batch_size=1 model.activations_checkpoint_granularity=full"));
}

TEST(MemoryCheck, WhatNothingHelpsHasNoRemedies) {
  const MemoryFit verdict = check({.update = input_of("8b", 1)}, {.device = int64_t{1} << 30U}, 1);
  EXPECT_FALSE(verdict.fits);
  EXPECT_THAT(verdict.remedies, ElementsAre());
}

TEST(MemoryCheck, ARefusalSaysWhatIsNeededWhatIsFreeAndWhatHelps) {
  MemoryFit verdict;
  verdict.needed = int64_t{3} << 30U;
  verdict.free = int64_t{1} << 30U;
  verdict.fits = false;
  verdict.phases = {{.name = "generate", .device = 1}, {.name = "update", .device = 2}};
  verdict.remedies = {"a=1", "b=2 c=3"};
  EXPECT_EQ(testing::error_of([&] { require_fit(verdict, "the run"); }),
            "the run needs 3.0 GiB of memory (update), and 1.0 GiB are free. What would fit:\n  a=1\n  b=2 c=3");
  verdict.remedies.clear();
  EXPECT_EQ(testing::error_of([&] { require_fit(verdict, "the run"); }),
            "the run needs 3.0 GiB of memory (update), and 1.0 GiB are free; no setting would make it fit");
  verdict.fits = true;
  require_fit(verdict, "the run");
}

}  // namespace
}  // namespace kedge
