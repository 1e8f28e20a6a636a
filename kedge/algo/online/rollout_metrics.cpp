#include "kedge/algo/online/rollout_metrics.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "kedge/algo/online/advantage.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

using Rows = std::span<const RolloutRow>;

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  void set_in(Metrics& metrics, std::string_view name) const {
    if (count_ > 0) metrics.set(name, sum_ / static_cast<double>(count_));
  }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

// Of `number_of(row)`, for the rows that `counts` takes.
void set_mean(Metrics& metrics, std::string_view name, Rows rows, auto&& number_of, auto&& counts) {
  Mean mean;
  for (const RolloutRow& row : rows)
    if (counts(row)) mean.add(static_cast<double>(number_of(row)));
  mean.set_in(metrics, name);
}

void set_mean(Metrics& metrics, std::string_view name, Rows rows, auto&& number_of) {
  set_mean(metrics, name, rows, number_of, [](const RolloutRow&) { return true; });
}

bool has_reward(const RolloutRow& row) { return !row.reward.failed(); }
double reward_of(const RolloutRow& row) { return row.reward.value; }
int64_t tokens_of(const RolloutRow& row) { return row.rollout->length(); }
int64_t prompt_length_of(const RolloutRow& row) { return row.rollout->prompt_length; }
int64_t response_length_of(const RolloutRow& row) { return row.rollout->response_length(); }

bool all_equal(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; });
}

// Pearson's; 0 where one of the two is the same everywhere.
double correlation(std::span<const double> a, std::span<const double> b) {
  if (all_equal(a) || all_equal(b)) return 0;
  const Moments of_a = moments_of(a), of_b = moments_of(b);
  double together = 0;
  for (size_t i = 0; i < a.size(); ++i) together += (a[i] - of_a.mean) * (b[i] - of_b.mean);
  return together / static_cast<double>(a.size()) / std::sqrt(of_a.variance * of_b.variance);
}

// How the rewards spread: over all rows, with the length, and inside the groups of answers to one prompt.
void set_spread(Metrics& metrics, Rows rows) {
  std::vector<double> rewards, lengths;
  std::map<int64_t, std::vector<double>> slots;
  for (const RolloutRow& row : rows) {
    if (!has_reward(row)) continue;
    rewards.push_back(reward_of(row));
    lengths.push_back(static_cast<double>(response_length_of(row)));
    slots[row.slot].push_back(reward_of(row));
  }
  if (rewards.empty()) return;
  metrics.set("rewards_std", all_equal(rewards) ? 0 : std::sqrt(moments_of(rewards).variance));
  metrics.set("reward_length_correlation", correlation(rewards, lengths));
  Mean without_spread, group_std;
  for (const auto& [slot, its] : slots) {
    if (its.size() < 2) continue;
    const auto count = static_cast<double>(its.size());
    without_spread.add(all_equal(its) ? 1 : 0);
    group_std.add(all_equal(its) ? 0 : std::sqrt(moments_of(its).variance * count / (count - 1)));
  }
  group_std.set_in(metrics, "rewards_group_std");
  without_spread.set_in(metrics, "groups_without_spread");
}

// Each component by name, in the order in which the rows first have them.
void set_parts(Metrics& metrics, Rows rows) {
  std::vector<std::pair<std::string_view, Mean>> means;
  const auto mean_of = [&](std::string_view label) -> Mean& {
    const auto found = std::find_if(means.begin(), means.end(), [&](const auto& entry) { return entry.first == label; });
    return found == means.end() ? means.emplace_back(label, Mean()).second : found->second;
  };
  for (const RolloutRow& row : rows)
    for (const auto& [label, value] : row.reward.parts) mean_of(label).add(value);
  for (const auto& [label, mean] : means) mean.set_in(metrics, label.starts_with("watch/") ? std::string(label) : str("rewards/", label));
}

// Low if answers repeat themselves or each other.
double distinct_pairs(Rows rows) {
  std::vector<uint64_t> pairs;
  for (const RolloutRow& row : rows) {
    const TokenIds& ids = row.rollout->ids;
    for (auto i = static_cast<size_t>(row.rollout->prompt_length); i + 1 < ids.size(); ++i)
      pairs.push_back(uint64_t{static_cast<uint32_t>(ids[i])} << 32U | static_cast<uint32_t>(ids[i + 1]));
  }
  if (pairs.empty()) return 0;
  const auto num_pairs = static_cast<double>(pairs.size());
  std::sort(pairs.begin(), pairs.end());
  return static_cast<double>(std::unique(pairs.begin(), pairs.end()) - pairs.begin()) / num_pairs;
}

bool has_entropy(const RolloutRow& row) { return row.entropy.has_value(); }

