#pragma once
// The checkpoints of a run as folders on disk: each is whole or not there. Knows no tensors and not what is in them.
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/config_schema.h"
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
    field("monitor", monitor, "the number by which checkpoints are ranked");
    field("mode", mode, "is a small or a large one good");
    field("save_top_k", save_top_k, "how many of the best are kept; -1: all, 0: none", at_least(-1));
    field("save_last", save_last, "keep the newest too, as NAME-last");
    field("filename", filename, "their names: {key} becomes key=value, {key:.3f} with three digits");
    field("save_nemo_on_train_end", save_nemo_on_train_end, "a complete run leaves its model as a Hugging Face folder, FOLDER/model");
    field("save_best_model", save_best_model, "that folder holds the best model; false: the last");
    field.ignored("always_save_nemo", "every checkpoint holds a Hugging Face folder");
    field.ignored("model_parallel_size", "a model is not cut over ranks");
    field.ignored("async_save", "saves never hold training up");
    field.refused("save_weights_only", "a checkpoint without its state could not be resumed", {"false", "False"});
  }
};

// What a checkpoint's meta.json says of it.
struct CheckpointMeta {
  std::map<std::string, int64_t> counters;  // step, consumed_samples, epoch, ...
  std::map<std::string, double> metrics;
  Json record;  // whatever else the run wants to remember
};

struct Checkpoint {
  Path folder;
  CheckpointMeta meta;

  [[nodiscard]] int64_t step() const;
};

// UsageError where the folder is not whole: a file is missing or has another size, or the record cannot be read.
[[nodiscard]] Checkpoint read_checkpoint(const Path& folder);

// Its files of which a bit is not as it was written, read whole. Checkpoints of older programs kept no hashes: of those none is known.
[[nodiscard]] std::vector<std::string> changed_files(const Path& checkpoint);

// What stores of checkpoints are made of. A folder of checkpoints holds each in a folder of its own.
// Makes the folder where it is not there, and removes what a killed run left in it half written or half removed.
void open_checkpoints(const Path& folder);
// All that are whole, by step. One that is not is warned of by name.
[[nodiscard]] std::vector<Checkpoint> list_checkpoints(const Path& folder);
// `write` fills an empty folder. When it returns, the checkpoint appears under its name; one of that name from an earlier try goes first.
// After an error everything is as before.
void write_checkpoint(const Path& checkpoint, const CheckpointMeta& meta, const std::function<void(const Path& folder)>& write);
// At once or not at all.
void remove_checkpoint(const Path& checkpoint);

// Not thread-safe; one for a folder.
class CheckpointStore {
 public:
  // Removes what a killed run left half written or half removed. `folder` is made where it is not there.
  CheckpointStore(Path folder, CheckpointConfig config);

  [[nodiscard]] std::vector<Checkpoint> list() const { return list_checkpoints(folder_); }
  // The one to resume from: that with the most steps.
  [[nodiscard]] std::optional<Checkpoint> newest() const;
  // The best by the monitored number; none where nothing is ranked.
  [[nodiscard]] std::optional<Checkpoint> best() const;

  // `write` fills an empty folder. When it returns, the checkpoint appears under its name, and those that are not kept any more disappear.
  // After an error everything is as before. Without the monitored number it is not ranked, which is warned of, and kept as the last.
  void save(const CheckpointMeta& meta, const std::function<void(const Path& folder)>& write);

 private:
  [[nodiscard]] bool ranks(const CheckpointMeta& meta, const std::vector<Checkpoint>& best) const;
  [[nodiscard]] bool is_better(double a, double b) const { return config_.mode == MonitorMode::min ? a < b : a > b; }
  void remove_worst(const std::string& saved) const;

  Path folder_;
  CheckpointConfig config_;
};

}  // namespace kedge
