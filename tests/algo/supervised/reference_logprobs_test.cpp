#include "kedge/algo/supervised/reference_logprobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "kedge/core/autograd.h"

#include "tests/support/tiny_training.h"

namespace kedge {
namespace {

using testing::same_bits;
using testing::TempFolder;

std::vector<ResponseRow> rows_of(int64_t pass) {
  const auto first = static_cast<TokenId>(2 * pass);
  return {{{first, 50, 60, 70}, 2}, {{static_cast<TokenId>(first + 1), 80, 90}, 1}};
}
ReferencePasses passes(int64_t count) { return {count, rows_of}; }

Tensor direct(const Model& model, int64_t pass) {
  const NoGrad no_grad;
  return response_logprobs(model, rows_of(pass));
}

void move_weights(Parameters& parameters) {
  const NoGrad no_grad;
  parameters.flat_master().add_(0.1);
  parameters.publish();
}

TEST(ReferenceLogprobs, AreThoseOfTheWeightsAtTheStart) {
  for (const ReferenceKeeping keeping : {ReferenceKeeping::memory, ReferenceKeeping::none}) {
    const auto model = testing::byte_model();
    const Tensor wanted = direct(*model, 3);
    ReferenceLogprobs reference(*model, Group::single(), {.keeping = keeping, .weights = "w"});
    if (reference.keeps()) reference.compute_all(passes(5));
    move_weights(model->parameters());
    if (!reference.keeps()) reference.compute_batch(std::vector<std::vector<ResponseRow>>{rows_of(3)});
    EXPECT_TRUE(same_bits(reference.of(rows_of(3)), wanted));
    EXPECT_FALSE(same_bits(direct(*model, 3), wanted));
  }
}

TEST(ReferenceLogprobs, OfAPolicyWithAdaptersGoWithoutThem) {
  for (const ReferenceKeeping keeping : {ReferenceKeeping::memory, ReferenceKeeping::none}) {
    const auto model = testing::byte_model({}, {.trainable = false});
    const Tensor wanted = direct(*model, 0);
    model->add_adapters(LoraConfig(), true);
    model->adapters()->initialise(3);
    move_weights(model->adapters()->parameters());
    ReferenceLogprobs reference(*model, Group::single(), {.keeping = keeping, .weights = "w"});
    reference.keeps() ? reference.compute_all(passes(1)) : reference.compute_batch(std::vector<std::vector<ResponseRow>>{rows_of(0)});
    EXPECT_TRUE(same_bits(reference.of(rows_of(0)), wanted));
    EXPECT_TRUE(model->adapters()->enabled());
  }
}

TEST(ReferenceLogprobs, EachRowIsComputedOnce) {
  const auto model = testing::byte_model();
  ReferenceLogprobs reference(*model, Group::single(), {.weights = "w"});
  reference.compute_all(passes(40));
  EXPECT_EQ(reference.num_computed(), 80);
  reference.compute_all(passes(41));
  EXPECT_EQ(reference.num_computed(), 82);
}

TEST(ReferenceLogprobs, OnDiskServeOtherRunsWithTheSameWeights) {
  const TempFolder temp;
  const auto model = testing::byte_model();
  const auto computed = [&](const std::string& weights, int64_t count) {
    ReferenceLogprobs reference(*model, Group::single(), {.keeping = ReferenceKeeping::disk, .folder = temp.path(), .weights = weights});
    reference.compute_all(passes(count));
    EXPECT_TRUE(same_bits(reference.of(rows_of(1)), direct(*model, 1)));
    return reference.num_computed();
  };
  EXPECT_EQ(computed("w", 30), 60);
  EXPECT_EQ(computed("w", 30), 0);
  EXPECT_EQ(computed("w", 31), 2);       // more data
  EXPECT_EQ(computed("other", 30), 60);  // other weights
  write_atomic(list_folder(temp.path() / "w").front(), "rubbish");
  EXPECT_GT(computed("w", 31), 0);
  EXPECT_EQ(computed("w", 31), 0);
}

TEST(ReferenceLogprobs, AStopLeavesWhatIsDone) {
  const TempFolder temp;
  const auto model = testing::byte_model();
  int asked = 0;
  const StopQuestion stop = [&]() -> std::optional<int> { return ++asked > 10 ? std::optional(SIGTERM) : std::nullopt; };
  ReferenceLogprobs reference(*model, Group::single(),
                              {.keeping = ReferenceKeeping::disk, .folder = temp.path(), .weights = "w", .stop = stop});
  EXPECT_THROW(reference.compute_all(passes(100)), Interrupted);
  const int64_t done = reference.num_computed();
  EXPECT_LT(done, 200);
  ReferenceLogprobs next(*model, Group::single(), {.keeping = ReferenceKeeping::disk, .folder = temp.path(), .weights = "w"});
  next.compute_all(passes(100));
  EXPECT_EQ(next.num_computed(), 200 - done);
}

}  // namespace
}  // namespace kedge
