#include "kedge/run/run_session.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/fingerprint.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/metrics/progress.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/rollout/record_file.h"
#include "kedge/train/checkpoint/resume_rules.h"
#include "kedge/train/checkpoint/run_record.h"
#include "kedge/train/checkpoint/state_parts.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

// Which settings may change when a checkpoint is resumed, and which not.
constexpr std::array kRules = {
    ChangeRule{"network", ChangeKind::refused, "the checkpoint holds another network"},
    ChangeRule{"tokenizer", ChangeKind::refused, "its ids mean something else"},
    ChangeRule{"ranks", ChangeKind::converted, "batches are the same on any number of ranks"},
    ChangeRule{"model.sharding", ChangeKind::free, ""},
    ChangeRule{"model.sharding_group", ChangeKind::converted, "gradients are summed in another order"},
    ChangeRule{"model.collectives", ChangeKind::converted, "gradients are summed in another order"},
    ChangeRule{"model.tensor_model_parallel_size", ChangeKind::converted, "layers are summed in another order"},
    ChangeRule{"model.sequence_parallel", ChangeKind::converted, "gradients of norms are summed in another order"},
    ChangeRule{"model.generation", ChangeKind::converted, "responses are computed in another layout"},
    ChangeRule{"local_critic.model.sharding", ChangeKind::free, ""},
    ChangeRule{"local_critic.model.sharding_group", ChangeKind::converted, "gradients are summed in another order"},
    ChangeRule{"local_critic.model.collectives", ChangeKind::converted, "gradients are summed in another order"},
    ChangeRule{"model.peft", ChangeKind::refused, "the adapters have another shape"},
    ChangeRule{"model.peft.restore_from_path", ChangeKind::free, "the checkpoint's adapters count"},
    ChangeRule{"model.peft.lora_tuning.adapter_dropout", ChangeKind::free, ""},
    ChangeRule{"model.seed", ChangeKind::refused, "rows would come in another order, some of them twice"},
    ChangeRule{"model.regression.num_attributes", ChangeKind::refused, "the head has another shape"},
    ChangeRule{"model.optim.moments", ChangeKind::refused, "the moments are stored in another type"},
    ChangeRule{"model.global_batch_size", ChangeKind::converted, "continues at the row where it stopped"},
    ChangeRule{"model.data.train_ds.global_batch_size", ChangeKind::converted, "continues at the row where it stopped"},
    ChangeRule{"model.ppo.num_rollout_samples", ChangeKind::converted, "continues at the prompt where it stopped"},
    ChangeRule{"model.reinforce.num_rollout_samples", ChangeKind::converted, "continues at the prompt where it stopped"},
    ChangeRule{"model.grpo.num_rollout_samples", ChangeKind::converted, "continues at the prompt where it stopped"},
    ChangeRule{"model.rloo.num_rollout_samples", ChangeKind::converted, "continues at the prompt where it stopped"},
    ChangeRule{"model.rs.num_rollout_samples", ChangeKind::converted, "continues at the prompt where it stopped"},
    ChangeRule{"trainer.reinforce.num_rollouts_per_prompt", ChangeKind::converted, "continues at the prompt where it stopped"},
    ChangeRule{"trainer.grpo.num_rollouts_per_prompt", ChangeKind::converted, "continues at the prompt where it stopped"},
    ChangeRule{"trainer.rloo.num_rollouts_per_prompt", ChangeKind::converted, "continues at the prompt where it stopped"},
    ChangeRule{"model.dpo.reference_cache", ChangeKind::free, "the values are the same"},
    ChangeRule{"model.kto.reference_cache", ChangeKind::free, "the values are the same"},
    ChangeRule{"trainer.precision", ChangeKind::converted, "from the fp32 master weights"},
};
// If an old checkpoint does not record the run's initial weights, their path is compared.
constexpr ChangeRule kReferenceRule{"pretrained_checkpoint.restore_from_path", ChangeKind::refused,
                                    "the reference policy would be a different one"};
constexpr const char* kStart = "start";  // in a checkpoint's record

