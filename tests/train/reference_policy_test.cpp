#include "kedge/train/reference_policy.h"

#include <gtest/gtest.h>

#include "kedge/core/autograd.h"

#include "tests/support/tiny_training.h"

namespace kedge {
namespace {

using testing::byte_model;
using testing::same_bits;

Tensor logprobs_of(const Model& model) {
  const NoGrad no_grad;
  const std::vector<std::vector<int32_t>> rows = {{1, 2, 3, 4}, {9, 8, 7}};
  const PackedBatch batch = pack_rows(rows, at::kCPU);
  return model_logprobs(model, batch, predicted_tokens(batch)).logprobs;
}

// An optimizer's step, as far as anybody else sees it.
void change(Parameters& parameters) {
  const NoGrad no_grad;
  parameters.flat_master().mul_(1.25);
  parameters.publish();
}

class Copies : public ::testing::TestWithParam<std::tuple<ReferenceKind, at::ScalarType>> {};

TEST_P(Copies, GiveTheStartingPolicyAndLeaveTheOtherAsItIs) {
  const auto [kind, dtype] = GetParam();
  const auto policy = byte_model({}, {.dtype = dtype, .trainable = true});
  const Tensor start = logprobs_of(*policy);
  ReferencePolicy reference(*policy, kind);
  change(policy->parameters());
  const Tensor changed = logprobs_of(*policy), masters = policy->parameters().flat_master().clone();
  ASSERT_FALSE(same_bits(changed, start));
  for (int i = 0; i < 2; ++i) {
    reference.with([&](const Model& model) { EXPECT_TRUE(same_bits(logprobs_of(model), start)); });
    EXPECT_TRUE(same_bits(logprobs_of(*policy), changed));
    EXPECT_TRUE(same_bits(policy->parameters().flat_master(), masters));
  }
  EXPECT_THROW(reference.with([](const Model&) { throw std::runtime_error("broken"); }), std::runtime_error);
  EXPECT_TRUE(same_bits(logprobs_of(*policy), changed)) << "the policy comes back whatever happens";
}
INSTANTIATE_TEST_SUITE_P(All, Copies,
                         ::testing::Combine(::testing::Values(ReferenceKind::resident, ReferenceKind::swapped),
                                            ::testing::Values(at::kFloat, at::kBFloat16)));

TEST(ReferencePolicy, OfAdaptersIsTheNetworkWithoutThem) {
  const auto policy = byte_model({}, {.trainable = false});
  const Tensor start = logprobs_of(*policy);
  policy->add_adapters({}, true);
  policy->adapters()->initialise(3);
  ReferencePolicy reference(*policy, ReferenceKind::adapters_off);
  {
    const NoGrad no_grad;
    policy->trained().flat().add_(0.1);
  }
  const Tensor changed = logprobs_of(*policy);
  ASSERT_FALSE(same_bits(changed, start));
  reference.with([&](const Model& model) { EXPECT_TRUE(same_bits(logprobs_of(model), start)); });
  EXPECT_TRUE(same_bits(logprobs_of(*policy), changed));
}

TEST(ReferencePolicy, CostsWhatItKeeps) {
  EXPECT_EQ(reference_bytes(ReferenceKind::adapters_off, 100, true).device, 0);
  EXPECT_EQ(reference_bytes(ReferenceKind::resident, 100, true).device, 100);
  EXPECT_EQ(reference_bytes(ReferenceKind::swapped, 100, true).device, 0);
  EXPECT_EQ(reference_bytes(ReferenceKind::swapped, 100, true).host, 200);
  EXPECT_EQ(reference_bytes(ReferenceKind::swapped, 100, false).device, 200) << "where the host computes it is all one memory";
}

}  // namespace
}  // namespace kedge
