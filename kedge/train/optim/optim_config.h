#pragma once
// The optimizer's section of a configuration.
#include "kedge/train/optim/optimizer.h"
#include "kedge/train/optim/schedule.h"

namespace kedge {

// AdamW's keys and the schedule's.
struct OptimConfig : OptimizerConfig {
  ScheduleConfig sched;

  void fields(auto&& field) {
    OptimizerConfig::fields(field);
    field("sched", sched, "the learning rate schedule; null: the rate is lr from the first update on", null_means("name", "constant"),
          null_means("warmup_steps", "0"));
  }
};

}  // namespace kedge
