#pragma once
// The learning rate as a function of the update: no state, so a resumed run continues it by its update count.
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/config/config_schema.h"

namespace kedge {

enum class ScheduleKind { cosine, constant };
constexpr auto enum_names(ScheduleKind) {
  return std::array<EnumName<ScheduleKind>, 2>{{{"CosineAnnealing", ScheduleKind::cosine}, {"constant", ScheduleKind::constant}}};
}

// A step of a trainer may be several updates. This is the unit of the horizon.
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
    field("name", name, "decay after the warm-up: cosine, or constant");
    field("warmup_steps", warmup_steps, "updates over which the learning rate rises to lr", at_least(0));
    field("constant_steps", constant_steps,
          "number of final updates at min_lr (CosineAnnealing); if this and warmup_steps are set, the first update has rate 0",
          at_least(0));
    field("min_lr", min_lr, "learning rate at the end of the cosine", at_least(0), finite());
    field("horizon", horizon, "unit of the cosine's length: trainer steps, as in NeMo-Aligner, or updates");
  }
};

class Schedule {
 public:
  // `lr` is the highest rate, `num_updates` the horizon. UsageError, opened by `where`, for invalid settings.
  Schedule(const ScheduleConfig& config, double lr, int64_t num_updates, const std::string& where = "optim.sched");

  // Of an update, counted from 0.
  [[nodiscard]] double rate(int64_t update) const;
  // Over the first `num_updates` updates; 0 for none.
  [[nodiscard]] double mean_rate(int64_t num_updates) const;

 private:
  [[nodiscard]] double cosine(int64_t update, int64_t length) const;

  ScheduleConfig config_;
  double lr_;
  int64_t num_updates_;
};

// A warning for a run of `num_updates` updates whose mean rate is below a quarter of `lr`: it barely trains. `where` names the
// schedule's section.
[[nodiscard]] std::optional<std::string> low_rate_hint(const Schedule& schedule, const ScheduleConfig& config, double lr,
                                                       int64_t num_updates, const std::string& where);

}  // namespace kedge
