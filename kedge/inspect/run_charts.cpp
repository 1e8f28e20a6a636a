#include "kedge/inspect/run_charts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// In the order in which they are shown.
struct KnownChart {
  std::string_view id, title, unit;
  ChartFormat format = ChartFormat::number;
  bool is_main = true;
};
constexpr std::array kCharts = {
    KnownChart{"reward", "Reward", ""},
    KnownChart{"watch", "Watched rewards", "", ChartFormat::number},
    KnownChart{"kl", "KL from the start", "nats per token"},
    KnownChart{"loss", "Loss", ""},
    KnownChart{"accuracy", "Accuracy", "", ChartFormat::share},
    KnownChart{"margin", "Reward margin", ""},
    KnownChart{"implicit_rewards", "Implicit rewards", ""},
    KnownChart{"logps", "Log-probability of answers", "nats"},
    KnownChart{"length", "Length of answers", "tokens"},
    KnownChart{"ended", "Answers that ended by themselves", "", ChartFormat::share},
    KnownChart{"entropy", "Entropy", "nats per token"},
    KnownChart{"grad_norm", "Gradient norm", ""},
    KnownChart{"lr", "Learning rate", "", ChartFormat::tiny},
    KnownChart{"values_explained", "Values explained", "", ChartFormat::share},
    KnownChart{"values_loss", "Loss of the values", ""},
    KnownChart{"clip_fraction", "Tokens with a clipped ratio", "", ChartFormat::share},
    KnownChart{"sources", "Rewards by source", "", ChartFormat::number, false},
    KnownChart{"reward_std", "Spread of rewards", "", ChartFormat::number, false},
    KnownChart{"reward_with_kl", "Reward with KL penalty", "", ChartFormat::number, false},
    KnownChart{"distinct", "Distinct pairs of tokens", "", ChartFormat::share, false},
    KnownChart{"no_spread", "Prompts whose rewards are all equal", "", ChartFormat::share, false},
    KnownChart{"length_correlation", "Correlation of reward and length", "", ChartFormat::number, false},
    KnownChart{"ratio", "Ratio of new to old probability", "", ChartFormat::number, false},
    KnownChart{"advantages", "Advantages", "", ChartFormat::number, false},
    KnownChart{"returns", "Returns", "", ChartFormat::number, false},
    KnownChart{"values", "Values", "", ChartFormat::number, false},
    KnownChart{"logprob_gap", "Gap between sampling and training", "nats", ChartFormat::tiny, false},
    KnownChart{"pair_rewards", "Rewards of pairs", "", ChartFormat::number, false},
    KnownChart{"kl_sum", "KL from the start, per answer", "nats", ChartFormat::number, false},
    KnownChart{"tokens_per_s", "Tokens per second", "", ChartFormat::number, false},
    KnownChart{"validation_time", "Time of a validation", "s", ChartFormat::seconds, false},
    KnownChart{"rollout_time", "Time of the rollouts", "s", ChartFormat::seconds, false},
    KnownChart{"step_time", "Time of a step", "s", ChartFormat::seconds, false},
};

