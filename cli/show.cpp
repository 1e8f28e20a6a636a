#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "kedge/core/error.h"
#include "kedge/inspect/answer_list.h"
#include "kedge/inspect/run_records.h"

#include "cli/commands.h"
#include "cli/text/answer_json.h"
#include "cli/text/show_text.h"

namespace kedge::cli {
namespace {

struct ShowOptions {
  std::string run;
  std::string step = "last";
  bool steps = false;
  std::optional<int64_t> prompt;
  std::optional<std::string> diff, other_step;
  std::optional<AnswerKey> sort;
  bool worst = false, reverse = false;
  std::optional<int64_t> limit;
  bool full = false, json = false;

  void fields(auto&& field) {
    field("run", run, "the folder of a run of kedge grpo, rloo, reinforce, rs or ppo", required());
    field("step", step, "which step: its number, first or last");
    field("steps", steps, "print a table with one line per step");
    field("prompt", prompt, "all responses to the prompt with this number, over all steps");
    field("diff", diff, "a second run: compare the same prompts, those that differ first; at the newest step that both have");
    field("other_step", other_step, "the step of the second run; without --diff, of the same run");
    field("sort", sort, "highest first, or in the order of the step [reward; order with --prompt]; with --diff the largest gain");
    field("worst", worst, "lowest first");
    field("reverse", reverse, "reverse the output");
    field("limit", limit, "number of entries shown; 0: all [5; all with --prompt and --steps]", at_least(0));
    field("full", full, "print texts in full; with --json also ids and per-token values");
    field("json", json, "print JSON lines instead of text");
  }

  [[nodiscard]] AnswerChoice choice(AnswerKey key, int64_t usual_limit) const {
    return {.key = sort.value_or(key), .worst = worst, .reverse = reverse, .limit = limit.value_or(usual_limit)};
  }
};

const std::vector<std::string> kShowPositionals = {"run"};
constexpr int64_t kUsualLimit = 5;

// Standard output, until the reader closes it: `kedge show | head` is not an error.
class Output {
 public:
  Output() { std::signal(SIGPIPE, SIG_IGN); }

