#include "kedge/rollout/step_comparison.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr std::string_view kAnswers = "answers", kEngine = "engine log-probs", kLogprobs = "log-probs", kReference = "reference log-probs",
                           kSettings = "prompts and settings", kRewards = "rewards", kParts = "reward parts", kUpdate = "update ";

// As short as it reads back to the same bits.
template <typename Number>
std::string text_of(Number number) {
  if (!std::isfinite(number)) return "none";
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

double or_nan(std::optional<double> number) { return number.value_or(std::nan("")); }
double value_of(const RowReward& reward) { return reward.failed() ? std::nan("") : reward.value; }

double part_of(const RowReward& reward, const std::string& name) {
  const auto found = std::find_if(reward.parts.begin(), reward.parts.end(), [&](const auto& part) { return part.first == name; });
  return found == reward.parts.end() ? std::nan("") : found->second;
}

// Compares all rows under one name.
class RowCheck {
 public:
  RowCheck(StepComparison& comparison, double tolerance) : comparison_(comparison), tolerance_(tolerance) {}

  void add_pair(int64_t place, const RolloutRow& recorded, const RolloutRow& computed) { pairs_.push_back({place, &recorded, &computed}); }
  void numbers(std::string_view name, auto&& number) const {
    each(name, [&](QuantityCheck& check, const Pair& pair) {
      check.numbers(number(*pair.recorded), number(*pair.computed), {.answer = pair.place});
    });
  }
  void lists(std::string_view name, std::vector<float> RolloutRow::*list) const {
    each(name,
         [&](QuantityCheck& check, const Pair& pair) { check.lists(pair.recorded->*list, pair.computed->*list, {.answer = pair.place}); });
  }
  // Which answers have one depends on whether generation and training are bit-identical, which a tolerance does not require.
  void entropies() const {
    each("entropy", [&](QuantityCheck& check, const Pair& pair) {
      const std::optional<double>&recorded = pair.recorded->entropy, &computed = pair.computed->entropy;
      if (tolerance_ == 0 || (recorded && computed)) check.numbers(or_nan(recorded), or_nan(computed), {.answer = pair.place});
    });
  }

 private:
  struct Pair {
    int64_t place;
    const RolloutRow *recorded, *computed;
  };
  void each(std::string_view name, auto&& compare) const {
    QuantityCheck check(std::string(name), tolerance_);
    for (const Pair& pair : pairs_) compare(check, pair);
    check.give(comparison_);
  }

  StepComparison& comparison_;
  double tolerance_;
  std::vector<Pair> pairs_;
};

void compare_hashes(StepComparison& comparison, std::string_view name, const std::string& recorded, const std::string& computed) {
  if (recorded.empty()) return;
  QuantityCheck check(std::string(name), 0);
  check.words(recorded, computed, {});
  check.give(comparison);
}

void compare_look(StepComparison& comparison, const RolloutRows& recorded, const CloseLook& look, double tolerance) {
  if (!look.drawn.empty()) {
    QuantityCheck ids{std::string(kAnswers), 0};
    for (size_t i = 0; i < recorded.size(); ++i) {
      const TokenIds &kept = recorded[i].rollout->ids, &drawn = look.drawn[i];
      const auto before = static_cast<int64_t>(std::mismatch(kept.begin(), kept.end(), drawn.begin(), drawn.end()).first - kept.begin());
      const auto id_at = [&](const TokenIds& list) {
        return before < std::ssize(list) ? std::to_string(list[static_cast<size_t>(before)]) : std::string("no token");
      };
      const bool equal = kept == drawn;
      ids.words(equal ? "" : id_at(kept), equal ? "" : id_at(drawn),
                {.answer = static_cast<int64_t>(i), .token = before - recorded[i].rollout->prompt_length});
    }
    ids.give(comparison);
  }
  QuantityCheck engine{std::string(kEngine), tolerance}, logprobs{std::string(kLogprobs), tolerance};
  for (size_t i = 0; i < look.logprobs.size(); ++i) {
    const RecordPlace place{.answer = static_cast<int64_t>(i)};
    engine.lists(recorded[i].rollout->logprobs, look.logprobs[i], place);
    if (!recorded[i].logprobs.empty()) logprobs.lists(recorded[i].logprobs, look.logprobs[i], place);
  }
  engine.give(comparison);
  logprobs.give(comparison);
}

void compare_rewards(StepComparison& comparison, const RolloutRows& recorded, const CloseLook& look, double tolerance) {
  QuantityCheck rewards{std::string(kRewards), tolerance}, parts{std::string(kParts), tolerance};
  for (size_t i = 0; i < look.rewards.size(); ++i) {
    const RecordPlace place{.answer = static_cast<int64_t>(i)};
    rewards.numbers(value_of(recorded[i].reward), value_of(look.rewards[i]), place);
    for (const auto& [name, value] : recorded[i].reward.parts) parts.numbers(value, part_of(look.rewards[i], name), place);
  }
  rewards.give(comparison);
  parts.give(comparison);
}

void compare_updates(StepComparison& comparison, const std::vector<Metrics>& recorded, const std::vector<Metrics>& computed,
                     double tolerance) {
  if (recorded.empty()) return;
  QuantityCheck count("updates", 0);
  count.numbers(static_cast<double>(recorded.size()), static_cast<double>(computed.size()), {});
  count.give(comparison);
  std::vector<std::string> names;
  for (const Metrics& update : recorded)
    for (const auto& [name, value] : update)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  for (const std::string& name : names) {
    QuantityCheck check(std::string(kUpdate) + name, tolerance);
    for (size_t i = 0; i < std::min(recorded.size(), computed.size()); ++i)
      check.numbers(or_nan(recorded[i].find(name)), or_nan(computed[i].find(name)), {.update = static_cast<int64_t>(i)});
    check.give(comparison);
  }
}

bool differs(const StepComparison& comparison, std::string_view name) {
  const Quantity* found = comparison.find(name);
  return found != nullptr && found->num_differ > 0;
}

}  // namespace

