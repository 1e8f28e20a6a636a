// Log-probabilities over a vocabulary of which every rank has a part.
#include "kedge/model/split_vocabulary.h"

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>

#include "tests/support/ranks.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::world;

struct Case {
  Tensor logits = testing::normals({6, 31}, 11, 5), targets = at::tensor(std::vector<int64_t>{0, 30, 7, 8, 15, 16});
  TensorRanks ranks{world()};
  Share own = share_of(31, world().rank(), world().size());
  SplitVocabulary vocabulary{own, &ranks};

  [[nodiscard]] Tensor own_logits() const { return logits.narrow(1, own.begin, own.end - own.begin).contiguous(); }
};

// Maxima, exponentials and sums are the same but for the order of the sums: a few roundings of numbers below 32.
constexpr double kOrderOfSums = 8e-6;

TEST(SplitVocabulary, HasTheNumbersOfOneRank) {
  const Case given;
  for (const double temperature : {1.0, 0.6}) {
    const LogitStats wanted = logit_stats(given.logits, given.targets, true, temperature),
                     found = split_logit_stats(given.own_logits(), given.targets, true, temperature, given.vocabulary);
    EXPECT_LE(testing::largest_difference(found.logprob, wanted.logprob), kOrderOfSums);
    EXPECT_LE(testing::largest_difference(found.log_sum, wanted.log_sum), kOrderOfSums);
    EXPECT_LE(testing::largest_difference(found.entropy, wanted.entropy), kOrderOfSums);
    const Tensor dlogprob = testing::normals({6}, 12), dentropy = testing::normals({6}, 13);
    const Tensor gradient = logit_gradient(given.logits.clone(), given.targets, wanted, dlogprob, dentropy, at::kFloat);
    const Tensor own =
        logit_gradient(given.own_logits(), own_targets(given.targets, given.vocabulary), found, dlogprob, dentropy, at::kFloat);
    EXPECT_LE(testing::largest_difference(own, gradient.narrow(1, given.own.begin, own.size(1))), kOrderOfSums);
  }
}

TEST(SplitVocabulary, ARowDoesNotDependOnOthersAndAllRanksHaveTheSameBits) {
  const Case given;
  const LogitStats all = split_logit_stats(given.own_logits(), given.targets, true, 1, given.vocabulary);
  const LogitStats one =
      split_logit_stats(given.own_logits().narrow(0, 3, 1).contiguous(), given.targets.narrow(0, 3, 1), true, 1, given.vocabulary);
  EXPECT_TRUE(at::equal(one.logprob, all.logprob.narrow(0, 3, 1)));
  EXPECT_TRUE(at::equal(one.entropy, all.entropy.narrow(0, 3, 1)));
  const Tensor of_all = world().all_gather(all.logprob.unsqueeze(0));
  for (int rank = 0; rank < world().size(); ++rank) EXPECT_TRUE(at::equal(of_all[rank], all.logprob));
}

TEST(SplitVocabulary, ATargetIsWithOneRank) {
  const Case given;
  const Tensor own = own_targets(given.targets, given.vocabulary);
  Tensor found = (own >= 0).to(at::kLong);
  world().all_reduce(found, Reduce::sum);
  EXPECT_TRUE(at::equal(found, at::ones({6}, at::kLong)));
}

}  // namespace
}  // namespace kedge
