#include "kedge/train/loop.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/train/checkpoint/state_parts.h"

namespace kedge {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) { return std::chrono::duration<double>(end - begin).count(); }

// The positions of the metric files, as JSON.
Json positions_json(const SinkPositions& positions) {
  Json json{Json::Object{}};
  for (const auto& [name, position] : positions) json.append(name, Json(position));
  return json;
}

SinkPositions read_positions(const Json& json, std::string_view where) {
  SinkPositions positions;
  for (const auto& [name, position] : json.as_object(where)) positions[name] = position.as_integer(where);
  return positions;
}

// One run of the loop.
class Loop {
 public:
  Loop(const LoopParts& parts, const LoopOptions& options, int64_t step) : parts_(parts), options_(options) {
    result_.step = step;
    timer_ = options.time_limit ? RunTimer(*options.time_limit, parts.begin) : RunTimer();
  }

  LoopResult run() {
    report();
    const bool has_steps = result_.step < options_.steps.max_steps;
    if (options_.rehearses && has_steps && requested_stop().signal == 0) parts_.trainer.rehearse();
    while (result_.step < options_.steps.max_steps && result_.reason.empty()) {
      take_step();
      finish_step();
      report();
    }
    if (result_.reason.empty()) result_.reason = "complete";
    parts_.trainer.finish();
    part_writer_.wait();
    if (saver_ != nullptr) saver_->finish();
    return std::move(result_);
  }

 private:
  void take_step() {
    const auto begin = Clock::now();
    StepReport report = parts_.trainer.train_step();
    const auto end = Clock::now();
    if (result_.first_step_s == 0) result_.first_step_s = seconds_between(parts_.begin, end);
    result_.seconds_training += seconds_between(begin, end);
    report.metrics.set("train/epoch", static_cast<double>(options_.steps.epoch_of(result_.step) + 1));
    report.metrics.set("train/step_time", seconds_between(begin, end));
    write(report);
    ++result_.step;
    alarm_.reset();
    note(report.alarm);
  }

  // The same on every rank: signals may reach any of them, and rank 0's clock is used.
  struct Stop {
    int signal = 0;  // 0: none
    bool late = false;
  };
  [[nodiscard]] Stop requested_stop() const {
    std::array<double, 2> stop = {static_cast<double>(parts_.signals.received().value_or(0)), writes() && timer_.is_over() ? 1.0 : 0.0};
    parts_.group.all_reduce(std::span<double>(stop), Reduce::max);
    return {static_cast<int>(stop[0]), stop[1] != 0};
  }

  // What is due after a step.
  void finish_step() {
    const auto [signal, late] = requested_stop();
    const Due due = due_after(result_.step, options_.intervals, late);
    if (due.validate) validate();
    const bool alarmed = alarm_ && (alarm_->save || alarm_->stop);
    // After a signal there may be little time: it saves and leaves.
    if (due.save || ((signal != 0 || alarmed) && options_.intervals.save > 0)) save();
    // An unhealthy run is not complete on its last step either, nor restarted because of a signal.
    if (alarm_ && alarm_->stop) {
      result_.reason = alarm_->what;
      result_.exit_code = kExitWorld;
      if (writes()) log_error("the run ends after step ", result_.step, ": ", alarm_->what);
      return;
    }
    if (due.end) return;
    if (signal != 0) {
      result_.reason = name_of_signal(signal);
      result_.exit_code = exit_code_of(signal);
      log_info(result_.reason, " received: the run ends after step ", result_.step);
    } else if (late) {
      result_.reason = "time limit";
      log_info("the time limit is reached: the run ends after step ", result_.step);
    }
  }

  // What is wrong after a step: of its own alarm and its validation's, one that stops takes precedence.
  void note(const std::optional<Alarm>& alarm) {
    if (!alarm) return;
    if (!alarm->stop && writes()) log_warn("after step ", result_.step, ": ", alarm->what);
    const bool saves = alarm->save || (alarm_ && alarm_->save);
    if (!alarm_ || !alarm_->stop) alarm_ = alarm;
    alarm_->save = saves;
  }

  void validate() {
    const auto begin = Clock::now();
    StepReport report = parts_.trainer.validate();
    report.metrics.set("timers/validation_time", seconds_between(begin, Clock::now()));
    write(report);
    validation_ = report.metrics;
    validated_at_ = result_.step;
    note(report.alarm);
  }

  // The newest of every number that is one of the weights as they are now: a validation of earlier weights would name and rank them
  // wrongly.
  [[nodiscard]] Metrics present_numbers() const {
    if (validated_at_ == result_.step) return result_.last;
    Metrics present;
    for (const auto& [name, value] : result_.last)
      if (!validation_.find(name)) present.set(name, value);
    return present;
  }

