#include "cli/training_job.h"

#include <chrono>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/data/fingerprint.h"
#include "kedge/metrics/progress.h"
#include "kedge/train/resume_rules.h"
#include "kedge/train/run_record.h"

#include "cli/bench_support.h"
#include "cli/commands.h"
#include "cli/compute.h"

namespace kedge::cli {
namespace {

namespace fs = std::filesystem;

// What a checkpoint may be gone on with under another value, and what not.
constexpr std::array kRules = {
    ChangeRule{"network", ChangeKind::refused, "the checkpoint holds another network"},
    ChangeRule{"tokenizer", ChangeKind::refused, "its ids mean something else"},
    ChangeRule{"ranks", ChangeKind::converted, "batches are the same on any number of ranks"},
    ChangeRule{"model.peft", ChangeKind::refused, "the adapters have another shape"},
    ChangeRule{"model.peft.restore_from_path", ChangeKind::free, "the checkpoint's adapters count"},
    ChangeRule{"model.peft.lora_tuning.adapter_dropout", ChangeKind::free, ""},
    ChangeRule{"model.seed", ChangeKind::refused, "rows would come in another order, some of them twice"},
    ChangeRule{"model.regression.num_attributes", ChangeKind::refused, "the head has another shape"},
    ChangeRule{"model.optim.moments", ChangeKind::refused, "the moments are stored otherwise"},
    ChangeRule{"model.global_batch_size", ChangeKind::converted, "goes on at the row where it stopped"},
    ChangeRule{"model.data.train_ds.global_batch_size", ChangeKind::converted, "goes on at the row where it stopped"},
    ChangeRule{"trainer.precision", ChangeKind::converted, "from the fp32 master weights"},
};

std::string shape_of(const ModelConfig& config, const HeadOptions& head) {
  Fingerprint print;
  for (const ParameterSpec& spec : make_parameters(config, head).specs) {
    print.add(spec.name);
    for (const int64_t size : spec.shape) print.add(size);
  }
  return print.hex();
}

// One run of a job.
class TrainingRun {
 public:
  TrainingRun(TrainingSetup& setup, const Arguments& arguments, const std::optional<Path>& fork)
      : setup_(setup), job_(setup.job), arguments_(arguments), world_(setup.mesh.world) {
    check_fit();
    open_folder(fork);
  }

  int run() {
    const StopSignals signals;
    load_weights();
    SupervisedTrainer trainer = make_trainer();
    MetricsLog log = make_metrics_log(job_.run.metrics, run_folder_, writes());
    const int64_t step = start(trainer, log);
    std::optional<BackgroundSaver> saver;
    if (store_) saver.emplace(*store_);
    if (setup_.mesh.device.is_cuda()) reset_peak_cuda_bytes();
    LoopOptions options{
        .steps = setup_.plan.steps, .intervals = setup_.plan.intervals, .time_limit = {}, .saves_block = memory_.blocks, .record = record_};
    if (!job_.run.create_checkpoint_callback) options.intervals.save = 0;
    if (job_.run.max_time_per_run) options.time_limit = parse_time_limit(*job_.run.max_time_per_run, "exp_manager.max_time_per_run");
    const LoopParts parts{trainer, world_, log, saver ? &*saver : nullptr, signals, begin_};
    const LoopResult result = run_loop(parts, options, step);
    finish(trainer, result);
    return result.exit_code;
  }

 private:
  [[nodiscard]] bool writes() const { return world_.rank() == 0; }

  // Memory that will not do is told now, not hours later.
  void check_fit() {
    memory_ = setup_.check_memory();
    std::string remedies;
    for (const std::string& remedy : memory_.remedies) remedies += "\n  " + remedy;
    check(memory_.fits, "the run needs ", format_bytes(memory_.needed), " of memory, and ", format_bytes(setup_.free_bytes()), " are free",
          remedies.empty() ? "; no setting of kedge's would make it fit" : ". What would fit:" + remedies);
    if (memory_.blocks) log_info("training waits while a checkpoint is written: there is no memory for a copy of its state");
  }