// Between the log-probs of sampling and those of training.
void set_logprob_gap(Metrics& metrics, Rows rows) {
  Mean mean;
  double max = 0;
  for (const RolloutRow& row : rows) {
    const std::vector<float>& drawn = row.rollout->logprobs;
    if (!has_entropy(row) || drawn.empty()) continue;
    ensure(row.logprobs.size() == drawn.size(), row.logprobs.size(), " log-probs, but ", drawn.size(), " of the engine");
    for (size_t i = 0; i < drawn.size(); ++i) {
      const double gap = std::abs(double{drawn[i]} - double{row.logprobs[i]});
      mean.add(gap);
      max = std::max(max, gap);
    }
  }
  mean.set_in(metrics, "logprob_gap_mean");
  if (metrics.find("logprob_gap_mean")) metrics.set("logprob_gap_max", max);
}

// The last bytes, from the first complete character on.
std::string_view tail_of(std::string_view text) {
  constexpr size_t kBytes = 60;
  if (text.size() <= kBytes) return text;
  size_t begin = text.size() - kBytes;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) ++begin;
  return text.substr(begin);
}

}  // namespace

Metrics answer_metrics(std::span<const RolloutRow> rows) {
  Metrics metrics{{"rollout_size", static_cast<double>(rows.size())}};
  set_mean(metrics, "response_lengths", rows, tokens_of);
  set_mean(metrics, "prompt_lengths", rows, prompt_length_of);
  set_mean(metrics, "generation_length", rows, response_length_of);
  if (!rows.empty()) {
    const auto [shortest, longest] = std::minmax_element(
        rows.begin(), rows.end(), [](const RolloutRow& a, const RolloutRow& b) { return response_length_of(a) < response_length_of(b); });
    metrics.set("generation_length_min", static_cast<double>(response_length_of(*shortest)));
    metrics.set("generation_length_max", static_cast<double>(response_length_of(*longest)));
  }
  set_mean(metrics, "rewards", rows, reward_of, has_reward);
  set_mean(metrics, "fraction_of_samples_properly_ended", rows, [](const RolloutRow& row) { return row.rollout->finished ? 1 : 0; });
  const auto num_failed = rows.size() - static_cast<size_t>(std::count_if(rows.begin(), rows.end(), has_reward));
  if (num_failed > 0) metrics.set("failed_rewards", static_cast<double>(num_failed));
  set_spread(metrics, rows);
  set_parts(metrics, rows);
  metrics.set("distinct_2", distinct_pairs(rows));
  set_mean(
      metrics, "entropy", rows, [](const RolloutRow& row) { return *row.entropy; }, has_entropy);
  set_logprob_gap(metrics, rows);
  return metrics;
}

Metrics kl_metrics(std::span<const RolloutRow> rows) {
  Metrics metrics;
  if (std::any_of(rows.begin(), rows.end(), [](const RolloutRow& row) { return !row.reference.empty(); })) {
    set_mean(metrics, "init_policy_kl", rows, [](const RolloutRow& row) { return row.kl_mean; });
    set_mean(metrics, "init_policy_kl_sum", rows, [](const RolloutRow& row) { return row.kl_sum; });
  }
  set_mean(
      metrics, "rewards_with_kl", rows, [](const RolloutRow& row) { return row.reward_with_kl; }, has_reward);
  return metrics;
}

Metrics rs_metrics(std::span<const RolloutRow> rows) {
  Metrics metrics;
  set_mean(metrics, "global_response_lengths_mean", rows, response_length_of);
  set_mean(metrics, "global_prompt_lengths", rows, prompt_length_of);
  set_mean(metrics, "global_rewards", rows, reward_of, has_reward);
  return metrics;
}

SampleTable first_sample_table(std::string name, std::span<const RolloutRow> rows) {
  SampleTable table{.name = std::move(name), .rows = {}};
  if (rows.empty()) return table;
  const RolloutRow& first = rows.front();
  Sample sample{.prompt = first.rollout->prompt, .response = first.rollout->response, .reward = std::nullopt};
  if (has_reward(first)) sample.reward = reward_of(first);
  sample.extra.emplace_back("length", response_length_of(first));
  if (!first.reference.empty()) sample.extra.emplace_back("kl", first.kl_mean);
  table.rows.push_back(std::move(sample));
  return table;
}

std::optional<std::string> ending_hint(std::span<const RolloutRow> rows, const EndTokens& ends, std::string_view remedy) {
  const auto ended = [](const RolloutRow& row) { return row.rollout->finished; };
  const auto num_ended = static_cast<size_t>(std::count_if(rows.begin(), rows.end(), ended));
  if (num_ended * 10 >= rows.size()) return std::nullopt;
  std::string text = str(num_ended, " of ", rows.size(), " answers ended by themselves; the others were cut off by a length limit", remedy,
                         ". What ends an answer:");
  const char* before = " ";
  for (const auto& [id, spelling] : ends) text += str(std::exchange(before, ", "), Json(spelling).dump(), " (", id, ")");
  text += ends.empty() ? " nothing. Where they were cut off:" : ". Where they were cut off:";
  size_t num_shown = 0;
  for (const RolloutRow& row : rows) {
    if (ended(row)) continue;
    text += str("\n  ", Json(tail_of(row.rollout->response)).dump());
    if (++num_shown == 3) break;
  }
  return text;
}

}  // namespace kedge