std::vector<ChangeRule> rules_of(const RunJob& job, const Json& record) {
  std::vector<ChangeRule> rules(kRules.begin(), kRules.end());
  if (job.kept_start == kReference && record.find(kStart) == nullptr) rules.push_back(kReferenceRule);
  return rules;
}

// Of the files of the initial network: equal for a copy in another folder.
Json start_of(const RunJob& job) {
  Fingerprint print;
  for (const Path& file : model_files(job.model_folder)) {
    print.add(file.filename().string());
    print.add(file_hash(file));
  }
  return Json::Object{{"folder", job.model_folder.string()}, {"hash", print.hex()}};
}

// A lack of memory is reported now, not hours later.
void check_fit(const MemoryFit& memory) {
  require_fit(memory, "the run");
  if (memory.blocks) log_info("training waits while a checkpoint is written: there is no memory for a copy of its state");
}

// What a validation of the checkpoint's weights logged.
Metrics validation_of(const Checkpoint& checkpoint) {
  constexpr std::string_view kValidated = "val_";  // monitors_of()
  Metrics metrics;
  for (const auto& [name, value] : checkpoint.meta.metrics)
    if (name.starts_with(kValidated)) metrics.set("validation/" + name.substr(kValidated.size()), value);
  return metrics;
}

RunOutcome outcome_of(const LoopResult& result) {
  if (result.reason == "complete") return RunOutcome::finished;
  return result.exit_code == kExitWorld ? RunOutcome::failed : RunOutcome::killed;
}

}  // namespace

RunSession::RunSession(const RunJob& job, std::vector<std::string> arguments, const std::optional<Path>& fork)
    : job_(job), arguments_(std::move(arguments)), record_(Json::Object{{"identity", identity()}, {kStart, start_of(job)}}) {
  if (writes()) check_trackers(job_.run.metrics);
  check_fit(job_.memory);
  if (writes()) require_disk(job_.disk);
  open_folder(fork);
}

int RunSession::run(const Start& start) {
  if (writes() && !goes_on()) set_metrics_aside(folder_);
  MetricsLog log = make_metrics_log(job_.run.metrics, folder_, writes());
  std::optional<BackgroundSaver> saver;
  if (store_) saver.emplace(*store_);
  LoopOptions options;
  options.steps = start.steps;
  options.intervals = start.intervals;
  options.saves_block = job_.memory.blocks;
  options.rehearses = job_.rehearses;
  options.record = record_;
  options.folder = folder_;
  if (!job_.run.saves()) options.intervals.save = 0;
  if (job_.run.max_time_per_run) options.time_limit = parse_time_limit(*job_.run.max_time_per_run, "exp_manager.max_time_per_run");
  const LoopParts parts{start.trainer, job_.world, log, saver ? &*saver : nullptr, signals_, begin_};
  LoopResult result;
  try {
    const int64_t step = restore_trainer(start.trainer, log);
    if (writes() && is_fork_) remove_records(folder_ / "rollouts", 0, step);  // of an earlier attempt in this folder
    if (writes()) write_run_files(start, step);
    if (job_.device.is_cuda()) reset_peak_cuda_bytes();
    result = run_loop(parts, options, step);
  } catch (const Interrupted& interrupted) {
    if (saver) saver->wait();
    log.finish(RunOutcome::killed);
    throw Interrupted(interrupted.signal(), str(interrupted.what(), "; this step is discarded, ", last_checkpoint_text()));
  } catch (const std::exception& error) {
    if (saver) saver->wait();
    log.finish(RunOutcome::failed);
    throw_if_out_of_memory(error, start.trainer.failed_phase());
    throw;
  }
  if (has_news(result)) {
    std::optional<Checkpoint> best;  // whose model the run leaves
    if (leaves_model(result)) best = write_model(start, result.step);
    if (writes()) finish(start, result, best);
  }
  log.finish(outcome_of(result));
  return result.exit_code;
}