  // The run's folder and the checkpoint to go on from: rank 0 looks, all follow.
  void open_folder(const std::optional<Path>& fork) {
    record_ = identity();
    std::string place, resumed;
    if (writes()) {
      run_folder_ = open_run_folder(job_.run, time_as_version());
      lock_.emplace(run_folder_);
      store_.emplace(run_folder_ / "checkpoints", job_.run.checkpoint_callback_params);
      set_log_file((run_folder_ / "log.txt").string());
      if (fork) {
        check(!store_->newest(), run_folder_.string(), ": holds checkpoints already; a fork begins in a folder of its own");
        resumed = open_checkpoint(*fork, "--fork").folder.string();
      } else if (const auto checkpoint = find_resume(job_.run, run_folder_, *store_)) {
        resumed = checkpoint->folder.string();
      }
      place = run_folder_.string();
    }
    world_.broadcast(place, 0);
    world_.broadcast(resumed, 0);
    run_folder_ = place;
    if (resumed.empty()) return;
    checkpoint_ = open_checkpoint(resumed, "checkpoint");
    is_fork_ = fork.has_value();
    const std::string where = (checkpoint_->folder / "meta.json").string();
    accept_changes(config_changes(checkpoint_->meta.record.at("identity", where), record_.at("identity", where), kRules), resumed);
    setup_.plan = continue_plan(setup_.plan, job_.loop, *checkpoint_, job_.batches().global_size);
  }

  // What a checkpoint is compared by.
  [[nodiscard]] Json identity() const {
    Json identity = to_json(section_node(job_.section));
    identity.set("network", shape_of(setup_.network, job_.head()));
    identity.set("tokenizer", setup_.tokenizer->fingerprint());
    identity.set("ranks", int64_t{world_.size()});
    return Json(Json::Object{{"identity", std::move(identity)}});
  }

  void load_weights() {
    setup_.model = job_.load_model(setup_.folder, setup_.storage());
    add_trained_adapters(*setup_.model, job_.network);
  }

  [[nodiscard]] SupervisedTrainer make_trainer() {
    SaveOptions save;
    save.companions = setup_.folder;
    return SupervisedTrainer({*setup_.model, world_, setup_.task, job_.loop, job_.network.optim, job_.batches(), setup_.plan,
                              job_.network.activations_checkpoint_granularity == Recompute::full, save, job_.model_path});
  }

  // From the checkpoint, or from the beginning; says so, and leaves the run's own papers in its folder.
  int64_t start(SupervisedTrainer& trainer, MetricsLog& log) {
    int64_t step = 0;
    if (checkpoint_) {
      step = is_fork_ ? restore(trainer, *checkpoint_) : restore(trainer, log, *checkpoint_);
      log_info(is_fork_ ? "forked from " : "resumed from ", checkpoint_->folder.string(), " at step ", step);
    } else {
      log.resume(0, {});  // what a run without a checkpoint left is void
    }
    if (!writes()) return step;
    write_atomic(run_folder_ / "config.yaml", dump_config(job_.section));
    std::vector<std::string> words = {"kedge", job_.name};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    RunFacts facts{.command_line = words,
                   .torch_version = TORCH_VERSION,
                   .device = name_of(setup_.mesh.device),
                   .num_threads = at::get_num_threads(),
                   .num_ranks = world_.size(),
                   .model_files = model_files(),
                   .data_files = job_.data_files(),
                   .parent = is_fork_ ? checkpoint_->folder.string() : ""};
    add_run_record(run_folder_, run_record(facts));
    log_info(job_.name, " of ", format_number(static_cast<double>(setup_.model->trained().num_elements())), " parameters, ",
             name_of(setup_.model->parameters().options().dtype), " on ", name_of(setup_.mesh.device), ": steps ", step, " to ",
             setup_.plan.steps.max_steps, ", ", setup_.plan.steps.steps_per_epoch, " an epoch; folder ", run_folder_.string());
    if (step >= setup_.plan.steps.max_steps)
      log_info("the run is complete; a larger trainer.", job_.name,
               ".max_epochs or max_steps goes on, another exp_manager.explicit_log_dir starts anew");
    return step;
  }

  [[nodiscard]] std::vector<Path> model_files() const {
    std::vector<Path> files;
    for (const auto& entry : fs::directory_iterator(setup_.folder))
      if (entry.path().extension() == ".safetensors" || entry.path().filename() == "config.json") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }

