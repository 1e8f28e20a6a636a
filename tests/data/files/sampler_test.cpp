#include "kedge/data/files/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kedge/core/random.h"
#include "kedge/dist/partition.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;
using Batch = std::vector<int64_t>;

std::vector<Batch> take(Sampler& sampler, int count) {
  std::vector<Batch> batches;
  for (int i = 0; i < count; ++i) batches.push_back(sampler.next());
  return batches;
}

const SamplerOptions kOptions = {.num_rows = 21, .batch_size = 4};

TEST(Sampler, BatchesAreSlicesOfOnePermutationAnEpoch) {
  Sampler sampler(kOptions, "f");
  EXPECT_EQ(sampler.batches_per_epoch(), 5);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto order = permutation(21, 1234 + epoch);
    for (int b = 0; b < 5; ++b) EXPECT_EQ(sampler.next(), Batch(order.begin() + b * 4, order.begin() + b * 4 + 4)) << epoch << " " << b;
  }
  EXPECT_EQ(sampler.consumed_samples(), 60);
  EXPECT_EQ(sampler.epoch(), 3);
}

// 1000 rows, 512 a batch: the rest of an epoch is never served as a short batch.
TEST(Sampler, AnEpochEndsAfterItsFullBatches) {
  Sampler sampler({.num_rows = 1000, .batch_size = 512}, "f");
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(sampler.epoch(), epoch);
    const auto order = permutation(1000, 1234 + static_cast<uint64_t>(epoch));
    EXPECT_EQ(sampler.next(), Batch(order.begin(), order.begin() + 512));
  }
  EXPECT_EQ(sampler.consumed_samples(), 3 * 512);
}

// Beyond what a float or 32 bits can count.
TEST(Sampler, CountsFar) {
  const int64_t epochs = int64_t{1} << 55, far = 20 * epochs + 4;
  Sampler sampler(kOptions, "f"), restored(kOptions, "f");
  sampler.seek(far);
  EXPECT_EQ(sampler.epoch(), epochs);
  EXPECT_EQ(sampler.consumed_samples(), far);
  restored.restore(Json::parse(sampler.state().dump()));
  EXPECT_EQ(restored.consumed_samples(), far);
  EXPECT_EQ(restored.next(), sampler.next());
}

TEST(Sampler, AnEpochHasNoRowTwiceAndLosesOnlyTheTail) {
  Sampler sampler(kOptions, "f");
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::set<int64_t> seen;
    for (const Batch& batch : take(sampler, 5)) seen.insert(batch.begin(), batch.end());
    EXPECT_EQ(seen.size(), 20U);
    EXPECT_TRUE(*seen.begin() >= 0 && *seen.rbegin() < 21);
  }
}

TEST(Sampler, ResumingAnywhereGivesTheBatchesOfAnUnbrokenRun) {
  Sampler unbroken(kOptions, "f");
  const auto wanted = take(unbroken, 13);
  for (int stop = 0; stop <= 12; ++stop) {
    Sampler first(kOptions, "f");
    take(first, stop);
    Sampler restored(kOptions, "f"), sought(kOptions, "f");
    restored.restore(Json::parse(first.state().dump()));
    sought.seek(first.consumed_samples());
    const std::vector<Batch> rest(wanted.begin() + stop, wanted.end());
    EXPECT_EQ(take(restored, 13 - stop), rest) << stop;
    EXPECT_EQ(take(sought, 13 - stop), rest) << stop;
    EXPECT_EQ(restored.consumed_samples(), 52);
  }
}

TEST(Sampler, RanksTakeNeighbouringSharesOfTheSameBatch) {
  const SamplerOptions options = {.num_rows = 100, .batch_size = 8};
  Sampler alone(options, "f");
  const auto wanted = take(alone, 12);
  for (int num_ranks : {1, 2, 3}) {
    std::vector<Batch> together(12);
    for (int rank = 0; rank < num_ranks; ++rank) {
      Sampler own(options, "f");  // every rank has its own, and no word passes between them
      for (Batch& batch : together) {
        const Batch rows = own.next();
        const Share share = share_of(8, rank, num_ranks);
        batch.insert(batch.end(), rows.begin() + share.begin, rows.begin() + share.end);
      }
    }
    EXPECT_EQ(together, wanted) << num_ranks;
  }
}