// Settings that need at least a tenth less than those that failed.
void RunSession::throw_if_out_of_memory(const std::exception& error, std::string_view phase) const {
  if (!is_out_of_memory(error)) return;
  MemoryRequest less = job_.memory_request;
  less.room.device = std::min(less.room.device, job_.memory.needed) * 9 / 10;
  std::string remedies;
  for (const std::string& remedy : check_memory(less).remedies) remedies += "\n  " + remedy;
  const std::string text = error.what();
  throw Error(str("out of memory", phase.empty() ? "" : str(" in the phase ", phase), " (", text.substr(0, text.find('\n')),
                  "). Planned: ", format_bytes(job_.memory.needed), ", and ", format_bytes(job_.memory.free), " were free at the start",
                  remedies.empty() ? "" : ". What would take less:" + remedies, "\n", last_checkpoint_text()));
}

// The folder of the checkpoint to start from; empty: none. A fork that is requested again goes on: its script was submitted again.
Path RunSession::find_start(const std::optional<Path>& fork) const {
  if (fork && store_->folders().empty()) return open_checkpoint(*fork, "--fork").folder;
  check(!fork || fs::weakly_canonical(parent_of(folder_)) == fs::weakly_canonical(*fork), folder_.string(),
        ": already holds checkpoints; a fork needs a new folder. Without --fork the run resumes");
  const std::optional<Checkpoint> own = find_resume(job_.run, folder_, *store_, job_.verify);
  return own ? own->folder : Path();
}

// Rank 0 decides, all follow.
void RunSession::open_folder(const std::optional<Path>& fork) {
  std::string place, resumed, finished;
  if (writes()) {
    folder_ = open_run_folder(job_.run, time_as_version());
    scratch_.emplace(job_.run, folder_);
    lock_.emplace(folder_);
    remove_temporaries(folder_);
    remove_temporaries(folder_ / "rollouts");
    remove_parts(folder_);
    store_.emplace(folder_ / "checkpoints", job_.run.checkpoint_callback_params);
    set_log_file((folder_ / "log.txt").string());
    if (find_finished(fork.has_value())) {
      finished = "yes";
    } else {
      resumed = find_start(fork).string();
    }
    place = folder_.string();
    id_ = run_id(folder_);
  }
  job_.world.broadcast(id_, 0);
  job_.world.broadcast(place, 0);
  job_.world.broadcast(resumed, 0);
  job_.world.broadcast(finished, 0);
  is_finished_ = !finished.empty();
  folder_ = place;
  if (resumed.empty()) return;
  checkpoint_ = read_checkpoint(resumed);  // rank 0 has checked every byte
  is_elsewhere_ = fs::weakly_canonical(checkpoint_->folder.parent_path()) != fs::weakly_canonical(folder_ / "checkpoints");
  is_fork_ = fork.has_value() && is_elsewhere_;
  const std::string where = (checkpoint_->folder / "meta.json").string();
  const Json& before = checkpoint_->meta.record.at("identity", where);
  for (const std::string& older : take_older_values(job_.section, before))
    log_info(older, ": the run began before this key existed, and continues as it was");
  record_.set("identity", identity());
  accept_changes(config_changes(before, record_.at("identity", where), rules_of(job_, checkpoint_->meta.record)), resumed);
  accept_start();
}

// Without a checkpoint it could only begin again, and would replace the model.
bool RunSession::find_finished(bool forks) const {
  const Path file = folder_ / "summary.json";
  if (!store_->folders().empty() || !is_folder(folder_ / "model") || !is_file(file)) return false;
  if (Json::parse(read_text(file), file.string()).at("reason", file.string()) != Json("complete")) return false;
  const char* remedy = "to start from scratch, move model/ away or set another exp_manager.explicit_log_dir";
  check(!forks && read_text(folder_ / "config.yaml") == dump_config(job_.section), folder_.string(),
        ": holds the model of a finished run, which this start would replace, and no checkpoint to continue from; ", remedy);
  log_info("the run in ", folder_.string(), " is complete, and has no checkpoint to continue from; ", remedy);
  return true;
}

