#pragma once
// The checkpoints of a run as folders on disk: each is complete or absent. Independent of tensors and of their contents.
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/core/files.h"
#include "kedge/core/json.h"

namespace kedge {

enum class MonitorMode { min, max };
constexpr auto enum_names(MonitorMode) {
  return std::array<EnumName<MonitorMode>, 2>{{{"min", MonitorMode::min}, {"max", MonitorMode::max}}};
}

struct CheckpointConfig {
  std::string monitor = "val_loss";
  MonitorMode mode = MonitorMode::min;
  int64_t save_top_k = 3;
  bool save_last = true;
  std::string filename = "kedge-{step}-{consumed_samples}-{epoch}-{val_loss:.3f}";
  bool save_nemo_on_train_end = true;
  bool save_best_model = false;

  void fields(auto&& field) {
    field("monitor", monitor, "metric that ranks the checkpoints");
    field("mode", mode, "whether smaller (min) or larger (max) values are better");
    field("save_top_k", save_top_k, "number of best checkpoints kept; -1: all, 0: none", at_least(-1));
    field("save_last", save_last, "also keep the newest, as NAME-last");
    field("filename", filename,
          "name pattern: {key} becomes key=value; {key:.3f}: with three decimals, {key:04d}: an integer of four digits");
    field("save_nemo_on_train_end", save_nemo_on_train_end, "write the model of a finished run as a Hugging Face folder, FOLDER/model");
    field("save_best_model", save_best_model, "FOLDER/model is the best model; false: the last one");
    field.ignored("always_save_nemo", "every checkpoint contains a Hugging Face folder");
    field.ignored("model_parallel_size", "checkpoints have one layout, whatever the ranks");
    field.ignored("async_save", "checkpoints are always written in the background");
    field.refused("save_weights_only", "a run cannot resume from weights alone", {"false", "False"});
  }
};

// The contents of a checkpoint's meta.json.
struct CheckpointMeta {
  std::map<std::string, int64_t> counters;  // step, consumed_samples, epoch, ...
  std::map<std::string, double> metrics;
  Json record;  // further data of the run
};

// A metric or a counter, by which checkpoints are ranked; none if it is not known. NeMo-Aligner's pages say validation_X for val_X.
[[nodiscard]] std::optional<double> monitored_number(const CheckpointMeta& meta, const std::string& monitor);

struct CheckpointFile {
  std::string name;  // from the checkpoint's folder on
  int64_t bytes = 0;
  std::string hash = {};  // of all its bytes; empty in checkpoints from before there were hashes
};

struct Checkpoint {
  Path folder;
  CheckpointMeta meta;
  std::vector<CheckpointFile> files = {};  // all but meta.json, by name

  [[nodiscard]] int64_t step() const;
  [[nodiscard]] bool has_hashes() const;
};

// UsageError if the folder is incomplete: a file is missing or has another size, or the record cannot be read or is not the one that was
// written. Reads no file but the record, so that it costs little.
[[nodiscard]] Checkpoint read_checkpoint(const Path& folder);

// Reads every byte and lists damage, one line per file, "FILE: its bytes are not those that were saved". Without
// hashes damage cannot be detected.
[[nodiscard]] std::vector<std::string> find_damage(const Checkpoint& checkpoint);
// Before a checkpoint is used: a UsageError that names the folder and the damage. A disk that fails to read is an Error: the
// bytes may be intact, so nothing is concluded from it.
void verify_checkpoint(const Checkpoint& checkpoint);
// Throws as verify_checkpoint() does, which it may replace where a checkpoint needs more than its own folder.
using CheckpointCheck = std::function<void(const Checkpoint& checkpoint)>;
// The same as a bool; damage is logged as a warning.
[[nodiscard]] bool is_sound(const Checkpoint& checkpoint, const CheckpointCheck& verify = verify_checkpoint);

// Building blocks of checkpoint stores. A folder of checkpoints holds each in its own folder.
// Creates the folder if missing, and removes what a killed run left half written or half removed; one that was being
// replaced by another of its name, which was not completed, is restored.
void open_checkpoints(const Path& folder);
// All that are complete, by step, judging by file sizes only. An incomplete one is logged as a warning.
[[nodiscard]] std::vector<Checkpoint> list_checkpoints(const Path& folder);
// The folders of all, including incomplete ones.
[[nodiscard]] std::vector<Path> checkpoint_folders(const Path& folder);
// Those that have the monitored number, the best first; of equals the older one.
[[nodiscard]] std::vector<Checkpoint> rank_checkpoints(std::vector<Checkpoint> checkpoints, const CheckpointConfig& config);
// `write` fills an empty folder. When it returns, the checkpoint appears under its name; one of that name from an earlier attempt is
// removed first. After an error everything is as before.
void write_checkpoint(const Path& checkpoint, const CheckpointMeta& meta, const std::function<void(const Path& folder)>& write);
// Atomic.
void remove_checkpoint(const Path& checkpoint);

// Not thread-safe; one per folder.
class CheckpointStore {
 public:
  // Removes what a killed run left half written or half removed, and completes a save that ended before the newest was kept as the last,
  // too. `folder` is created if missing.
  CheckpointStore(Path folder, CheckpointConfig config);

  [[nodiscard]] std::vector<Checkpoint> list() const { return list_checkpoints(folder_); }
  [[nodiscard]] std::vector<Path> folders() const { return checkpoint_folders(folder_); }
  // That with the most steps.
  [[nodiscard]] std::optional<Checkpoint> newest() const;
  // The best by the monitored number; none if nothing is ranked.
  [[nodiscard]] std::optional<Checkpoint> best() const;
  // The same, for use: every byte is checked, and a damaged one is skipped with a warning.
  [[nodiscard]] std::optional<Checkpoint> newest_sound(const CheckpointCheck& verify = verify_checkpoint) const;
  [[nodiscard]] std::optional<Checkpoint> best_sound() const;

  // Would save() keep a checkpoint with these numbers? Otherwise it does nothing.
  [[nodiscard]] bool wants(const CheckpointMeta& meta) const;
  // `write` fills an empty folder. When it returns, the checkpoint appears under its name, and those that are no longer kept are removed.
  // After an error everything is as before. Without the monitored metric it is not ranked, with a warning, and kept as the last, even
  // if the last ones are not kept: until the next one.
  void save(const CheckpointMeta& meta, const std::function<void(const Path& folder)>& write);

 private:
  [[nodiscard]] bool ranks(const CheckpointMeta& meta, const std::vector<Checkpoint>& all) const;
  [[nodiscard]] bool wants_last(const CheckpointMeta& meta) const;
  [[nodiscard]] bool is_better(double a, double b) const;
  void remove_worst() const;
  void finish_save() const;

  Path folder_;
  CheckpointConfig config_;
};

}  // namespace kedge