// The name after the group ("train_rollouts/"), and the chart it belongs to. A name that ends in "/" matches all below it.
// `label`: added after training or validation; empty if the chart has only one such metric.
struct KnownNumber {
  std::string_view rest, chart, label;
};
constexpr std::array kNumbers = {
    KnownNumber{"rewards", "reward", ""},
    KnownNumber{"global_rewards", "reward", "all answers"},
    KnownNumber{"rewards/margins", "margin", "implicit rewards"},
    KnownNumber{"rewards/accuracies", "accuracy", "implicit rewards"},
    KnownNumber{"rewards/chosen", "implicit_rewards", "better answers"},
    KnownNumber{"rewards/rejected", "implicit_rewards", "worse answers"},
    KnownNumber{"rewards/", "sources", ""},
    KnownNumber{"watch/", "watch", ""},
    KnownNumber{"init_policy_kl", "kl", ""},
    KnownNumber{"loss", "loss", ""},
    KnownNumber{"acc", "accuracy", ""},
    KnownNumber{"rewards_margin", "margin", ""},
    KnownNumber{"generation_length", "length", ""},
    KnownNumber{"fraction_of_samples_properly_ended", "ended", ""},
    KnownNumber{"entropy", "entropy", ""},
    KnownNumber{"grad_norm", "grad_norm", ""},
    KnownNumber{"lr", "lr", ""},
    KnownNumber{"values_explained", "values_explained", ""},
    KnownNumber{"values_loss", "values_loss", ""},
    KnownNumber{"ppo_clip_fraction", "clip_fraction", ""},
    KnownNumber{"rewards_std", "reward_std", ""},
    KnownNumber{"rewards_with_kl", "reward_with_kl", "reward"},
    KnownNumber{"baseline_mean", "reward_with_kl", "baseline"},
    KnownNumber{"distinct_2", "distinct", ""},
    KnownNumber{"groups_without_spread", "no_spread", ""},
    KnownNumber{"reward_length_correlation", "length_correlation", ""},
    KnownNumber{"ppo_ratio", "ratio", "ratio"},
    KnownNumber{"ppo_ratio_clamped", "ratio", "held"},
    KnownNumber{"advantages_mean", "advantages", "mean"},
    KnownNumber{"advantages_std", "advantages", "standard deviation"},
    KnownNumber{"returns_mean", "returns", "mean"},
    KnownNumber{"returns_std", "returns", "standard deviation"},
    KnownNumber{"values_mean", "values", "mean"},
    KnownNumber{"values_std", "values", "standard deviation"},
    KnownNumber{"logprob_gap_mean", "logprob_gap", "mean"},
    KnownNumber{"logprob_gap_max", "logprob_gap", "greatest"},
    KnownNumber{"rewards_chosen_mean", "pair_rewards", "better answers"},
    KnownNumber{"rewards_rejected_mean", "pair_rewards", "worse answers"},
    KnownNumber{"logps/chosen", "logps", "better answers"},
    KnownNumber{"logps/rejected", "logps", "worse answers"},
    KnownNumber{"init_policy_kl_sum", "kl_sum", ""},
    KnownNumber{"kl", "kl_sum", ""},
    KnownNumber{"tokens_per_s", "tokens_per_s", ""},
    KnownNumber{"validation_time", "validation_time", ""},
    KnownNumber{"rollout_time", "rollout_time", ""},
    KnownNumber{"step_time", "step_time", ""},
};

struct KnownPart {
  std::string_view name, label;
};
constexpr std::array kParts = {KnownPart{"timers/generate", "generation"}, KnownPart{"timers/logprobs", "log-probs, policy"},
                               KnownPart{"timers/init_logprobs", "log-probs, reference"},
                               KnownPart{"timers/critic_wait", "wait for rewards"}, KnownPart{"timers/train_time", "updates"}};
constexpr std::string_view kStepTime = "train/step_time";

enum class Split { training, validation, timers, none };

struct SplitName {
  std::string_view group;
  Split split;
};
constexpr std::array kSplits = {SplitName{"train", Split::training},          SplitName{"train_rollouts", Split::training},
                                SplitName{"train_optim", Split::training},    SplitName{"validation", Split::validation},
                                SplitName{"val_rollouts", Split::validation}, SplitName{"timers", Split::timers}};

// "train_rollouts/watch/polite" is {training, "watch/polite"}; a name without a known group is all rest.
struct NameParts {
  Split split = Split::none;
  std::string_view rest;
};
NameParts parts_of(std::string_view name) {
  const size_t slash = name.find('/');
  for (const SplitName& known : kSplits)
    if (slash != std::string_view::npos && known.group == name.substr(0, slash)) return {known.split, name.substr(slash + 1)};
  return {Split::none, name};
}