  void finish(const SupervisedTrainer& trainer, const LoopResult& result) {
    if (!writes()) return;
    const bool complete = result.reason == "complete";
    if (complete && has_told(result.step)) return;  // started again, it has nothing to add
    if (complete && job_.run.checkpoint_callback_params.save_nemo_on_train_end) write_model(trainer);
    Json summary;
    summary.set("reason", result.reason);
    summary.set("step", result.step);
    summary.set("max_steps", setup_.plan.steps.max_steps);
    Json metrics{Json::Object{}};
    for (const auto& [name, value] : result.last) metrics.append(name, Json(value));
    summary.set("metrics", metrics);
    for (const auto& [name, value] : trainer.counters()) summary.set(name, value);
    summary.set("first_step_s", result.first_step_s);
    summary.set("training_s", result.seconds_training);
    summary.set("planned_bytes", setup_.mesh.device.is_cuda() ? memory_.plan.peak_of_tensors() : memory_.needed);
    summary.set("peak_bytes", peak_bytes(*setup_.model));
    if (const auto best = store_->best()) summary.set("best", best->folder.string());
    if (job_.add_summary) job_.add_summary(summary, result.last);
    write_atomic(run_folder_ / "summary.json", summary.dump(2) + "\n");
    log_info(complete ? "done: " : "stopped (" + result.reason + "): ", "step ", result.step, " of ", setup_.plan.steps.max_steps,
             complete && is_folder(run_folder_ / "model") ? ", model in " + (run_folder_ / "model").string() : "");
  }

  // Has a complete run that was started again left its papers before?
  [[nodiscard]] bool has_told(int64_t step) const {
    const Path file = run_folder_ / "summary.json";
    if (!is_file(file)) return false;
    const Json summary = Json::parse(read_text(file), file.string());
    return summary.at("reason", file.string()) == Json("complete") && summary.at("step", file.string()) == Json(step);
  }

  // Beside its name first, so that a model folder is always whole.
  void write_model(const SupervisedTrainer& trainer) const {
    const Path unfinished = run_folder_ / ".model-unfinished";
    fs::remove_all(unfinished);
    const std::optional<Checkpoint> best = job_.run.checkpoint_callback_params.save_best_model ? store_->best() : std::nullopt;
    if (best) {
      fs::copy(best->folder / "model", unfinished, fs::copy_options::recursive);
    } else {
      trainer.write_model(unfinished);
    }
    fs::remove_all(run_folder_ / "model");
    fs::rename(unfinished, run_folder_ / "model");
  }

  TrainingSetup& setup_;
  const TrainingJob& job_;
  const Arguments& arguments_;
  Group world_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  MemoryVerdict memory_;
  Path run_folder_;
  std::optional<RunLock> lock_;  // rank 0's, as the next
  std::optional<CheckpointStore> store_;
  std::optional<Checkpoint> checkpoint_;
  bool is_fork_ = false;
  Json record_;
};

// --fork CKPT, wherever it stands.
std::optional<Path> take_fork(Arguments& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] != "--fork" && !arguments[i].starts_with("--fork=")) continue;
    const bool joined = arguments[i] != "--fork";
    check(joined || i + 1 < arguments.size(), "--fork: wants the folder of a checkpoint");
    const Path path = joined ? arguments[i].substr(std::string("--fork=").size()) : arguments[i + 1];
    arguments.erase(arguments.begin() + static_cast<int64_t>(i), arguments.begin() + static_cast<int64_t>(i) + (joined ? 1 : 2));
    return path;
  }
  return std::nullopt;
}

}  // namespace

int run_training(const TrainingJob& job, const Arguments& arguments) {
  Arguments rest = arguments;
  const std::optional<Path> fork = take_fork(rest);
  const ConfigArguments given = read_config_arguments(rest);
  load_config(job.section, given.file, given.overrides);
  if (job.check_config) job.check_config();
  TrainingSetup setup(job);
  return TrainingRun(setup, arguments, fork).run();
}

std::string training_flags(const std::string& name) {
  return str("  --fork CKPT    begin a new run, in a folder of its own, where a checkpoint of another stands\n\n", "kedge config ", name,
             " lists every key; kedge config ", name, " --yaml prints a file to start from.\n");
}

}  // namespace kedge::cli
