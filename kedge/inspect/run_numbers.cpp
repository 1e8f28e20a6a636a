#include "kedge/inspect/run_numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "kedge/core/error.h"
#include "kedge/metrics/progress.h"

namespace kedge {
namespace {

// In the order in which they are shown. A name that ends in "/" matches all below it, the rest of their names added after the label.
struct KnownRow {
  std::string_view name, label;
  Wanted wanted;
  bool is_share = false;
};
constexpr std::array kKnown = {
    KnownRow{"train_rollouts/rewards", "reward", Wanted::high},
    KnownRow{"train_rollouts/global_rewards", "reward, all answers", Wanted::high},
    KnownRow{"train_rollouts/rewards/", "  of ", Wanted::any},
    KnownRow{"train_rollouts/watch/", "watched ", Wanted::high},
    KnownRow{"train/loss", "loss", Wanted::low},
    KnownRow{"train/acc", "accuracy", Wanted::high, true},
    KnownRow{"train/rewards/margins", "reward margin", Wanted::high},
    KnownRow{"val_rollouts/rewards", "validation reward", Wanted::high},
    KnownRow{"val_rollouts/global_rewards", "validation, all", Wanted::high},
    KnownRow{"val_rollouts/watch/", "validation ", Wanted::high},
    KnownRow{"validation/loss", "validation loss", Wanted::low},
    KnownRow{"validation/acc", "validation accuracy", Wanted::high, true},
    KnownRow{"validation/rewards_margin", "validation margin", Wanted::high},
    KnownRow{"validation/rewards/margins", "val. reward margin", Wanted::high},
    KnownRow{"train_rollouts/init_policy_kl", "KL from the start", Wanted::any},
    KnownRow{"train_rollouts/values_explained", "values explained", Wanted::high, true},
    KnownRow{"train_rollouts/generation_length", "length of answers", Wanted::any},
    KnownRow{"train_rollouts/fraction_of_samples_properly_ended", "ended by themselves", Wanted::high, true},
    KnownRow{"train_rollouts/entropy", "entropy", Wanted::any},
    KnownRow{"train_rollouts/distinct_2", "distinct pairs", Wanted::any, true},
    KnownRow{"train_rollouts/groups_without_spread", "all rewards equal", Wanted::any, true},
};
constexpr std::array<std::string_view, 4> kFinite = {"train_optim/loss", "train_optim/grad_norm", "train/grad_norm", "train/loss"};

// The rewards of a single source are the reward.
constexpr std::string_view kSources = "train_rollouts/rewards/", kWatched = "train_rollouts/watch/";

const KnownRow* known_row(std::string_view name) {
  for (const KnownRow& known : kKnown)
    if (known.name == name || (known.name.ends_with('/') && name.starts_with(known.name))) return &known;
  return nullptr;
}

NumberRow row_of(const KnownRow& known, const std::string& name) {
  const std::string rest = known.name.ends_with('/') ? name.substr(known.name.size()) : "";
  return {
      .name = name, .label = std::string(known.label) + rest, .wanted = known.wanted, .is_share = known.is_share, .series = {.name = name}};
}

// Several numbers of one step (its updates) become the last of them.
void add(Series& series, int64_t step, double value) {
  if (!series.empty() && series.steps.back() == step) {
    series.values.back() = value;
  } else {
    series.add(step, value);
  }
}

std::string figure_of(double value, bool is_share) { return is_share ? str(std::llround(100 * value), " %") : format_number(value); }

std::string trimmed(std::string label) { return label.substr(label.find_first_not_of(' ')); }

void add_turns(std::vector<Hint>& hints, const RunNumbers& numbers) {
  for (const NumberRow& row : numbers.rows)
    if (const std::optional<Turn> turn = turn_of(row.series, row.wanted))
      hints.push_back({turn->step, str(trimmed(row.label), " got worse: ", figure(turn->best, row), " around step ", turn->best_step, ", ",
                                       figure(turn->last, row), " at the end")});
}

// A fraction of its initial value.
void add_fall(std::vector<Hint>& hints, const RunNumbers& numbers, std::string_view name, double share, std::string_view what) {
  const NumberRow* row = numbers.find(name);
  const std::optional<Ends> ends = row == nullptr ? std::nullopt : ends_of(row->series);
  if (!ends || ends->first <= 0) return;
  if (const auto step = stays_below(row->series, share * ends->first))
    hints.push_back({*step, str(row->label, " is below ", figure_of(share, true), " of what it was: ", what)});
}

void add_rise(std::vector<Hint>& hints, const RunNumbers& numbers, std::string_view name, double limit, const std::string& what) {
  const NumberRow* row = numbers.find(name);
  if (row == nullptr) return;
  if (const auto step = stays_above(row->series, limit)) hints.push_back({*step, what});
}

void add_not_finite(std::vector<Hint>& hints, const RunNumbers& numbers) {
  std::optional<Hint> first;
  const auto look = [&](const Series& series) {
    const std::optional<int64_t> step = first_not_finite(series);
    if (step && (!first || *step < first->step)) first = {*step, str(series.name, " is not a finite number")};
  };
  for (const Series& series : numbers.watched) look(series);
  for (const NumberRow& row : numbers.rows)
    if (row.wanted != Wanted::any) look(row.series);
  if (first) hints.push_back(*first);
}

// Updates that changed nothing.
void add_idle_updates(std::vector<Hint>& hints, const RunNumbers& numbers) {
  constexpr size_t kFewestUpdates = 4;
  for (const Series& series : numbers.watched) {
    if (series.name != "train_optim/grad_norm" || series.values.size() < kFewestUpdates) continue;
    const auto num_idle = std::count(series.values.begin(), series.values.end(), 0.0);
    if (2 * static_cast<size_t>(num_idle) <= series.values.size()) continue;
    const auto first = std::find(series.values.begin(), series.values.end(), 0.0) - series.values.begin();
    hints.push_back({series.steps[static_cast<size_t>(first)], str("the gradient was 0 in ", num_idle, " of ", series.values.size(),
                                                                   " updates: unfinished=drop, or failed or equal rewards")});
  }
}

// Worse at the end than at the start: what was watched and not trained on.
void add_watched_losses(std::vector<Hint>& hints, const RunNumbers& numbers) {
  for (const NumberRow& row : numbers.rows) {
    const std::optional<Ends> ends = ends_of(row.series);
    if (!row.name.starts_with(kWatched) || !ends || change_of(row.series) != Change::fell) continue;
    if (turn_of(row.series, row.wanted)) continue;  // reported with the others
    hints.push_back({row.series.steps.back(), str(row.label, ", which is not trained on, fell from ", figure(ends->first, row), " to ",
                                                  figure(ends->last, row), ": the reward rose at its cost, or it drifted")});
  }
}

// The number after the last occurrence of a word.
std::optional<int64_t> number_after(std::string_view line, std::string_view word) {
  const size_t at = line.rfind(word);
  if (at == std::string_view::npos) return std::nullopt;
  int64_t number = 0;
  const std::string_view rest = line.substr(at + word.size());
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return error == std::errc() && end != rest.data() ? std::optional(number) : std::nullopt;
}

// "2026-11-16 02:24:28 warning text": the text after the label, if the line has it.
std::optional<std::string> labelled(std::string_view line, std::string_view label) {
  constexpr size_t kClock = 20;  // "2026-11-16 02:24:28 "
  if (line.size() <= kClock || !line.substr(kClock).starts_with(label)) return std::nullopt;
  return std::string(line.substr(kClock + label.size()));
}

std::string sentence_on(const NumberRow& row) {
  const std::optional<Ends> ends = ends_of(row.series);
  if (!ends) return row.label + " was never a finite number";
  const std::string from_to = str(" from ", figure(ends->first, row), " to ", figure(ends->last, row));
  if (!tells_noise(row.series)) return str(row.label, " went", from_to, ", too few values to tell that from noise");
  const Change change = change_of(row.series);
  if (change == Change::none) return str(row.label, " did not change by more than its noise,", from_to);
  const bool rose = change == Change::rose, is_good = rose == (row.wanted == Wanted::high);
  return str(row.label, rose ? " rose" : " fell", from_to,
             is_good ? ": better, by more than its noise" : ": worse, by more than its noise");
}

}  // namespace

std::string figure(double value, const NumberRow& row) { return figure_of(value, row.is_share); }

const NumberRow* RunNumbers::find(std::string_view name) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const NumberRow& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

const NumberRow* RunNumbers::main() const {
  const auto found = std::find_if(rows.begin(), rows.end(), [](const NumberRow& row) { return row.wanted != Wanted::any; });
  return found == rows.end() ? nullptr : &*found;
}

RunNumbers read_numbers(std::span<const Series> metrics) {
  RunNumbers numbers;
  for (const Series& series : metrics) {
    if (series.name == "train/step_time" && !series.empty()) numbers.num_steps = series.steps.back() + 1;
    if (series.name == "train/step_time" || series.name == "timers/validation_time")
      numbers.seconds += std::accumulate(series.values.begin(), series.values.end(), 0.0);
    if (std::find(kFinite.begin(), kFinite.end(), series.name) != kFinite.end()) numbers.watched.push_back(series);
    const KnownRow* known = known_row(series.name);
    if (known == nullptr) continue;
    NumberRow& row = numbers.rows.emplace_back(row_of(*known, series.name));
    for (size_t i = 0; i < series.values.size(); ++i) add(row.series, series.steps[i], series.values[i]);
  }
  const auto is_source = [](const NumberRow& row) { return row.name.starts_with(kSources); };
  if (std::count_if(numbers.rows.begin(), numbers.rows.end(), is_source) == 1) std::erase_if(numbers.rows, is_source);
  std::stable_sort(numbers.rows.begin(), numbers.rows.end(),
                   [](const NumberRow& a, const NumberRow& b) { return known_row(a.name) < known_row(b.name); });
  return numbers;
}

RunNumbers read_numbers(std::span<const MetricsLine> lines) {
  std::vector<Series> metrics;
  for (const MetricsLine& line : lines)
    for (const auto& [name, value] : line.metrics) {
      const auto found = std::find_if(metrics.begin(), metrics.end(), [&name = name](const Series& series) { return series.name == name; });
      (found != metrics.end() ? *found : metrics.emplace_back(Series{.name = name})).add(line.step, value);
    }
  RunNumbers numbers = read_numbers(metrics);
  if (lines.empty()) return numbers;
  numbers.first_time = lines.front().time;
  numbers.last_time = lines.back().time;
  return numbers;
}

std::vector<Hint> find_hints(const RunNumbers& numbers, double max_kl) {
  std::vector<Hint> hints;
  add_not_finite(hints, numbers);
  add_turns(hints, numbers);
  add_idle_updates(hints, numbers);
  add_watched_losses(hints, numbers);
  if (max_kl > 0)
    add_rise(hints, numbers, "train_rollouts/init_policy_kl", max_kl,
             str("KL run-away: more than ", format_number(max_kl), " nats per token (health.max_kl) from the start"));
  add_rise(hints, numbers, "train_rollouts/groups_without_spread", 0.6,
           "most prompts' answers all get the same reward: little is left to learn, or the reward is at its limit");
  add_fall(hints, numbers, "train_rollouts/entropy", 0.2, "answers become similar");
  add_fall(hints, numbers, "train_rollouts/distinct_2", 0.5, "answers repeat themselves or each other");
  std::stable_sort(hints.begin(), hints.end(), [](const Hint& a, const Hint& b) { return a.step < b.step; });
  return hints;
}

LogFindings read_log(std::string_view log) {
  LogFindings findings;
  int64_t step = 0;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (line.find("Training steps ") != std::string_view::npos) step = number_after(line, "Training steps ").value_or(step);
    const std::optional<std::string> warning = labelled(line, "warning "), error = labelled(line, "error ");
    if (const std::string_view clock = line.substr(0, std::min<size_t>(line.size(), 4)); clock.starts_with("20"))
      findings.last_error = error;
    if (!warning && !error) continue;
    findings.num_warnings += 1;
    const std::string& text = warning ? *warning : *error;
    const std::optional<int64_t> named = number_after(text, "after step ");
    const std::string opening = named ? str("after step ", *named, ": ") : "";
    const Hint hint{named.value_or(step), text.starts_with(opening) ? text.substr(opening.size()) : text};
    if (!findings.first_warning) findings.first_warning = hint;
    if (named && !findings.first_alarm) findings.first_alarm = hint;
  }
  return findings;
}

std::string verdict_of(const RunNumbers& numbers) {
  const NumberRow* row = numbers.main();
  if (row == nullptr) return "no metric shows whether it worked";
  const auto held_out = std::find_if(numbers.rows.begin(), numbers.rows.end(), [](const NumberRow& other) {
    return other.name.starts_with("val") && other.wanted != Wanted::any && other.series.values.size() > 1;
  });
  std::string verdict = sentence_on(*row) + (held_out == numbers.rows.end() ? "" : "; " + sentence_on(*held_out));
  // A better reward is not a success if what it should measure got worse.
  for (const NumberRow& watched : numbers.rows)
    if (watched.name.starts_with(kWatched) && change_of(watched.series) == Change::fell) verdict += str("; but ", watched.label, " fell");
  return verdict;
}

}  // namespace kedge
