// The loop on the 2 or 3 ranks that mpirun has started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "kedge/train/loop.h"

#include "tests/support/ranks.h"
#include "tests/support/toy_trainer.h"

namespace kedge {
namespace {

using testing::world;

// A rehearsal makes collective calls, as a step does.
TEST(LoopRanks, ASignalOfOneRankKeepsAllFromRehearsing) {
  testing::ToyTrainer trainer;
  MetricsLog log(false);
  const StopSignals signals;
  if (world().rank() == 1) ::raise(SIGUSR1);
  LoopOptions options;
  options.steps = {4, 9};
  options.intervals = {9, 0, 0, false};
  options.rehearses = true;
  const LoopResult result = run_loop({trainer, world(), log, nullptr, signals}, options, 0);
  EXPECT_EQ(result.reason, "SIGUSR1");
  EXPECT_THAT(trainer.calls, ::testing::ElementsAre("step"));
}

}  // namespace
}  // namespace kedge
