#include <algorithm>
#include <cstdio>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/inspect/answer_list.h"
#include "kedge/inspect/replay_run.h"
#include "kedge/metrics/progress.h"

#include "cli/commands.h"
#include "cli/text/replay_text.h"

namespace kedge::cli {
namespace {

constexpr int kExitDiffers = 1;

struct ReplayOptions {
  std::string run;
  std::string step = "last";
  bool servers = false, regenerate = false, json = false, allow_commands = false;

  void fields(auto&& field) {
    field("run", run, "the folder of a run of kedge grpo, rloo, reinforce, rs or ppo", required());
    field("step", step, "step number as in kedge show, or first or last of the recorded steps");
    field("regenerate", regenerate, "sample the responses again from the policy and compare their tokens");
    field("servers", servers, "query reward servers again; by default their recorded rewards are used");
    field("allow_commands", allow_commands, "run the reward commands of a run that belongs to another user");
    field("json", json, "print one JSON object instead of text");
  }
};

const std::vector<std::string> kReplayPositionals = {"run"};

int64_t step_of(const RunOnDisk& run, const std::string& wanted) {
  const ReplayRange range = range_of(run);
  int64_t step = 0;
  const bool is_number = !wanted.empty() && wanted.size() < 18 && wanted.find_first_not_of("0123456789") == std::string::npos;
  if (is_number) {
    step = std::stoll(wanted);
    check(step >= range.first && step <= range.last, run.folder.string(), ": no step ", step, "; its steps are ", range.first, " to ",
          range.last);
    return step;
  }
  check(!range.recorded.empty(), run.folder.string(), ": no step of it is recorded; name one by its number, ", range.first, " to ",
        range.last);
  return choose_step(range.recorded, wanted, run.folder.string());
}

// The step, or the first on the way to it that does not end with the run's weights.
StepComparison play_to(ReplayRun& replay, int64_t step) {
  std::vector<std::string> notes;
  for (;;) {
    const bool is_last = replay.next_step() == step;
    StepComparison comparison = replay.play(is_last);
    if (is_last || !comparison.matches()) {
      comparison.notes.insert(comparison.notes.begin(), notes.begin(), notes.end());
      return comparison;
    }
    notes.insert(notes.end(), comparison.notes.begin(), comparison.notes.end());
  }
}

std::string verdict_of(const StepComparison& comparison, bool is_exact) {
  const std::string step = str("step ", comparison.step);
  if (!comparison.matches()) return str(step, " differs: ", blame_of(comparison));
  if (comparison.quantities.empty()) return str(step, " was computed; nothing of it is recorded to compare with");
  if (is_exact) return str(step, " replays: every value is equal bit for bit");
  const auto most = std::max_element(comparison.quantities.begin(), comparison.quantities.end(),
                                     [](const Quantity& a, const Quantity& b) { return a.largest_ignored < b.largest_ignored; });
  return str(
      step, " replays: every value is within the tolerance", most->largest_ignored == 0 ? ", and equal" : "",
      most->largest_ignored == 0 ? "" : str("; the largest difference is ", format_number(most->largest_ignored), ", in ", most->name));
}

}  // namespace

std::string replay_flags() { return options_help<ReplayOptions>(kReplayPositionals); }

int run_replay(const Arguments& arguments) {
  const auto options = parse_options<ReplayOptions>(arguments, kReplayPositionals);
  const RunOnDisk run = open_run(options.run);
  check_may_run(run.folder, options.allow_commands);
  const std::unique_ptr<OnlineJob> job = make_online_job(run.algorithm);
  check(job != nullptr, options.run, ": a run of kedge ", run.algorithm, "; only those of online training keep what a replay needs");
  const int64_t step = step_of(run, options.step);
  enter_start_folder(run);
  const std::vector<std::string> changed = changed_inputs(run);
  for (const std::string& what : changed) log_warn(what);
  ReplayRun replay(*job, run, {.servers = options.servers, .regenerate = options.regenerate}, step);
  const std::string start = replay.start();
  StepComparison comparison = play_to(replay, step);
  std::vector<std::string> notes = changed;
  notes.insert(notes.end(), replay.notes().begin(), replay.notes().end());
  comparison.notes.insert(comparison.notes.begin(), notes.begin(), notes.end());
  std::string text;
  if (options.json) {
    Json json = comparison_json(comparison);
    json.set("run", run.folder.string());
    json.set("wanted", step);
    json.set("start", start);
    text = json.dump() + "\n";
  } else {
    text = paragraph(str(options.run, ", step ", comparison.step, comparison.step == step ? "" : str(", on the way to step ", step), " (",
                         run.algorithm, "), from ", start)) +
           "\n" + comparison_table(comparison, true) + "\n";
    for (const std::string& note : comparison.notes) text += paragraph("note: " + note);
    text += paragraph(verdict_of(comparison, replay.is_exact()));
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return comparison.matches() ? kExitOk : kExitDiffers;
}

}  // namespace kedge::cli
