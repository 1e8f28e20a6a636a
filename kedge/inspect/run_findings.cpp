#include "kedge/inspect/run_findings.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "kedge/core/error.h"
#include "kedge/inspect/replay_run.h"
#include "kedge/rollout/replay_store.h"
#include "kedge/train/checkpoint/model_state.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

std::string name_in(const RunOnDisk& run, const Path& path) { return path.lexically_relative(run.folder).string(); }

// By name, those that are being written left out.
std::vector<Path> folders_in(const Path& folder) {
  std::vector<Path> folders;
  if (!is_folder(folder)) return folders;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !entry.path().filename().string().starts_with('.')) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

// The step of a damaged checkpoint is usually in its name: "reinforce-step=3-...".
int64_t step_in_name(const Path& folder) {
  const std::string name = folder.filename().string();
  const size_t found = name.find("step=");
  return found == std::string::npos ? 0 : std::atoll(name.c_str() + found + std::string("step=").size());
}

enum class Owner { policy, critic };

void look_at_checkpoint(const RunOnDisk& run, const Path& folder, Owner owner, std::vector<Finding>& findings) {
  std::optional<Checkpoint> checkpoint;
  try {
    checkpoint = read_checkpoint(folder);
    const int64_t step = checkpoint->step();
    const std::vector<std::string> damage = find_damage(*checkpoint);
    for (const std::string& one : damage) findings.push_back({step, name_in(run, folder / one)});
    if (!damage.empty() || owner == Owner::critic) return;
    const std::string state = name_in(run, folder / "state");
    const std::optional<std::string> known = known_weights(run, step);
    if (const std::string hash = saved_weights_hash(folder / "state"); known && hash != *known)
      findings.push_back({step, str(state, ": its weights (", hash, ") are not those in the records of step ", step, " (", *known, ")")});
  } catch (const UsageError& error) {
    findings.push_back({checkpoint ? checkpoint->step() : step_in_name(folder), str("incomplete checkpoint: ", error.what())});
  }
}

}  // namespace

std::vector<Finding> checkpoint_findings(const RunOnDisk& run) {
  std::vector<Finding> findings;
  for (const Path& folder : folders_in(run.folder / "checkpoints")) look_at_checkpoint(run, folder, Owner::policy, findings);
  for (const Path& folder : folders_in(run.folder / "critic" / "checkpoints")) look_at_checkpoint(run, folder, Owner::critic, findings);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) { return a.step < b.step; });
  return findings;
}

std::vector<Finding> record_findings(const RunOnDisk& run) {
  std::vector<Finding> findings;
  std::optional<RecordHeader> before;
  for (const int64_t step : recorded_steps(records_of(run))) {
    try {
      const RecordHeader header = read_recorded_step(records_of(run), step).header;
      const bool follows = before && before->step + 1 == step && !before->weights_after.empty() && !header.weights_before.empty();
      if (follows && before->weights_after != header.weights_before)
        findings.push_back({step, str(name_in(run, record_path(records_of(run), step)), ": starts with the weights ", header.weights_before,
                                      ", but step ", before->step, " ended with ", before->weights_after)});
      before = header;
    } catch (const UsageError& error) {
      findings.push_back({step, error.what()});
      before.reset();
    }
  }
  return findings;
}

}  // namespace kedge