// Other weights under the same name would go unnoticed: the checkpoint does not hold them.
void RunSession::accept_start() const {
  const Json* before = checkpoint_->meta.record.find(kStart);
  if (job_.kept_start.empty() || before == nullptr) return;
  const std::string where = (checkpoint_->folder / "meta.json").string();
  const Json& now = record_.at(kStart, where);
  const auto text = [&](const Json& start, const char* key) { return start.at(key, where).as_text(where); };
  check(text(*before, "hash") == text(now, "hash"), checkpoint_->folder.string(), ": cannot resume: ", job_.kept_start,
        " would be a different one. The weights in ", text(now, "folder"), " have the hash ", text(now, "hash"),
        ", but those that the run started with, in ", text(*before, "folder"), ", had ", text(*before, "hash"),
        ".\nRestore them, or start a new run in another exp_manager.explicit_log_dir.");
}

std::string RunSession::start_hash() const { return record_.at(kStart, "start").at("hash", "start").as_text("start.hash"); }

// What a checkpoint is compared by.
Json RunSession::identity() const {
  Json identity = to_json(section_node(job_.section));
  identity.set("network", job_.network_print);
  identity.set("tokenizer", job_.tokenizer_print);
  identity.set("ranks", int64_t{job_.world.size()});
  return identity;
}

// Returns its step.
int64_t RunSession::restore_trainer(Trainer& trainer, MetricsLog& log) const {
  if (!checkpoint_) {
    log.resume(0, {});  // files of a run without a checkpoint are discarded
    return 0;
  }
  const int64_t step = is_elsewhere_ ? restore(trainer, *checkpoint_) : restore(trainer, log, *checkpoint_);
  log_info(is_fork_ ? "forked from " : "resumed from ", checkpoint_->folder.string(), " at step ", step);
  return step;
}

// After a step that is lost. Only rank 0 knows the checkpoints.
std::string RunSession::last_checkpoint_text() const {
  if (!store_) return "the last checkpoint is kept";
  const std::optional<Checkpoint> newest = store_->newest();
  return newest ? str("the last checkpoint, of step ", newest->step(), ", is kept") : "and there is no checkpoint yet";
}

// Writes its settings and inputs to its folder, and logs the start.
void RunSession::write_run_files(const Start& start, int64_t step) const {
  write_atomic(folder_ / "config.yaml", dump_config(job_.section));
  std::vector<std::string> words = {"kedge", job_.name};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  const RunFacts facts{.id = id_,
                       .command_line = words,
                       .torch_version = TORCH_VERSION,
                       .device = kedge::name_of(job_.device),
                       .num_threads = at::get_num_threads(),
                       .num_ranks = job_.world.size(),
                       .model_files = recorded_model_files(job_.model_folder),
                       .data_files = job_.data_files,
                       .parent = is_fork_    ? checkpoint_->folder.string()
                                 : goes_on() ? parent_of(folder_).string()
                                             : "",
                       .max_steps = start.steps.max_steps,
                       .num_trained_parameters = start.model.trained().num_elements(),
                       .dtype = std::string(kedge::name_of(start.model.parameters().options().dtype))};
  add_run_record(folder_, run_record(facts));
  log_info(job_.name, " of ", format_number(static_cast<double>(start.model.trained().num_elements())), " parameters, ",
           kedge::name_of(start.model.parameters().options().dtype), " on ", kedge::name_of(job_.device), ": steps ", step, " to ",
           start.steps.max_steps, ", ", start.steps.steps_per_epoch, " per epoch; folder ", folder_.string());
  if (step >= start.steps.max_steps)
    log_info("the run is complete; a larger trainer.", job_.name,
             ".max_epochs or max_steps continues it, another exp_manager.explicit_log_dir starts from scratch");
}

bool RunSession::leaves_model(const LoopResult& result) const { return result.reason == "complete" && job_.run.writes_model(); }

