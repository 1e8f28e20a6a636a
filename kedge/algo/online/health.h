#pragma once
// Detects from a run's own metrics when it goes wrong: the policy drifts from the reference, rewards collapse, entropy collapses. The
// caller decides what to do about it.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kedge/algo/online/invariants.h"
#include "kedge/config/config_schema.h"
#include "kedge/metrics/metrics.h"

namespace kedge {

enum class OnUnhealthy { warn, save, stop };
constexpr auto enum_names(OnUnhealthy) {
  return std::array<EnumName<OnUnhealthy>, 3>{{{"warn", OnUnhealthy::warn}, {"save", OnUnhealthy::save}, {"stop", OnUnhealthy::stop}}};
}

struct HealthLimits {
  int64_t window = 10;
  double reward_drop = 2;
  double max_kl = 2;
  double min_entropy = 0.1;
  OnBroken invariants = OnBroken::stop;

  void fields(auto&& field) {
    field("window", window, "steps that each check averages over", at_least(1), unit("steps"));
    field("reward_drop", reward_drop,
          "maximum drop of the mean reward below its best, in standard deviations of the first rewards; 0: no limit", at_least(0));
    field("max_kl", max_kl, "maximum KL per token from the reference policy; 0: no limit", at_least(0), unit("nats"));
    field("min_entropy", min_entropy, "minimum entropy, as a fraction of the initial entropy; 0: no limit", at_least(0), below(1));
    field("invariants", invariants,
          "checks that every run must pass (initial ratios are 1, generation and training agree, updates change the weights, weights are "
          "finite, rewards arrive): on a violation end the run (stop) or only log it (warn); off: no checks");
  }
};

// Keys in an algorithm's own section.
struct HealthConfig {
  OnUnhealthy on_unhealthy = OnUnhealthy::warn;
  HealthLimits health = {};

  void fields(auto&& field) {
    field("on_unhealthy", on_unhealthy,
          "if a health check fails: log it (warn), also save a checkpoint (save), or save and end the run (stop)");
    field("health", health, "thresholds that define an unhealthy run");
  }
};

// Checks the metrics of every training step, by their names without prefix: init_policy_kl, rewards or global_rewards, rewards_std and
// entropy. One that is missing or not finite is ignored.
class HealthWatch {
 public:
  explicit HealthWatch(HealthConfig config) : limits_(config.health) {}

  // What is wrong, with the values. An alarm is not repeated before a window has passed.
  [[nodiscard]] std::optional<std::string> look(const Metrics& metrics);

  // A restored watch reports the same as one that was never stopped. UsageError for another object's state.
  [[nodiscard]] Json state() const;
  void restore(const Json& state);

 private:
  // A metric over time.
  struct Trail {
    std::vector<double> last = {};       // of the newest window, the oldest first
    std::optional<double> measure = {};  // what the newest ones are compared with
    int64_t quiet = 0;                   // steps before it may be reported again
  };
  using Told = std::optional<std::string>;
  [[nodiscard]] bool push(Trail& trail, std::optional<double> value) const;
  [[nodiscard]] bool full(const Trail& trail) const;
  void measure_spread();
  [[nodiscard]] Told kl_problem() const;
  [[nodiscard]] Told reward_problem();
  [[nodiscard]] Told entropy_problem();

  HealthLimits limits_;
  Trail kl_, reward_, spread_, entropy_;
};

}  // namespace kedge