  void put(std::string_view text) {
    if (closed_) return;
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    closed_ = !written && errno == EPIPE;
    if (!written && !closed_) throw Error(str("standard output: ", std::strerror(errno)));
  }
  void put_line(const Json& json) { put(json.dump() + "\n"); }
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  bool closed_ = false;
};

// "  7", which is above the mark of a text.
std::string lead_of(size_t number) {
  const std::string text = std::to_string(number);
  return text.size() < 3 ? std::string(3 - text.size(), ' ') + text : text;
}

std::string more_text(size_t num_all, size_t num_shown, const PageLook& look) {
  return num_all > num_shown ? "\n" + remark_text(str(num_all - num_shown, " more; --limit 0 shows all"), look) : "";
}

void show_step(const RunRecords& records, const ShowOptions& options, const PageLook& look, Output& output) {
  const int64_t step = records.choose(options.step);
  const RolloutRows rows = records.rows(step);
  const std::vector<size_t> places = choose_answers(rows, options.choice(AnswerKey::reward, kUsualLimit));
  if (!options.json)
    output.put(heading_text("", {str(records.run(), ", step ", step)}, look) + heading_text("", step_pieces(numbers_of(rows)), look));
  for (size_t i = 0; i < places.size() && !output.closed(); ++i) {
    const RolloutRow& row = rows[places[i]];
    if (options.json) {
      output.put_line(json_of(step, row, options.full ? AnswerParts::all : AnswerParts::main));
    } else {
      output.put("\n" + answer_text(lead_of(i + 1), row, WithPrompt::yes, look));
    }
  }
  if (!options.json) output.put(more_text(rows.size(), places.size(), look));
}

void show_steps(const RunRecords& records, const ShowOptions& options, const PageLook& look, Output& output) {
  std::vector<int64_t> steps = records.steps();
  const int64_t limit = options.limit.value_or(0);
  if (limit > 0 && std::ssize(steps) > limit) steps.erase(steps.begin(), steps.end() - limit);  // the newest stay
  if (!options.json) output.put(steps_heading(look));
  for (const int64_t step : steps) {
    if (output.closed()) return;
    const StepNumbers numbers = numbers_of(records.rows(step));
    if (options.json) {
      output.put_line(json_of(step, numbers));
    } else {
      output.put(steps_line(step, numbers));
    }
  }
}

void show_prompt(const RunRecords& records, const ShowOptions& options, const PageLook& look, Output& output) {
  int64_t num_shown = 0, lowest = INT64_MAX, highest = INT64_MIN;
  for (const int64_t step : records.steps()) {
    RolloutRows rows;
    for (RolloutRow& row : records.rows(step)) {
      lowest = std::min(lowest, row.rollout->prompt_id);
      highest = std::max(highest, row.rollout->prompt_id);
      if (row.rollout->prompt_id == *options.prompt) rows.push_back(std::move(row));
    }
    for (const size_t place : choose_answers(rows, options.choice(AnswerKey::order, 0))) {
      if (output.closed()) return;
      const RolloutRow& row = rows[place];
      if (options.json) {
        output.put_line(json_of(step, row, options.full ? AnswerParts::all : AnswerParts::main));
      } else {
        if (num_shown == 0)
          output.put(heading_text("", {str(records.run(), ", prompt ", *options.prompt)}, look) +
                     marked_text('|', row.rollout->prompt, look));
        output.put("\n" + answer_text(str("step ", step), row, WithPrompt::no, look));
      }
      num_shown += 1;
    }
  }
  check(num_shown > 0, records.run(), ": no answer to prompt ", *options.prompt, " in it; its prompts are from ", lowest, " to ", highest);
}

// The steps that are compared. Two runs: the newest that both have, by default.
std::pair<int64_t, int64_t> steps_to_compare(const RunRecords& first, const RunRecords& second, const ShowOptions& options) {
  if (options.other_step) return {first.choose(options.step), second.choose(*options.other_step)};
  if (options.step != "last") {
    const int64_t step = first.choose(options.step);
    return {step, second.choose(options.step == "first" ? options.step : std::to_string(step))};
  }
  for (auto step = first.steps().rbegin(); step != first.steps().rend(); ++step)
    if (std::binary_search(second.steps().begin(), second.steps().end(), *step)) return {*step, *step};
  throw UsageError(str(first.run(), " and ", second.run(), " have no step in common; name two: --step and --other-step"));
}

void show_diff(const RunRecords& first, const ShowOptions& options, const PageLook& look, Output& output) {
  const RunRecords second(options.diff.value_or(options.run));
  const auto [step, other] = steps_to_compare(first, second, options);
  const std::string names = str(first.run(), ", step ", step, " -> ", second.run(), ", step ", other);
  const RolloutRows rows = first.rows(step), others = second.rows(other);
  const std::vector<AnswerPair> pairs = pair_answers(rows, others);
  check(!pairs.empty(), names, ": no prompt in common; --prompt shows at which steps a prompt was answered");
  const std::vector<AnswerPair> chosen = choose_pairs(pairs, rows, others, options.choice(AnswerKey::reward, kUsualLimit));
  if (!options.json) {
    output.put(heading_text("", {names}, look) + heading_text("", pairs_pieces(pairs, rows, others), look));
    const size_t num_alone = rows.size() + others.size() - 2 * pairs.size();
    if (num_alone > 0) output.put(remark_text(str(num_alone, " answers have no partner"), look));
  }
  for (size_t i = 0; i < chosen.size() && !output.closed(); ++i) {
    const RolloutRow &before = rows[chosen[i].first], &after = others[chosen[i].second];
    if (options.json) {
      output.put_line(json_of(chosen[i], before, after));
    } else {
      output.put("\n" + pair_text(lead_of(i + 1), before, after, look));
    }
  }
  if (!options.json) output.put(more_text(pairs.size(), chosen.size(), look));
}

}  // namespace

std::string show_flags() { return options_help<ShowOptions>(kShowPositionals); }

int run_show(const Arguments& arguments) {
  const auto options = parse_options<ShowOptions>(arguments, kShowPositionals);
  const bool compares = options.diff || options.other_step;
  check(int{options.steps} + int{options.prompt.has_value()} + int{compares} <= 1,
        "--steps, --prompt and --diff (or --other-step) show different things: give one of them");
  const RunRecords records(options.run);
  const PageLook look = look_of_output(options.full);
  Output output;
  if (options.steps) {
    show_steps(records, options, look, output);
  } else if (options.prompt) {
    show_prompt(records, options, look, output);
  } else if (compares) {
    show_diff(records, options, look, output);
  } else {
    show_step(records, options, look, output);
  }
  return kExitOk;
}

}  // namespace kedge::cli
