#pragma once
// A run in its folder, whatever it trains: memory for it, the checkpoint it resumes from, its loop, and its final files. Knows a trainer
// only as the loop does.
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config.h"
#include "kedge/core/stop.h"
#include "kedge/model/model.h"
#include "kedge/run/disk_check.h"
#include "kedge/run/memory_check.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/loop.h"

namespace kedge {

// What a run is, as far as it is known before weights are read.
struct RunJob {
  std::string name;  // "sft": the command, and its section below `trainer`
  Section section;   // of the complete configuration
  const RunConfig& run;
  Group world;
  at::Device device;
  Path model_folder;                  // where it starts
  std::string network_print;          // a checkpoint of another network is rejected; shape_print()
  std::string tokenizer_print;        // and one of another tokenizer
  MemoryFit memory;                   // a run that does not fit is rejected
  MemoryRequest memory_request = {};  // the request behind it
  bool rehearses = true;              // before its first step
  DiskPlan disk = {};                 // the same for disk space
  std::vector<Path> data_files;       // kept with the run, by their hashes
  std::string kept_start = {};        // what its initial weights are needed for later, so that they must not change: kReference, kBase
  CheckpointCheck verify = verify_checkpoint;  // before it resumes from a checkpoint in its own folder
};

inline constexpr const char *kReference = "the reference policy", *kBase = "the base of the adapters";

// From its construction on signals are handled, the time limit runs, and the folder is locked: load the weights
// after it. Every rank has one, and does the same. The job must outlive it.
class RunSession {
 public:
  // Rejects a run that does not fit into memory, then opens the folder and finds the checkpoint to resume from: the folder's own, or
  // `fork` if there is none. UsageError if it cannot be resumed with these settings, or would replace a finished run. `arguments` are all
  // those of the program.
  RunSession(const RunJob& job, std::vector<std::string> arguments, const std::optional<Path>& fork);
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

  [[nodiscard]] const std::optional<Checkpoint>& checkpoint() const { return checkpoint_; }
  // An earlier start completed this run and left no checkpoint: there is nothing to do, and it is logged.
  [[nodiscard]] bool is_finished() const { return is_finished_; }
  [[nodiscard]] const Path& folder() const { return folder_; }
  [[nodiscard]] const std::string& id() const { return id_; }  // of the run, the same on every rank
  // Of the files of the network it starts from: equal for a copy in another folder.
  [[nodiscard]] std::string start_hash() const;
  // Returns the result of `work`. Out of memory, it throws an Error that names the phase and settings that need less.
  auto within(std::string_view phase, auto&& work) const {
    try {
      return work();
    } catch (const std::exception& error) {
      throw_if_out_of_memory(error, phase);
      throw;
    }
  }
  // For everything that waits for a server. Valid as long as the session.
  [[nodiscard]] StopQuestion stop_question() const {
    return [this] { return signals_.received(); };
  }

  // A trainer with its model, before the checkpoint is loaded.
  struct Start {
    Trainer& trainer;
    const Model& model;
    StepPlan steps;
    Intervals intervals;                         // nothing is saved if exp_manager disables checkpoints
    std::function<FolderWriter()> model_writer;  // of the final state; of every rank that has a part of it
    // Further entries of the summary, from the metrics of the model that the run leaves, or of the last steps if it leaves none.
    std::function<void(Json& summary, const Metrics& metrics)> add_summary = {};
  };
  // From the checkpoint, or the start, to the end: restores the trainer, runs its loop, writes summary and model. Once. Returns the
  // exit code. Interrupted if a signal was received while waiting for a server: the step is lost, as if the run had been killed.
  int run(const Start& start);

 private:
  void throw_if_out_of_memory(const std::exception& error, std::string_view phase) const;
  [[nodiscard]] bool writes() const { return job_.world.rank() == 0; }
  [[nodiscard]] Path find_start(const std::optional<Path>& fork) const;
  void open_folder(const std::optional<Path>& fork);
  [[nodiscard]] bool find_finished(bool forks) const;
  [[nodiscard]] Json identity() const;
  void accept_start() const;
  // Is the checkpoint, if any, this run's own? Else the run starts its own metrics there.
  [[nodiscard]] bool goes_on() const { return checkpoint_ && !is_elsewhere_; }
  int64_t restore_trainer(Trainer& trainer, MetricsLog& log) const;
  [[nodiscard]] std::string last_checkpoint_text() const;
  void write_run_files(const Start& start, int64_t step) const;
  void finish(const Start& start, const LoopResult& result, const std::optional<Checkpoint>& best_model) const;
  [[nodiscard]] bool has_news(const LoopResult& result) const;
  [[nodiscard]] bool leaves_model(const LoopResult& result) const;
  // Returns the checkpoint whose model it is; none for the model as it is after the last step, and on other ranks than the first.
  [[nodiscard]] std::optional<Checkpoint> write_model(const Start& start, int64_t step) const;

  const RunJob& job_;
  std::vector<std::string> arguments_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  StopSignals signals_;
  Path folder_;
  std::string id_;
  std::optional<ScratchFolder> scratch_;  // rank 0's, as the next two
  std::optional<RunLock> lock_;
  std::optional<CheckpointStore> store_;
  std::optional<Checkpoint> checkpoint_;
  bool is_fork_ = false, is_elsewhere_ = false;  // is_elsewhere_: the checkpoint is another run's
  bool is_finished_ = false;
  Json record_;  // of every checkpoint
};

// The files of a model folder that define its network, sorted.
[[nodiscard]] std::vector<Path> model_files(const Path& folder);

// The same, and those beside them: tokenizer, chat template and settings of generation. What run.json has of a model.
[[nodiscard]] std::vector<Path> recorded_model_files(const Path& folder);

// Equal for networks whose weights have the same names and shapes.
[[nodiscard]] std::string shape_fingerprint(const ModelConfig& config, const HeadOptions& head);

}  // namespace kedge
