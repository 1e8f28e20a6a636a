#include "kedge/inspect/eval_policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/job_toy.h"

namespace kedge {
namespace {

EvalTarget folder_target(const Path& folder) { return {.kind = PolicyKind::model, .folder = folder, .base = folder}; }

EvalPolicyOptions options_for(std::optional<EvalTarget> reference) {
  EvalPolicyOptions options;
  options.reference = std::move(reference);
  options.engine_of = [](const Model&) { return EngineConfig{.memory = "16MiB"}; };
  return options;
}

TEST(EvalPolicies, OneTakesThePlaceOfTheOther) {
  const testing::JobToy toy;
  save_model(*testing::byte_model(), toy.path() / "other");
  EvalPolicies policies(options_for(std::nullopt));
  EXPECT_FALSE(policies.has_reference());
  policies.load(folder_target(toy.path() / "lm"));
  policies.load(folder_target(toy.path() / "other"));
  EXPECT_EQ(policies.model().config().vocab_size, 259);
}

TEST(EvalPolicies, TheReferenceIsAModelOfItsOwnWhereNothingIsShared) {
  const testing::JobToy toy;
  EvalPolicies policies(options_for(folder_target(toy.path() / "lm")));
  policies.load(folder_target(toy.path() / "lm"));
  EXPECT_TRUE(policies.has_reference());
  const Model* seen = nullptr;
  policies.with_reference([&](const Model& reference) { seen = &reference; });
  EXPECT_NE(seen, nullptr);
  EXPECT_NE(seen, &policies.model());
}

}  // namespace
}  // namespace kedge