void RunSession::finish(const Start& start, const LoopResult& result, const std::optional<Checkpoint>& best_model) const {
  const bool complete = result.reason == "complete";
  Json summary;
  summary.set("reason", result.reason);
  summary.set("step", result.step);
  summary.set("max_steps", start.steps.max_steps);
  summary.set("starts", num_starts(folder_));
  Json metrics{Json::Object{}};
  for (const auto& [name, value] : result.last) metrics.append(name, Json(value));
  summary.set("metrics", metrics);
  for (const auto& [name, value] : start.trainer.counters()) summary.set(name, value);
  summary.set("first_step_s", result.first_step_s);
  summary.set("training_s", result.seconds_training);
  // Of tensors on a GPU, without the driver's own; else of the process.
  const bool is_cuda = job_.device.is_cuda();
  summary.set("planned_bytes", job_.memory.worst().device - (is_cuda ? job_.memory.plan.fixed + job_.memory.plan.slack : 0));
  summary.set("peak_bytes", peak_bytes(start.model.device()));
  if (is_cuda) summary.set("planned_host_bytes", job_.memory.host_needed);
  if (is_cuda) summary.set("peak_host_bytes", peak_resident_bytes());
  if (const auto best = store_->best()) summary.set("best", best->folder.string());
  if (leaves_model(result)) summary.set("model_step", best_model ? best_model->step() : result.step);
  if (start.add_summary) start.add_summary(summary, best_model ? validation_of(*best_model) : result.last);
  write_atomic(folder_ / "summary.json", summary.dump(2) + "\n");
  log_info(complete ? "done: " : "stopped (" + result.reason + "): ", "step ", result.step, " of ", start.steps.max_steps,
           complete && is_folder(folder_ / "model") ? ", model in " + (folder_ / "model").string() : "");
}

// A complete run that is restarted and has written its summary has nothing to add. Rank 0 decides.
bool RunSession::has_news(const LoopResult& result) const {
  std::array<double, 1> is_told = {0};
  const Path file = folder_ / "summary.json";
  if (writes() && result.reason == "complete" && result.first_step_s == 0 && is_file(file)) {
    const Json summary = Json::parse(read_text(file), file.string());
    const auto has = [&](const char* key, const Json& value) { return summary.at(key, file.string()) == value; };
    is_told[0] = has("reason", "complete") && has("step", result.step) ? 1 : 0;
  }
  job_.world.all_reduce(std::span<double>(is_told), Reduce::max);
  return is_told[0] == 0;
}

// First under a temporary name, so that a model folder is always complete.
std::optional<Checkpoint> RunSession::write_model(const Start& start, int64_t step) const {
  const bool wants_best = job_.run.checkpoint_callback_params.save_best_model;
  const std::optional<Checkpoint> best = writes() && wants_best ? store_->best_sound() : std::nullopt;
  std::array<double, 1> has_best = {best ? 1.0 : 0.0};
  job_.world.all_reduce(std::span<double>(has_best), Reduce::max);
  const FolderWriter write = has_best[0] != 0 ? FolderWriter() : start.model_writer();
  const std::vector<int> others = ranks_with_parts(job_.world, static_cast<bool>(write));
  const Path stage = parts_stage(folder_, step), unfinished = folder_ / ".model-unfinished";
  if (!writes()) {
    if (write) write_part(stage, job_.world.rank(), write);
    return std::nullopt;
  }
  remove_tree(unfinished);
  if (best) {
    fs::copy(best->folder / "model", unfinished, fs::copy_options::recursive);
  } else {
    write_together(stage, others, unfinished, write);
  }
  sync_tree(unfinished);  // the summary, which says that it is there, must not outlive it
  remove_tree(folder_ / "model");
  fs::rename(unfinished, folder_ / "model");
  sync_folder(folder_);
  return best;
}

std::vector<Path> model_files(const Path& folder) {
  std::vector<Path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors" || entry.path().filename() == "config.json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Path> recorded_model_files(const Path& folder) {
  std::vector<Path> files = model_files(folder);
  for (const Path& name : companion_files(folder)) files.push_back(folder / name);
  return files;
}

std::string shape_fingerprint(const ModelConfig& config, const HeadOptions& head) {
  Fingerprint print;
  for (const ParameterSpec& spec : make_parameters(config, head).specs) {
    print.add(spec.name);
    for (const int64_t size : spec.shape) print.add(size);
  }
  return print.hex();
}

}  // namespace kedge
