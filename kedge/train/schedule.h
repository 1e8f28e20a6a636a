#pragma once
// The learning rate as a function of the update: no state, so a resumed run continues it by counting on.
#include <array>
#include <cstdint>
#include <string>

#include "kedge/core/config_schema.h"

namespace kedge {

enum class ScheduleKind { cosine, constant };
constexpr auto enum_names(ScheduleKind) {
  return std::array<EnumName<ScheduleKind>, 2>{{{"CosineAnnealing", ScheduleKind::cosine}, {"constant", ScheduleKind::constant}}};
}

// A step of a trainer may be several updates. Who makes them counts the horizon by this.
enum class ScheduleHorizon { trainer_steps, optimizer_steps };
constexpr auto enum_names(ScheduleHorizon) {
  return std::array<EnumName<ScheduleHorizon>, 2>{
      {{"trainer_steps", ScheduleHorizon::trainer_steps}, {"optimizer_steps", ScheduleHorizon::optimizer_steps}}};
}

struct ScheduleConfig {
  ScheduleKind name = ScheduleKind::cosine;
  int64_t warmup_steps = 10, constant_steps = 1000;
  double min_lr = 9e-8;
  ScheduleHorizon horizon = ScheduleHorizon::trainer_steps;

  void fields(auto&& field) {
    field("name", name, "how the rate falls after the warm-up: along a cosine, or not at all");
    field("warmup_steps", warmup_steps, "updates over which the rate rises", at_least(0));
    field("constant_steps", constant_steps,
          "the last updates, at min_lr (CosineAnnealing). With it and a warm-up the first update's rate is 0", at_least(0));
    field("min_lr", min_lr, "where the cosine ends", at_least(0));
    field("horizon", horizon, "what the cosine's length counts: trainer steps, as the reference does, or updates");
  }
};

class Schedule {
 public:
  // `lr` is the highest rate, `num_updates` the horizon. UsageError, opened by `where`, for settings that make no sense.
  Schedule(const ScheduleConfig& config, double lr, int64_t num_updates, const std::string& where = "optim.sched");

  // Of an update, counted from 0.
  [[nodiscard]] double rate(int64_t update) const;

 private:
  [[nodiscard]] double cosine(int64_t update, int64_t length) const;

  ScheduleConfig config_;
  double lr_;
  int64_t num_updates_;
};

}  // namespace kedge