// The shapes of the specification's vector: 21 rows, two rows a rank and two ranks.
TEST(Sampler, APositionLeavesTheRestOfItsEpoch) {
  for (const auto& [consumed, left] : {std::pair(0, 5), std::pair(8, 3), std::pair(20, 5)}) {
    Sampler sampler(kOptions, "f");
    sampler.seek(consumed);
    const int64_t epoch = sampler.epoch();
    EXPECT_EQ(epoch, consumed / 20);
    for (int batch = 0; batch < left; ++batch) {
      EXPECT_EQ(sampler.epoch(), epoch);
      EXPECT_EQ(sampler.next().size(), 4U);
    }
    EXPECT_EQ(sampler.epoch(), epoch + 1);
  }
}

TEST(Sampler, WithoutShuffleTheFilesOrderComesAgainEachEpoch) {
  Sampler sampler({.num_rows = 5, .batch_size = 2, .shuffle = false}, "f");
  EXPECT_EQ(take(sampler, 3), (std::vector<Batch>{{0, 1}, {2, 3}, {0, 1}}));
}

TEST(Sampler, ValidationDropsOrFillsAnIncompleteBatch) {
  EXPECT_EQ(validation_batches({.num_rows = 5, .batch_size = 2}, "f"), (std::vector<Batch>{{0, 1}, {2, 3}}));
  EXPECT_EQ(validation_batches({.num_rows = 5, .batch_size = 2, .drop_last = false}, "f"), (std::vector<Batch>{{0, 1}, {2, 3}, {4, -1}}));
  EXPECT_EQ(validation_batches({.num_rows = 1, .batch_size = 3, .drop_last = false}, "f"), (std::vector<Batch>{{0, -1, -1}}));
}

TEST(Sampler, AChangedBatchSizeGoesOnAtTheSameRow) {
  Sampler before(kOptions, "f");
  take(before, 2);  // 8 rows
  SamplerOptions larger = kOptions;
  larger.batch_size = 6;
  Sampler after(larger, "f");
  after.restore(before.state());
  const auto order = permutation(21, 1234);
  EXPECT_EQ(after.next(), Batch(order.begin() + 8, order.begin() + 14));
  EXPECT_EQ(after.next(), Batch(order.begin() + 14, order.begin() + 20));
  const auto next = permutation(21, 1235);
  EXPECT_EQ(after.next(), Batch(next.begin(), next.begin() + 6));
  EXPECT_EQ(after.consumed_samples(), 26);
  EXPECT_EQ(error_of([&] { after.seek(8); }), "f: cannot resume after 8 rows; expected full batches of 6");
}

TEST(Sampler, OtherDataIsRefused) {
  Sampler sampler(kOptions, "f");
  const Json state = sampler.state();
  const auto error = [&](SamplerOptions options) {
    Sampler other(options, "f");
    return error_of([&] {
      other.restore(state);
      return 0;
    });
  };
  EXPECT_EQ(error({.num_rows = 22, .batch_size = 4}), "f: has 22 rows, but the resumed run had 21");
  EXPECT_EQ(error({.num_rows = 21, .batch_size = 4, .seed = 1}), "f: the seed is 1, but the resumed run had 1234");
  EXPECT_EQ(error({.num_rows = 21, .batch_size = 4, .shuffle = false}),
            "f: the order of rows changed between random and the file's since the checkpoint");
}

TEST(Sampler, ImpossibleOptionsAreRefused) {
  EXPECT_EQ(error_of([] { Sampler({.num_rows = 3, .batch_size = 4}, "f"); }), "f: 3 rows are fewer than one batch of 4");
  EXPECT_EQ(error_of([] { Sampler({.num_rows = 3, .batch_size = 2, .drop_last = false}, "f"); }),
            "f: drop_last=False is not supported for training; the last batch would be incomplete");
  EXPECT_EQ(error_of([] { Sampler({.num_rows = 3, .batch_size = 0}, "f"); }), "f: a batch of 0 rows");
}

}  // namespace
}  // namespace kedge