  void save() {
    // What a trainer saves elsewhere, and is kept there for the newest ones only, must not be newer than what is on this disk.
    part_writer_.wait();
    if (saver_ != nullptr) saver_->wait();
    // Nor where this disk is full: after a save that failed, training waits to see how the next one goes.
    const bool has_failed = saver_ != nullptr && saver_->has_failed();
    // Rank 0 also knows whether the checkpoint will be kept; if not, no rank writes a part of it.
    const CheckpointMeta meta = saver_ == nullptr ? CheckpointMeta() : meta_of_checkpoint();
    const bool is_wanted = saver_ != nullptr && saver_->wants(meta);
    std::array<double, 2> flags = {is_wanted ? 1.0 : 0.0, options_.saves_block || has_failed ? 1.0 : 0.0};
    parts_.group.all_reduce(std::span<double>(flags), Reduce::max);
    // No rank is writing now, and a save that failed early did not come to remove the others' parts.
    if (has_failed && !options_.folder.empty()) remove_parts(options_.folder);
    if (flags[0] == 0) return;
    if (saver_ != nullptr && !saver_->saved_steps().empty()) parts_.trainer.note_saved(saver_->saved_steps());
    const bool blocks = flags[1] != 0;
    StateSnapshot state(!blocks);
    const FolderWriter write_model = parts_.trainer.save(state);
    const bool has_part = state.has_tensors() || write_model;
    const std::vector<int> others = ranks_with_parts(parts_.group, has_part);
    const Path stage = parts_stage(options_.folder, result_.step);
    const auto shared = std::make_shared<StateSnapshot>(std::move(state));
    if (!writes()) {
      const int rank = parts_.group.rank();
      if (has_part) part_writer_.start(stage, rank, [=](const Path& to) { write_part_of(rank, *shared, write_model, to); });
      if (blocks) part_writer_.wait();
      return;
    }
    saver_->start(meta, [=](const Path& folder) {
      write_together(stage, others, folder, [&](const Path& to) { write_part_of(0, *shared, write_model, to); });
    });
    if (blocks) saver_->wait();
  }

  [[nodiscard]] CheckpointMeta meta_of_checkpoint() const {
    CheckpointMeta meta;
    meta.counters = parts_.trainer.counters();
    meta.counters["step"] = result_.step;
    meta.counters["epoch"] = options_.steps.epoch_of(result_.step);
    meta.metrics = monitors_of(present_numbers());
    meta.record = options_.record;
    meta.record.set("log", positions_json(parts_.log.positions()));
    return meta;
  }

  void write(const StepReport& report) {
    for (const Metrics& update : report.updates) {
      parts_.log.write(result_.step, update);
      result_.last.merge(update);
    }
    parts_.log.write(result_.step, report.metrics);
    result_.last.merge(report.metrics);
    for (const SampleTable& table : report.samples) parts_.log.write_samples(result_.step, table);
  }

  [[nodiscard]] bool writes() const { return parts_.group.rank() == 0; }
  void report() { parts_.log.report({options_.title, result_.step, options_.steps.max_steps}); }

  const LoopParts& parts_;
  const LoopOptions& options_;
  BackgroundSaver* const saver_ = writes() ? parts_.saver : nullptr;
  RunTimer timer_;
  std::optional<Alarm> alarm_;  // after the last step
  Metrics validation_;          // the newest one's numbers
  int64_t validated_at_ = -1;
  PartWriter part_writer_;
  LoopResult result_;
};

}  // namespace

LoopResult run_loop(const LoopParts& parts, const LoopOptions& options, int64_t step) { return Loop(parts, options, step).run(); }

int64_t restore(Trainer& trainer, const Checkpoint& checkpoint) {
  trainer.load(StateFiles(checkpoint.folder / "state"));
  return checkpoint.step();
}

int64_t restore(Trainer& trainer, MetricsLog& log, const Checkpoint& checkpoint) {
  const int64_t step = restore(trainer, checkpoint);
  const std::string where = (checkpoint.folder / "meta.json").string();
  log.resume(step, read_positions(checkpoint.meta.record.at("log", where), where));
  return step;
}

Position position_of(const Checkpoint& checkpoint) {
  const auto count = [&](const char* name) {
    const auto found = checkpoint.meta.counters.find(name);
    return found == checkpoint.meta.counters.end() ? 0 : found->second;
  };
  Position position{checkpoint.step(), count("consumed_samples") - count("dropped_samples")};
  for (const auto& [name, value] : checkpoint.meta.counters)
    if (name.ends_with("_optimization_step")) position.num_updates = value;  // after the algorithm's name; a fork may have another
  return position;
}

std::map<std::string, double> monitors_of(const Metrics& metrics) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNames = {
      {{"validation/", "val_"}, {"val_rollouts/", "val_"}, {"train/", "train_"}, {"train_rollouts/", "train_"}, {"timers/", ""}}};
  std::map<std::string, double> monitors;
  for (const auto& [name, value] : metrics)
    for (const auto& [prefix, start] : kNames)
      if (name.starts_with(prefix)) monitors[std::string(start) + name.substr(prefix.size())] = value;
  return monitors;
}

}  // namespace kedge