bool StepComparison::matches() const {
  return std::all_of(quantities.begin(), quantities.end(), [](const Quantity& quantity) { return quantity.num_differ == 0; });
}

const Quantity* StepComparison::find(std::string_view name) const {
  const auto found = std::find_if(quantities.begin(), quantities.end(), [&](const Quantity& quantity) { return quantity.name == name; });
  return found == quantities.end() ? nullptr : &*found;
}

std::string place_text(const RecordPlace& place) {
  std::string text;
  const auto add = [&](const char* what, std::optional<int64_t> number) {
    if (number) text += str(text.empty() ? "" : ", ", what, " ", *number);
  };
  add("answer", place.answer);
  add("token", place.token);
  add("update", place.update);
  return text;
}

void QuantityCheck::differ(double by, const RecordPlace& place, std::string recorded, std::string computed) {
  quantity_.num_differ += 1;
  if (quantity_.num_differ == 1) quantity_.first = place;
  // Of two without a numeric distance the first stays.
  if (quantity_.num_differ > 1 && !(by > quantity_.largest)) return;
  quantity_.largest = by;
  quantity_.place = place;
  quantity_.recorded = std::move(recorded);
  quantity_.computed = std::move(computed);
}

template <typename Number>
void QuantityCheck::compare(Number recorded, Number computed, const RecordPlace& place) {
  quantity_.num_compared += 1;
  const bool is_known = std::isfinite(recorded), is_number = std::isfinite(computed);
  if (recorded == computed || (!is_known && !is_number)) return;
  const double by = std::abs(double{recorded} - double{computed});
  const double share = by / std::max(1.0, std::abs(double{recorded}));
  if (is_known && is_number && share <= tolerance_) {
    quantity_.largest_ignored = std::max(quantity_.largest_ignored, share);
    return;
  }
  differ(is_known && is_number ? by : 0, place, text_of(recorded), text_of(computed));
}

void QuantityCheck::numbers(double recorded, double computed, const RecordPlace& place) { compare(recorded, computed, place); }

void QuantityCheck::lists(std::span<const float> recorded, std::span<const float> computed, RecordPlace place) {
  if (recorded.size() != computed.size()) {
    words(str(recorded.size(), " numbers"), str(computed.size(), " numbers"), place);
    return;
  }
  for (size_t i = 0; i < recorded.size(); ++i) {
    place.token = static_cast<int64_t>(i);
    compare(recorded[i], computed[i], place);
  }
}

