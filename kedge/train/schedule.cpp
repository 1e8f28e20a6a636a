#include "kedge/train/schedule.h"

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
  return update > warmup + length ? config_.min_lr : cosine(update, length);
}

}  // namespace kedge
