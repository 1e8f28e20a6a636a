#include "kedge/inspect/answer_list.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "kedge/core/error.h"
#include "kedge/core/json.h"

namespace kedge {
namespace {

using Rows = std::span<const RolloutRow>;

std::optional<double> if_finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

// Sorts by falling numbers, or rising ones; those without a number are last.
void sort_by(auto& places, bool rising, auto&& number_at) {
  std::stable_sort(places.begin(), places.end(), [&](const auto& a, const auto& b) {
    const std::optional<double> of_a = number_at(a), of_b = number_at(b);
    if (!of_a || !of_b) return of_a.has_value() && !of_b.has_value();
    return rising ? *of_a < *of_b : *of_a > *of_b;
  });
}

void cut_and_turn(auto& places, const AnswerChoice& choice) {
  if (choice.limit > 0 && std::ssize(places) > choice.limit) places.resize(static_cast<size_t>(choice.limit));
  if (choice.reverse) std::reverse(places.begin(), places.end());
}

// Mean and more of numbers as they come.
class Collected {
 public:
  void add(std::optional<double> value) {
    if (value) values_.push_back(*value);
  }
  [[nodiscard]] std::optional<double> mean() const {
    if (values_.empty()) return std::nullopt;
    return std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size());
  }
  [[nodiscard]] std::optional<double> deviation() const {
    if (values_.empty()) return std::nullopt;
    double squares = 0;
    for (const double value : values_) squares += (value - *mean()) * (value - *mean());
    return std::sqrt(squares / static_cast<double>(values_.size()));
  }
  [[nodiscard]] std::optional<double> min() const {
    return values_.empty() ? std::nullopt : std::optional(*std::min_element(values_.begin(), values_.end()));
  }
  [[nodiscard]] std::optional<double> max() const {
    return values_.empty() ? std::nullopt : std::optional(*std::max_element(values_.begin(), values_.end()));
  }

 private:
  std::vector<double> values_;
};

bool differ(const RolloutRow& a, const RolloutRow& b) {
  return a.rollout->response != b.rollout->response || number_of(a, AnswerKey::reward) != number_of(b, AnswerKey::reward);
}

}  // namespace

std::optional<double> number_of(const RolloutRow& row, AnswerKey key) {
  switch (key) {
    case AnswerKey::reward:
      return row.reward.failed() ? std::nullopt : if_finite(row.reward.value);
    case AnswerKey::kl:
      return row.reference.empty() ? std::nullopt : if_finite(row.kl_mean);
    case AnswerKey::length:
      return static_cast<double>(row.rollout->response_length());
    case AnswerKey::advantage:
      return row.reward.failed() ? std::nullopt : if_finite(row.advantage);
    case AnswerKey::order:
      break;
  }
  return std::nullopt;
}

std::vector<size_t> choose_answers(Rows rows, const AnswerChoice& choice) {
  std::vector<size_t> places(rows.size());
  std::iota(places.begin(), places.end(), size_t{0});
  if (choice.key != AnswerKey::order) {
    sort_by(places, choice.worst, [&](size_t place) { return number_of(rows[place], choice.key); });
  } else if (choice.worst) {
    std::reverse(places.begin(), places.end());
  }
  cut_and_turn(places, choice);
  return places;
}

std::vector<AnswerPair> pair_answers(Rows first, Rows second) {
  std::vector<AnswerPair> pairs;
  std::vector<bool> first_done(first.size()), second_done(second.size());
  const auto pair_by = [&](auto&& key_of) {
    std::map<decltype(key_of(first[0])), std::vector<size_t>> waiting;  // of the second, the last one first
    for (size_t place = second.size(); place-- > 0;)
      if (!second_done[place]) waiting[key_of(second[place])].push_back(place);
    for (size_t place = 0; place < first.size(); ++place) {
      const auto found = waiting.find(key_of(first[place]));
      if (first_done[place] || found == waiting.end() || found->second.empty()) continue;
      const size_t other = found->second.back();
      found->second.pop_back();
      first_done[place] = second_done[other] = true;
      pairs.push_back({.first = place, .second = other, .differs = differ(first[place], second[other])});
    }
  };
  pair_by([](const RolloutRow& row) { return std::pair(std::string_view(row.rollout->prompt), row.rollout->prompt_id); });
  pair_by([](const RolloutRow& row) { return std::string_view(row.rollout->prompt); });
  std::sort(pairs.begin(), pairs.end(), [](const AnswerPair& a, const AnswerPair& b) { return a.first < b.first; });
  return pairs;
}

std::vector<AnswerPair> choose_pairs(std::vector<AnswerPair> pairs, Rows first, Rows second, const AnswerChoice& choice) {
  if (choice.key != AnswerKey::order) {
    sort_by(pairs, choice.worst, [&](const AnswerPair& pair) -> std::optional<double> {
      const auto before = number_of(first[pair.first], choice.key), after = number_of(second[pair.second], choice.key);
      return before && after ? std::optional(*after - *before) : std::nullopt;
    });
  } else if (choice.worst) {
    std::reverse(pairs.begin(), pairs.end());
  }
  std::stable_partition(pairs.begin(), pairs.end(), [](const AnswerPair& pair) { return pair.differs; });
  cut_and_turn(pairs, choice);
  return pairs;
}

int64_t choose_step(std::span<const int64_t> steps, std::string_view wanted, std::string_view name) {
  if (wanted == "first") return steps.front();
  if (wanted == "last") return steps.back();
  int64_t step = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), step);
  check(error == std::errc() && end == wanted.data() + wanted.size(), "expected a step number, first or last, found ", Json(wanted).dump());
  const auto above = std::lower_bound(steps.begin(), steps.end(), step);
  if (above != steps.end() && *above == step) return step;
  const std::string before = above == steps.begin() ? "" : std::to_string(*(above - 1));
  const std::string after = above == steps.end() ? "" : std::to_string(*above);
  throw UsageError(str(name, ": no answers of step ", step, "; nearest: ", before, before.empty() || after.empty() ? "" : " and ", after));
}

StepNumbers numbers_of(Rows rows) {
  StepNumbers numbers;
  numbers.num_answers = std::ssize(rows);
  Collected rewards, kl, lengths;
  std::set<int64_t> slots;
  for (const RolloutRow& row : rows) {
    slots.insert(row.slot);
    numbers.num_failed += row.reward.failed() ? 1 : 0;
    numbers.num_ended += row.rollout->finished ? 1 : 0;
    rewards.add(number_of(row, AnswerKey::reward));
    kl.add(number_of(row, AnswerKey::kl));
    lengths.add(number_of(row, AnswerKey::length));
  }
  numbers.num_prompts = std::ssize(slots);
  numbers.reward = rewards.mean();
  numbers.reward_std = rewards.deviation();
  numbers.reward_min = rewards.min();
  numbers.reward_max = rewards.max();
  numbers.kl = kl.mean();
  numbers.length = lengths.mean();
  return numbers;
}

}  // namespace kedge