void QuantityCheck::words(const std::string& recorded, const std::string& computed, const RecordPlace& place) {
  quantity_.num_compared += 1;
  if (recorded != computed) differ(0, place, recorded, computed);
}

void QuantityCheck::give(StepComparison& comparison) const {
  if (quantity_.num_compared > 0) comparison.quantities.push_back(quantity_);
}

StepComparison compare_step(const RecordedStep& recorded, const RecordedStep& computed, const CloseLook& look, double tolerance) {
  StepComparison comparison{.step = recorded.header.step};
  const bool compares_hashes = tolerance == 0;
  if (compares_hashes) {
    compare_hashes(comparison, kWeightsBefore, recorded.header.weights_before, computed.header.weights_before);
    if (!recorded.header.weights_before.empty())
      compare_hashes(comparison, kSettings, recorded.header.fingerprint, computed.header.fingerprint);
  }
  compare_look(comparison, recorded.rows, look, tolerance);
  std::map<const Rollout*, size_t> places;
  for (size_t i = 0; i < recorded.rows.size(); ++i) places[recorded.rows[i].rollout.get()] = i;
  ensure(places.size() == computed.rows.size(), "a replayed step with other answers than its record");
  RowCheck rows(comparison, tolerance);
  for (const RolloutRow& row : computed.rows) {
    const size_t place = places.at(row.rollout.get());
    rows.add_pair(static_cast<int64_t>(place), recorded.rows[place], row);
  }
  if (look.logprobs.empty()) rows.lists(kLogprobs, &RolloutRow::logprobs);
  rows.lists(kReference, &RolloutRow::reference);
  rows.entropies();
  rows.numbers("KL", [](const RolloutRow& row) { return row.kl_mean; });
  rows.numbers("KL sums", [](const RolloutRow& row) { return row.kl_sum; });
  compare_rewards(comparison, recorded.rows, look, tolerance);
  rows.numbers("rewards with KL", [](const RolloutRow& row) { return row.reward_with_kl; });
  rows.numbers("baselines", [](const RolloutRow& row) { return row.baseline; });
  rows.numbers("advantages", [](const RolloutRow& row) { return row.advantage; });
  rows.lists("token advantages", &RolloutRow::advantages);
  rows.lists("returns", &RolloutRow::returns);
  rows.numbers("trained on", [](const RolloutRow& row) { return row.trains ? 1.0 : 0.0; });
  compare_updates(comparison, recorded.header.updates, computed.header.updates, tolerance);
  if (compares_hashes) compare_hashes(comparison, kWeightsAfter, recorded.header.weights_after, computed.header.weights_after);
  if (recorded.header.weights_before.empty())
    comparison.notes.emplace_back("an older record, without hashes of weights and metrics of updates: those are not compared");
  return comparison;
}

std::string blame_of(const StepComparison& comparison) {
  const auto is_other = [&](std::string_view name) { return differs(comparison, name); };
  if (is_other(kWeightsBefore)) return "the weights before the step: they differ from those in the record";
  if (is_other(kAnswers)) return "the record's tokens: the policy samples others";
  const std::array<std::string_view, 3> of_tokens = {kEngine, kLogprobs, kReference};
  const auto num_others = std::count_if(of_tokens.begin(), of_tokens.end(), is_other);
  const Quantity* engine = comparison.find(kEngine);
  // One number of one list may have been changed; tokens determine all lists, and every number after them.
  if (num_others > 1 || (engine != nullptr && engine->num_differ > 1)) {
    const auto other = std::find_if(of_tokens.begin(), of_tokens.end(), is_other);
    return str("the record's tokens: from ", place_text(comparison.find(*other)->first), " on they do not have its log-probabilities");
  }
  for (const std::string_view name : of_tokens)
    if (is_other(name)) return str("the record's ", name);
  if (is_other(kSettings)) return "the prompts or settings: the run's answers came from different ones";
  if (is_other(kRewards) || is_other(kParts)) return "the record's rewards, or what gives them";
  for (const Quantity& quantity : comparison.quantities) {
    if (quantity.num_differ == 0) continue;
    if (quantity.name == kWeightsAfter || quantity.name.starts_with("update")) return "the update: the same answers led to other weights";
    return str("the record's ", quantity.name, ", or what they follow from");
  }
  return "nothing";
}

}  // namespace kedge
