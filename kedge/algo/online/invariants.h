#pragma once
// What must hold in every online run, whatever it learns: if it does not, the run trains on something other than its user thinks.
// Checks numbers that the trainer collected; independent of tensors and models.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/core/json.h"

namespace kedge {

enum class OnBroken { stop, warn, off };
constexpr auto enum_names(OnBroken) {
  return std::array<EnumName<OnBroken>, 3>{{{"stop", OnBroken::stop}, {"warn", OnBroken::warn}, {"off", OnBroken::off}}};
}

// What was seen in a step, the same on every rank.
struct StepEvidence {
  int64_t num_rows = 0, num_failed_rewards = 0;
  std::string first_failure = {};             // of those rewards
  int64_t num_sampled = 0, num_weighted = 0;  // tokens sampled in the responses that are trained on, and tokens with a weight in the loss
  // Means over tokens of |log-prob - log-prob before|, in nats: the first update's against those its ratios are of, and training's
  // against the engine's. Absent: not known.
  std::optional<double> ratio_gap = {}, engine_gap = {};
  bool is_exact = false;  // the first update computes what was computed before in the same way: on CPUs
  bool learned = false;   // an update had a learning rate and a gradient norm above 0
  bool changed = true;    // it changed the weights
  bool is_finite = true;  // the weights, after the step
};

// Bounds where floating point may differ, in nats per token. bf16 on GPUs stays around 0.01.
inline constexpr double kMaxRatioGap = 0.05, kMaxEngineGap = 0.1;

class Invariants {
 public:
  // `key` names the setting in messages: "trainer.ppo.health.invariants". After `patience` steps in a row without a single reward the run
  // ends, however many steps went well before.
  Invariants(OnBroken on_broken, std::string key, int64_t patience) : on_broken_(on_broken), key_(std::move(key)), patience_(patience) {}

  // May the step's first update still be the one that decides? Its evidence costs a pass over the weights.
  [[nodiscard]] bool wants_update() const { return on_broken_ != OnBroken::off && !judged_; }
  [[nodiscard]] bool is_off() const { return on_broken_ == OnBroken::off; }

  // What is broken, as warnings. An Error if that ends the run: up to the first update that learns, and for rewards up to the first
  // one that arrived.
  [[nodiscard]] std::vector<std::string> judge(int64_t step, const StepEvidence& evidence);

  // UsageError for another object's state.
  [[nodiscard]] Json state() const;
  void restore(const Json& state);

 private:
  OnBroken on_broken_;
  std::string key_;
  int64_t patience_;
  bool judged_ = false;             // an update that learned was checked
  bool had_reward_ = false;         // some reward arrived
  int64_t num_without_reward_ = 0;  // the newest steps in a row
};

}  // namespace kedge
