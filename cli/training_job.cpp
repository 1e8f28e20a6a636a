#include "cli/training_job.h"

#include <chrono>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/data/fingerprint.h"
#include "kedge/dist/mesh.h"
#include "kedge/metrics/progress.h"
#include "kedge/model/model_folder.h"
#include "kedge/model/model_snapshot.h"
#include "kedge/model/peft_files.h"
#include "kedge/train/run_record.h"

#include "cli/commands.h"

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

// Everything of a run; made in the order in which mistakes are cheapest to find.
class TrainingRun {
 public:
  TrainingRun(const TrainingJob& job, const Arguments& arguments, std::optional<Path> fork)
      : job_(job),
        arguments_(arguments),
        mesh_(Mesh::from_environment({.device = device_name(), .device_key = "trainer.accelerator"})),
        folder_(find_model_folder(job.model_path, job.model_key)),
        network_(load_model_config(folder_)),
        tokenizer_(load_tokenizer(folder_)) {
    check_ranks();
    if (job.compute.threads > 0) at::set_num_threads(static_cast<int>(job.compute.threads));
    job.limit_length(network_.max_positions);
    task_ = job.make_task(model_, *tokenizer_, folder_);
    plan_ = plan_supervised(job.loop, task_, job.batches(), mesh_.world.size(), "trainer." + job.name);
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
    LoopOptions options{.steps = plan_.steps, .intervals = plan_.intervals, .time_limit = {}, .record = record_};
    if (!job_.run.create_checkpoint_callback) options.intervals.save = 0;
    if (job_.run.max_time_per_run) options.time_limit = parse_time_limit(*job_.run.max_time_per_run, "exp_manager.max_time_per_run");
    const LoopParts parts{trainer, mesh_.world, log, saver ? &*saver : nullptr, signals, begin_};
    const LoopResult result = run_loop(parts, options, step);
    finish(trainer, result);
    return result.exit_code;
  }

 private:
  [[nodiscard]] std::string device_name() const { return job_.compute.accelerator == "gpu" ? "cuda" : job_.compute.accelerator; }
  [[nodiscard]] bool writes() const { return mesh_.world.rank() == 0; }

  void check_ranks() const {
    const int64_t wanted = job_.compute.devices.value_or(0) * job_.compute.num_nodes.value_or(1);
    check(!job_.compute.devices || wanted == mesh_.world.size(), "trainer.devices x trainer.num_nodes: ", wanted, " ranks, but ",
          mesh_.world.size(), mesh_.world.size() == 1 ? " was started; mpirun -n N starts more" : " were started");
  }

  [[nodiscard]] StorageOptions storage() const {
    StorageOptions storage{mesh_.device.is_cuda() ? at::kBFloat16 : at::kFloat, mesh_.device,
                           job_.network.peft.peft_scheme == PeftScheme::none};
    if (job_.compute.precision) storage.dtype = parse_dtype(*job_.compute.precision, "trainer.precision");
    check(storage.dtype != at::kHalf, "trainer.precision: ", *job_.compute.precision,
          " is not supported; bf16 has the range that training needs");
    return storage;
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
    mesh_.world.broadcast(place, 0);
    mesh_.world.broadcast(resumed, 0);
    run_folder_ = place;
    if (resumed.empty()) return;
    checkpoint_ = open_checkpoint(resumed, "checkpoint");
    is_fork_ = fork.has_value();
    const std::string where = (checkpoint_->folder / "meta.json").string();
    accept_changes(config_changes(checkpoint_->meta.record.at("identity", where), record_.at("identity", where), kRules), resumed);
    plan_ = continue_plan(plan_, job_.loop, *checkpoint_, job_.batches().global_size);
  }

  // What a checkpoint is compared by.
  [[nodiscard]] Json identity() const {
    Json identity = to_json(section_node(job_.section));
    identity.set("network", shape_of(network_, {job_.head}));
    identity.set("tokenizer", tokenizer_->fingerprint());
    identity.set("ranks", int64_t{mesh_.world.size()});
    return Json(Json::Object{{"identity", std::move(identity)}});
  }

  void load_weights() {
    model_ = job_.load_model(folder_, storage());
    if (job_.network.peft.peft_scheme == PeftScheme::none) return;
    if (job_.network.peft.restore_from_path) {
      load_adapter(*model_, *job_.network.peft.restore_from_path, true);
    } else {
      model_->add_adapters(job_.network.peft.lora_tuning, true, "model.peft.lora_tuning");
      model_->adapters()->initialise(static_cast<uint64_t>(job_.network.seed));
    }
  }

