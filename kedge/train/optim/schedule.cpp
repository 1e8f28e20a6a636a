#include "kedge/train/optim/schedule.h"

#include <cmath>
#include <numbers>

#include "kedge/core/error.h"

namespace kedge {

Schedule::Schedule(const ScheduleConfig& config, double lr, int64_t num_updates, const std::string& where)
    : config_(config), lr_(lr), num_updates_(num_updates) {
  if (config.name == ScheduleKind::constant) return;
  const bool tail = config.constant_steps > 0;
  check(tail ? lr > config.min_lr : lr >= config.min_lr, where, ".min_lr is ", config.min_lr,
        ", but with constant_steps=", config.constant_steps, " the learning rate ", lr, " must be ", tail ? "above it" : "at least that",
        "; for a constant rate use ", where, ".name=constant");
}

double Schedule::cosine(int64_t update, int64_t length) const {
  const double turned = std::numbers::pi * static_cast<double>(update - config_.warmup_steps) / static_cast<double>(length);
  return config_.min_lr + (lr_ - config_.min_lr) * (1 + std::cos(turned)) / 2;
}

double Schedule::rate(int64_t update) const {
  const int64_t warmup = config_.warmup_steps;
  const auto share = [](int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); };
  if (config_.name == ScheduleKind::constant) return update < warmup ? lr_ * share(update + 1, warmup + 1) : lr_;
  if (config_.constant_steps == 0) {
    if (warmup > 0 && update <= warmup) return lr_ * share(update + 1, warmup + 1);
    return update > num_updates_ ? config_.min_lr : cosine(update, num_updates_ - warmup);
  }
  // A horizon shorter than warm-up and tail leaves no cosine: from the top straight to the bottom.
  const int64_t length = num_updates_ - config_.constant_steps - warmup;
  if (warmup > 0 && update <= warmup) return lr_ * share(update, warmup);
  return length <= 0 || update > warmup + length ? config_.min_lr : cosine(update, length);
}

double Schedule::mean_rate(int64_t num_updates) const {
  double sum = 0;
  for (int64_t update = 0; update < num_updates; ++update) sum += rate(update);
  return num_updates == 0 ? 0 : sum / static_cast<double>(num_updates);
}

std::optional<std::string> low_rate_hint(const Schedule& schedule, const ScheduleConfig& config, double lr, int64_t num_updates,
                                         const std::string& where) {
  const double mean = schedule.mean_rate(num_updates);
  if (num_updates == 0 || mean >= lr / 4) return std::nullopt;
  return str(where, ": the learning rate of this run's ", num_updates, num_updates == 1 ? " update" : " updates", " is ", mean,
             " on average, while optim.lr is ", lr, ": it rises over warmup_steps=", config.warmup_steps,
             " updates, and the last constant_steps=", config.constant_steps, " are made at min_lr=", config.min_lr,
             "; for a run this short use ", where, ".name=constant ", where, ".warmup_steps=0");
}

}  // namespace kedge
