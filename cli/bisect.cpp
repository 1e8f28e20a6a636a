#include <algorithm>
#include <chrono>
#include <cstdio>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/inspect/replay_run.h"
#include "kedge/inspect/run_findings.h"

#include "cli/commands.h"
#include "cli/text/replay_text.h"

namespace kedge::cli {
namespace {

constexpr int kExitDiffers = 1;

struct BisectOptions {
  std::string run;
  std::optional<int64_t> from, to;
  bool servers = false, regenerate = false, json = false, allow_commands = false;

  void fields(auto&& field) {
    field("run", run, "the folder of a run of kedge grpo, rloo, reinforce, rs or ppo", required());
    field("from", from, "the first step to replay; null: the run's first", at_least(0));
    field("to", to, "the last step to replay; null: the run's last", at_least(0));
    field("regenerate", regenerate, "sample the responses of every step again from the policy and compare their tokens");
    field("servers", servers, "query reward servers again; by default their recorded rewards are used");
    field("allow_commands", allow_commands, "run the reward commands of a run that belongs to another user");
    field("json", json, "print one JSON object instead of text");
  }
};

const std::vector<std::string> kBisectPositionals = {"run"};

// The result of replaying steps in order.
struct Playback {
  int64_t num_played = 0, last = -1;
  std::optional<StepComparison> first_other = {};  // the first step that does not match
  std::optional<Finding> broken = {};              // or the first with an impossible record
  std::vector<std::string> notes = {};
  bool is_exact = true;
};

void add_once(std::vector<std::string>& notes, const std::vector<std::string>& more) {
  for (const std::string& note : more)
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

// Logs progress occasionally.
class SlowTeller {
 public:
  void tell(int64_t step, int64_t last) {
    const auto now = std::chrono::steady_clock::now();
    if (now - told_ < std::chrono::seconds(5)) return;
    told_ = now;
    log_info("steps up to ", step, " of ", last, " replay");
  }

 private:
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

// Steps of one part of the settings, in order, until one does not match.
void play_part(OnlineJob& job, const RunOnDisk& run, const ReplayChoice& choice, int64_t from, int64_t to, Playback& playback) {
  ReplayRun replay(job, run, choice, from);
  playback.is_exact = playback.is_exact && replay.is_exact();
  add_once(playback.notes, replay.notes());
  log_info("replaying steps ", from, " to ", to, ", from ", replay.start());
  SlowTeller teller;
  while (replay.next_step() <= to) {
    const int64_t step = replay.next_step();
    try {
      const StepComparison comparison = replay.play(step >= from);
      add_once(playback.notes, comparison.notes);
      if (!comparison.matches()) {
        playback.first_other = comparison;
        return;
      }
    } catch (const UsageError& error) {
      playback.broken = Finding{step, error.what()};
      return;
    }
    playback.num_played += 1;
    playback.last = step;
    teller.tell(step, to);
  }
}

Playback play_all(const RunOnDisk& run, const ReplayChoice& choice, int64_t from, int64_t to) {
  const std::vector<SettingsPart> parts = settings_parts(run, *make_online_job(run.algorithm));
  Playback playback;
  for (size_t i = 0; i < parts.size() && !playback.first_other && !playback.broken; ++i) {
    const int64_t begin = std::max(from, parts[i].from), end = i + 1 < parts.size() ? std::min(to, parts[i + 1].from - 1) : to;
    if (begin > end) continue;
    play_part(*make_online_job(run.algorithm), run, choice, begin, end, playback);
  }
  return playback;
}

Json json_of(const std::vector<Finding>& findings) {
  Json::Array list;
  for (const Finding& finding : findings) list.emplace_back(Json::Object{{"step", finding.step}, {"what", finding.what}});
  return list;
}

std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += paragraph(str("step ", finding.step, ": ", finding.what));
  return text;
}

// All that was found.
struct BisectReport {
  std::vector<Finding> checkpoints, records;  // what is wrong with files
  Playback playback;

  [[nodiscard]] bool matches() const { return !playback.first_other && !playback.broken && checkpoints.empty() && records.empty(); }
};

std::string verdict_of(const BisectReport& report) {
  const Playback& playback = report.playback;
  if (playback.first_other)
    return str("step ", playback.first_other->step, " is the first that does not replay: ", blame_of(*playback.first_other));
  if (playback.broken) return str("step ", playback.broken->step, " is the first that does not replay: ", playback.broken->what);
  const std::string played = str(playback.num_played, playback.num_played == 1 ? " step" : " steps", " up to step ", playback.last,
                                 " replay", playback.is_exact ? " bit for bit" : " within the tolerance");
  if (!report.records.empty()) return str(played, "; the records themselves are inconsistent: step ", report.records.front().step);
  if (!report.checkpoints.empty()) return str(played, "; a checkpoint does not: that of step ", report.checkpoints.front().step);
  return played;
}

std::string json_text(const BisectReport& report, const RunOnDisk& run) {
  const Playback& playback = report.playback;
  Json::Array notes(playback.notes.begin(), playback.notes.end());
  Json json = Json::Object{{"run", run.folder.string()},
                           {"matches", report.matches()},
                           {"verdict", verdict_of(report)},
                           {"replayed", playback.num_played},
                           {"checkpoints", json_of(report.checkpoints)},
                           {"records", json_of(report.records)},
                           {"notes", std::move(notes)}};
  if (playback.first_other) json.set("first", comparison_json(*playback.first_other));
  if (playback.broken) json.set("first", Json::Object{{"step", playback.broken->step}, {"blame", playback.broken->what}});
  return json.dump() + "\n";
}

std::string plain_text(const BisectReport& report) {
  const Playback& playback = report.playback;
  std::string text = "\n";
  if (!report.checkpoints.empty()) text += "Checkpoints that changed\n" + text_of(report.checkpoints) + "\n";
  if (!report.records.empty()) text += "Records that are inconsistent\n" + text_of(report.records) + "\n";
  if (playback.first_other) text += str("Step ", playback.first_other->step, "\n", comparison_table(*playback.first_other, false), "\n");
  for (const std::string& note : playback.notes) text += paragraph("note: " + note);
  return text + paragraph(verdict_of(report));
}

}  // namespace

std::string bisect_flags() { return options_help<BisectOptions>(kBisectPositionals); }

int run_bisect(const Arguments& arguments) {
  const auto options = parse_options<BisectOptions>(arguments, kBisectPositionals);
  const RunOnDisk run = open_run(options.run);
  check_may_run(run.folder, options.allow_commands);
  check(trains_online(run.algorithm), options.run, ": a run of kedge ", run.algorithm,
        "; only those of online training keep what a replay needs");
  const ReplayRange range = range_of(run);
  const int64_t from = options.from.value_or(range.first), to = options.to.value_or(range.last);
  check(from >= range.first && to <= range.last && from <= to, options.run, ": no steps ", from, " to ", to, "; its steps are ",
        range.first, " to ", range.last);
  enter_start_folder(run);
  const std::vector<std::string> changed = changed_inputs(run);
  for (const std::string& what : changed) log_warn(what);
  BisectReport report{.checkpoints = checkpoint_findings(run), .records = record_findings(run), .playback = {}};
  for (const auto* findings : {&report.checkpoints, &report.records})
    for (const Finding& finding : *findings) log_warn("step ", finding.step, ": ", finding.what);
  report.playback = play_all(run, {.servers = options.servers, .regenerate = options.regenerate}, from, to);
  report.playback.notes.insert(report.playback.notes.begin(), changed.begin(), changed.end());
  const std::string heading = paragraph(str(options.run, " (", run.algorithm, "): ", range.recorded.size(), " records, ",
                                            run.checkpoints.size(), " checkpoints, steps ", from, " to ", to));
  const std::string text = options.json ? json_text(report, run) : heading + plain_text(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return report.matches() ? kExitOk : kExitDiffers;
}

}  // namespace kedge::cli