  [[nodiscard]] SupervisedTrainer make_trainer() {
    const auto writer = [folder = folder_, base = job_.model_path](const Model& model) -> FolderWriter {
      return [snapshot = std::make_shared<const ModelSnapshot>(model), folder, base](const Path& to) {
        SaveOptions options;
        options.companions = folder;
        snapshot->save(to, options, base);
      };
    };
    return SupervisedTrainer({*model_, mesh_.world, task_, job_.loop, job_.network.optim, job_.batches(), plan_,
                              job_.network.activations_checkpoint_granularity == Recompute::full, writer});
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
                   .device = name_of(mesh_.device),
                   .num_threads = at::get_num_threads(),
                   .num_ranks = mesh_.world.size(),
                   .model_files = model_files(),
                   .data_files = job_.data_files(),
                   .parent = is_fork_ ? checkpoint_->folder.string() : ""};
    add_run_record(run_folder_, run_record(facts));
    log_info(job_.name, " of ", format_number(static_cast<double>(model_->trained().num_elements())), " parameters, ",
             name_of(model_->parameters().options().dtype), " on ", name_of(mesh_.device), ": steps ", step, " to ", plan_.steps.max_steps,
             ", ", plan_.steps.steps_per_epoch, " an epoch; folder ", run_folder_.string());
    if (step >= plan_.steps.max_steps)
      log_info("the run is complete; a larger trainer.", job_.name,
               ".max_epochs or max_steps goes on, another exp_manager.explicit_log_dir starts anew");
    return step;
  }

  [[nodiscard]] std::vector<Path> model_files() const {
    std::vector<Path> files;
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().extension() == ".safetensors" || entry.path().filename() == "config.json") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }

  void finish(const SupervisedTrainer& trainer, const LoopResult& result) {
    if (!writes()) return;
    const bool complete = result.reason == "complete";
    if (complete && job_.run.checkpoint_callback_params.save_nemo_on_train_end) write_model(trainer);
    Json summary;
    summary.set("reason", result.reason);
    summary.set("step", result.step);
    summary.set("max_steps", plan_.steps.max_steps);
    Json metrics{Json::Object{}};
    for (const auto& [name, value] : result.last) metrics.append(name, Json(value));
    summary.set("metrics", metrics);
    for (const auto& [name, value] : trainer.counters()) summary.set(name, value);
    summary.set("first_step_s", result.first_step_s);
    summary.set("training_s", result.seconds_training);
    if (const auto best = store_->best()) summary.set("best", best->folder.string());
    if (job_.add_summary) job_.add_summary(summary, result.last);
    write_atomic(run_folder_ / "summary.json", summary.dump(2) + "\n");
    log_info(complete ? "done: " : "stopped (" + result.reason + "): ", "step ", result.step, " of ", plan_.steps.max_steps,
             complete && is_folder(run_folder_ / "model") ? ", model in " + (run_folder_ / "model").string() : "");
  }

  // Beside its name first, so that a model folder is always whole.
  void write_model(const SupervisedTrainer& trainer) const {
    const Path unfinished = run_folder_ / ".model-unfinished";
    fs::remove_all(unfinished);
    const std::optional<Checkpoint> best = job_.run.checkpoint_callback_params.save_best_model ? store_->best() : std::nullopt;
    if (best) {
      fs::copy(best->folder / "model", unfinished, fs::copy_options::recursive);
    } else {
      trainer.model_writer()(unfinished);
    }
    fs::remove_all(run_folder_ / "model");
    fs::rename(unfinished, run_folder_ / "model");
  }

  const TrainingJob& job_;
  const Arguments& arguments_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Mesh mesh_;
  Path folder_, run_folder_;
  ModelConfig network_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Model> model_;
  SupervisedTask task_;
  SupervisedPlan plan_;
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
  return TrainingRun(job, arguments, fork).run();
}

std::string training_flags(const std::string& name) {
  return str("  --fork CKPT    begin a new run, in a folder of its own, where a checkpoint of another stands\n\n", "kedge config ", name,
             " lists every key; kedge config ", name, " --yaml prints a file to start from.\n");
}

}  // namespace kedge::cli