const KnownNumber* known_number(std::string_view rest) {
  for (const KnownNumber& known : kNumbers)
    if (known.rest == rest || (known.rest.ends_with('/') && rest.size() > known.rest.size() && rest.starts_with(known.rest))) return &known;
  return nullptr;
}

std::string label_of(const NameParts& parts, std::string_view behind) {
  const bool is_validation = parts.split == Split::validation;
  if (behind.empty()) return is_validation ? "validation" : "training";
  return str(behind, is_validation ? ", validation" : "");
}

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

// The chart of a name, empty yet, and its place among all.
struct Place {
  size_t order = 0;
  Chart chart;
  ChartSeries series;
};
Place place_of(const std::string& name) {
  const NameParts parts = parts_of(name);
  const KnownNumber* known = parts.split == Split::none ? nullptr : known_number(parts.rest);
  ChartSeries series{name, label_of(parts, ""), parts.split == Split::validation};
  if (known == nullptr) {
    Chart chart{.id = std::string(parts.rest), .title = spaced(parts.rest), .unit = "", .is_main = false};
    if (parts.split == Split::timers) {
      chart = {.id = name, .title = "Time of " + chart.title, .unit = "s", .format = ChartFormat::seconds, .is_main = false};
      series.label = spaced(parts.rest);
    }
    return {kCharts.size(), std::move(chart), std::move(series)};
  }
  series.label = label_of(parts, known->rest.ends_with('/') ? parts.rest.substr(known->rest.size()) : known->label);
  const auto found = std::find_if(kCharts.begin(), kCharts.end(), [&](const KnownChart& chart) { return chart.id == known->chart; });
  ensure(found != kCharts.end(), "no chart ", known->chart);
  return {static_cast<size_t>(found - kCharts.begin()),
          {.id = std::string(found->id),
           .title = std::string(found->title),
           .unit = std::string(found->unit),
           .format = found->format,
           .is_main = found->is_main},
          std::move(series)};
}

bool is_part(std::string_view name) {
  return std::any_of(kParts.begin(), kParts.end(), [&](const KnownPart& part) { return part.name == name; });
}

// Training before validation, then by the order of the table, then by name.
std::tuple<bool, const KnownNumber*, std::string> order_of(const ChartSeries& series) {
  return {series.is_validation, known_number(parts_of(series.name).rest), series.name};
}

}  // namespace

std::string_view name_of(ChartFormat format) {
  switch (format) {
    case ChartFormat::number:
      return "number";
    case ChartFormat::share:
      return "share";
    case ChartFormat::seconds:
      return "seconds";
    case ChartFormat::tiny:
      return "tiny";
  }
  throw Error("a format of charts without a name");
}

std::vector<Chart> charts_of(std::span<const std::string> names) {
  std::vector<Place> places;
  for (const std::string& name : names) {
    if (is_part(name)) continue;
    Place place = place_of(name);
    const auto found = std::find_if(places.begin(), places.end(),
                                    [&](const Place& other) { return other.order == place.order && other.chart.id == place.chart.id; });
    Place& there = found != places.end() ? *found : places.emplace_back(place);
    if (std::find(there.chart.series.begin(), there.chart.series.end(), place.series) == there.chart.series.end())
      there.chart.series.push_back(std::move(place.series));
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return std::tie(a.order, a.chart.id) < std::tie(b.order, b.chart.id); });
  std::vector<Chart> charts;
  for (Place& place : places) {
    std::sort(place.chart.series.begin(), place.chart.series.end(),
              [](const ChartSeries& a, const ChartSeries& b) { return order_of(a) < order_of(b); });
    charts.push_back(std::move(place.chart));
  }
  return charts;
}

StepTiming timing_of(std::span<const std::string> names) {
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  StepTiming timing;
  for (const KnownPart& part : kParts)
    if (has(part.name)) timing.parts.push_back({std::string(part.name), std::string(part.label)});
  if (has(kStepTime)) timing.total = kStepTime;
  return timing;
}

}  // namespace kedge
