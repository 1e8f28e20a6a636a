#include "kedge/algo/online/health.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>

#include "kedge/algo/online/advantage.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

double mean_of(const std::vector<double>& values) { return moments_of(values).mean; }

// Exactly 0 where all are equal: sums of equal numbers round.
double deviation_of(const std::vector<double>& values) {
  if (std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end()) return 0;
  return std::sqrt(moments_of(values).variance);
}

// Three digits are enough for people.
std::string figure(double value) {
  std::ostringstream out;
  out << std::setprecision(3) << value;
  return std::move(out).str();
}

std::string steps_of(const std::vector<double>& last) {
  return last.size() == 1 ? "the last step" : str("the last ", last.size(), " steps");
}

}  // namespace

// Is there anything new?
bool HealthWatch::push(Trail& trail, std::optional<double> value) const {
  if (trail.quiet > 0) --trail.quiet;
  if (!value || !std::isfinite(*value)) return false;
  trail.last.push_back(*value);
  const int64_t too_many = std::ssize(trail.last) - limits_.window;
  if (too_many > 0) trail.last.erase(trail.last.begin(), trail.last.begin() + too_many);
  return true;
}

bool HealthWatch::full(const Trail& trail) const { return std::ssize(trail.last) >= limits_.window; }

std::optional<std::string> HealthWatch::look(const Metrics& metrics) {
  std::string all;
  const auto tell = [&](Trail& trail, const Told& problem) {
    if (!problem || trail.quiet > 0) return;
    trail.quiet = limits_.window;
    all += (all.empty() ? "" : "; ") + *problem;
  };
  const auto rewards = metrics.find("rewards");
  static_cast<void>(push(spread_, metrics.find("rewards_std")));
  if (push(kl_, metrics.find("init_policy_kl"))) tell(kl_, kl_problem());
  if (push(reward_, rewards ? rewards : metrics.find("global_rewards"))) tell(reward_, reward_problem());
  if (push(entropy_, metrics.find("entropy"))) tell(entropy_, entropy_problem());
  return all.empty() ? std::nullopt : std::optional(all);
}

HealthWatch::Told HealthWatch::kl_problem() const {
  const double mean = mean_of(kl_.last);
  if (limits_.max_kl == 0 || mean <= limits_.max_kl) return std::nullopt;
  return str("KL run-away: the policy is ", figure(mean), " nats per token from the reference (mean over ", steps_of(kl_.last),
             "); health.max_kl is ", figure(limits_.max_kl));
}

// Of the first window in which rewards differ: of the answers of a step where that is known, else of the steps.
void HealthWatch::measure_spread() {
  if (spread_.measure) return;
  const double spread = spread_.last.empty() ? deviation_of(reward_.last) : mean_of(spread_.last);
  if (spread > 0) spread_.measure = spread;
}

HealthWatch::Told HealthWatch::reward_problem() {
  if (!full(reward_)) return std::nullopt;
  measure_spread();
  const double mean = mean_of(reward_.last);
  reward_.measure = std::max(mean, reward_.measure.value_or(mean));
  const double fall = *reward_.measure - mean;
  if (limits_.reward_drop == 0 || !spread_.measure || fall <= limits_.reward_drop * *spread_.measure) return std::nullopt;
  return str("reward collapse: the mean reward of ", steps_of(reward_.last), ", ", figure(mean), ", is ", figure(fall / *spread_.measure),
             " standard deviations below that of the best ", limits_.window, ", ", figure(*reward_.measure), "; health.reward_drop is ",
             figure(limits_.reward_drop));
}

HealthWatch::Told HealthWatch::entropy_problem() {
  if (!full(entropy_)) return std::nullopt;
  const double mean = mean_of(entropy_.last);
  if (!entropy_.measure) entropy_.measure = mean;
  if (mean >= limits_.min_entropy * *entropy_.measure) return std::nullopt;
  return str("entropy collapse: ", figure(mean), " nats per token in ", steps_of(entropy_.last), ", and ", figure(*entropy_.measure),
             " in the first ", limits_.window, "; health.min_entropy is ", figure(limits_.min_entropy), " of it");
}

Json HealthWatch::state() const {
  const auto state_of = [](const Trail& trail) {
    Json json;
    json.set("last", Json::Array(trail.last.begin(), trail.last.end()));
    json.set("measure", trail.measure ? Json(*trail.measure) : Json());
    json.set("quiet", trail.quiet);
    return json;
  };
  Json json;
  json.set("kl", state_of(kl_));
  json.set("reward", state_of(reward_));
  json.set("spread", state_of(spread_));
  json.set("entropy", state_of(entropy_));
  return json;
}

void HealthWatch::restore(const Json& state) {
  const auto trail_of = [&](const char* name) {
    const std::string where = str("health state: ", name);
    const Json& json = state.at(name, "health state");
    Trail trail{.quiet = json.at("quiet", where).as_integer(where)};
    for (const Json& value : json.at("last", where).as_array(where)) trail.last.push_back(value.as_number(where));
    const Json& measure = json.at("measure", where);
    if (!measure.is_null()) trail.measure = measure.as_number(where);
    return trail;
  };
  kl_ = trail_of("kl");
  reward_ = trail_of("reward");
  spread_ = trail_of("spread");
  entropy_ = trail_of("entropy");
}

}  // namespace kedge
