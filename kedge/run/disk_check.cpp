#include "kedge/run/disk_check.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"

namespace kedge {
namespace {

Path nearest_folder(const RunConfig& run) {
  Path folder = std::filesystem::absolute(run.explicit_log_dir ? Path(*run.explicit_log_dir) : run.parent());
  while (!is_folder(folder) && folder.has_parent_path() && folder != folder.parent_path()) folder = folder.parent_path();
  return folder;
}

// Bytes on disk below a folder; a file with several names is there once.
int64_t bytes_below(const Path& folder) {
  int64_t bytes = 0;
  std::set<std::pair<dev_t, ino_t>> seen;
  std::error_code error;
  // What cannot be read is not counted: the space is an estimate, and a save reports its own errors.
  for (std::filesystem::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    struct stat info {};
    if (::lstat(entry->path().c_str(), &info) == 0 && S_ISREG(info.st_mode) && seen.emplace(info.st_dev, info.st_ino).second)
      bytes += info.st_size;
  }
  return bytes;
}

// Of a run that is resumed.
int64_t held_by_checkpoints(const RunConfig& run) {
  if (!run.resume_if_exists) return 0;
  Path folder = run.explicit_log_dir ? Path(*run.explicit_log_dir) : run.parent() / run.name;
  if (!run.explicit_log_dir && run.version) folder /= *run.version;
  return bytes_below(folder / "checkpoints");
}

}  // namespace

DiskPlan plan_disk(const RunConfig& run, int64_t max_steps, int64_t save, const MemoryInput& network) {
  MemoryInput whole = network;  // on disk, whatever ranks share
  whole.num_ranks = whole.shard_ranks = whole.tensor_ranks = whole.token_ranks = 1;
  whole.sharding = Sharding::none;
  const MemoryPlan memory = plan_memory(whole);
  const CheckpointConfig& config = run.checkpoint_callback_params;
  DiskPlan plan;
  plan.folder = nearest_folder(run);
  plan.free = free_disk_bytes(plan.folder);
  // Only the adapters if they are trained, in fp32.
  const int64_t model = network.lora ? memory.gradients : memory.parameters;
  if (run.writes_model()) plan.model = model;
  if (save <= 0 || !run.saves()) return plan;
  plan.held = held_by_checkpoints(run);
  plan.checkpoint = model + memory.snapshot;
  const int64_t num_saves = (max_steps + save - 1) / save;
  plan.num_kept = std::min(num_saves, config.save_top_k < 0 ? num_saves : config.save_top_k + (config.save_last ? 1 : 0));
  return plan;
}

int64_t record_bytes(int64_t num_answers, int64_t prompt_tokens, int64_t answer_tokens) {
  // Measured: a line has about 500 bytes in addition to its tokens; one of a prompt has its id and its text, one of an answer three numbers
  // more.
  constexpr int64_t kLine = 500, kPromptToken = 10, kAnswerToken = 50;
  return num_answers * (kLine + prompt_tokens * kPromptToken + answer_tokens * kAnswerToken);
}

void require_disk(const DiskPlan& plan) {
  check(plan.fits(), plan.folder.string(), ": ", format_bytes(plan.free), " of disk space are free, not enough for two checkpoints of ",
        format_bytes(plan.checkpoint),
        " each; use another exp_manager.explicit_log_dir, or "
        "exp_manager.create_checkpoint_callback=false");
  if (plan.needed() > plan.free + plan.held)
    log_warn(plan.folder.string(), ": ", format_bytes(plan.free), " of disk space are free, and the run may take ",
             format_bytes(plan.needed()), " (", plan.num_kept, " checkpoints of ", format_bytes(plan.checkpoint), ", answers ",
             format_bytes(plan.records), "); exp_manager.checkpoint_callback_params.save_top_k and rollouts.keep reduce it");
}

}  // namespace kedge
