#include "kedge/train/optim/updater.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kedge/config/config.h"
#include "kedge/train/optim/optim_config.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::same_bits;

// As in NeMo-Aligner, where nothing changes lr if no schedule is configured.
TEST(OptimConfig, WithoutAScheduleTheRateIsConstant) {
  struct Given {
    std::string yaml;
    std::vector<std::string> overrides;
  };
  for (const Given& given : {Given{"sched: null", {}}, Given{"sched: {min_lr: 0.2}", {"sched=null"}}, Given{"{}", {"~sched"}}}) {
    OptimConfig config;
    EXPECT_THAT(load_section(describe(config), {"toy", given.yaml}, given.overrides), ::testing::IsEmpty());
    OptimConfig again;
    EXPECT_THAT(load_section(describe(again), {"dump", dump_config(describe(config))}, {}), ::testing::IsEmpty());
    for (const ScheduleConfig& sched : {config.sched, again.sched})
      for (const int64_t update : {0, 1, 10, 1000}) EXPECT_EQ(Schedule(sched, 0.1, 10).rate(update), 0.1);
  }
}

// Two weights that decay as little as everything else here: not at all.
struct Toy {
  Parameters parameters{{{"w", {2}, true, ParameterSpec::Init::ones}}, {.trainable = true}};
  Optimizer optimizer{{.weight_decay = 0}, parameters};
  Updater updater;

  explicit Toy(const UpdateConfig& config) : updater(config, optimizer, parameters) { parameters.initialise(1, 1); }
  void set_gradient(float a, float b) { parameters.gradient(0).copy_(at::tensor({a, b})); }
};

// spec/trainers.md 21.9: the norm is that before clipping, and what is applied is the gradient times the coefficient.
TEST(Updater, ClipsByTheNorm) {
  Toy clipped({.gradient_clip_val = 1.0}), by_hand({.gradient_clip_val = std::nullopt});
  clipped.set_gradient(3, 4);
  EXPECT_DOUBLE_EQ(clipped.updater.apply(0.1).grad_norm, 5);
  by_hand.set_gradient(0.599999880F, 0.799999840F);
  EXPECT_NEAR(by_hand.updater.apply(0.1).grad_norm, 1, 1e-6);
  // The first moments are a tenth of the gradients: equal to the rounding of the one multiplication that is left out.
  EXPECT_LT((clipped.optimizer.first_moment() - by_hand.optimizer.first_moment()).abs().max().item<double>(), 1e-8);
}

TEST(Updater, NoClippingMeansNone) {
  for (const std::optional<double> none : {std::optional<double>(), std::optional<double>(0), std::optional<double>(-1)}) {
    Toy toy({.gradient_clip_val = none});
    toy.set_gradient(30, 40);
    EXPECT_DOUBLE_EQ(toy.updater.apply(0.1).grad_norm, 50);
    EXPECT_NEAR(toy.optimizer.first_moment()[0].item<double>(), 3, 1e-6);
  }
}

TEST(Updater, GradientsThatAreNoNumbersChangeNothing) {
  Toy toy({});
  const Tensor before = toy.parameters.flat_master().clone();
  for (const float bad : {std::nanf(""), INFINITY}) {
    toy.set_gradient(bad, 1);
    EXPECT_TRUE(toy.updater.apply(0.1).skipped);
  }
  EXPECT_TRUE(same_bits(toy.parameters.flat_master(), before));
  EXPECT_EQ(toy.optimizer.num_steps(), 0);
  EXPECT_EQ(toy.updater.num_skipped(), 2);
  toy.set_gradient(1, 1);
  EXPECT_FALSE(toy.updater.apply(0.1).skipped);
  EXPECT_FALSE(same_bits(toy.parameters.flat_master(), before));
}

TEST(Updater, TooManyInARowEndTheRun) {
  Toy toy({.max_skipped_updates = 2});
  const auto bad = [&] {
    toy.set_gradient(std::nanf(""), 1);
    return toy.updater.apply(0.1);
  };
  static_cast<void>(bad());
  static_cast<void>(bad());
  toy.set_gradient(1, 1);
  static_cast<void>(toy.updater.apply(0.1));  // the row is broken
  static_cast<void>(bad());
  static_cast<void>(bad());
  EXPECT_THAT(error_of<Error>(bad), HasSubstr("3 updates in a row had gradients that are not finite"));
}

TEST(Updater, WhatItCountedComesBack) {
  const testing::TempFolder temp;
  Toy toy({}), other({});
  toy.set_gradient(std::nanf(""), 1);
  static_cast<void>(toy.updater.apply(0.1));
  StateSnapshot state;
  toy.updater.save(state);
  state.write(temp / "state");
  other.updater.load(StateFiles(temp / "state"));
  EXPECT_EQ(other.updater.num_skipped(), 1);
}

}  // namespace
}  // namespace kedge
