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
    field("sched", sched, "the learning rate schedule");
  }
};

}  // namespace kedge
