#include "kedge/critic/critic_fork.h"

#include <algorithm>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/train/checkpoint/call_history.h"

namespace kedge {
namespace {

int64_t counter_in(const Checkpoint& checkpoint, const char* name) {
  const auto found = checkpoint.meta.counters.find(name);
  return found == checkpoint.meta.counters.end() ? -1 : found->second;
}

int64_t step_in(const Checkpoint& checkpoint) { return counter_in(checkpoint, "actor_step"); }

std::string steps_text(const std::vector<Checkpoint>& saves) {
  std::string text;
  for (const Checkpoint& one : saves) text += (text.empty() ? "" : ", ") + std::to_string(step_in(one));
  return text.empty() ? "none" : text;
}

// Those with a label, the oldest first.
std::vector<Checkpoint> saves_in(const Path& from, const std::string& what) {
  if (is_file(from / "meta.json")) return {read_checkpoint(from)};
  check(is_folder(from / "checkpoints"), what, ": there is no critic in ", from.string(),
        " (no checkpoints/). A critic on a server has the folder of its exp_manager.explicit_log_dir");
  std::vector<Checkpoint> saves = list_checkpoints(from / "checkpoints");
  std::erase_if(saves, [](const Checkpoint& one) { return step_in(one) < 0; });
  std::sort(saves.begin(), saves.end(),
            [](const Checkpoint& a, const Checkpoint& b) { return counter_in(a, "history") < counter_in(b, "history"); });
  return saves;
}

// Data of the original only: its owner, its past calls, and its log's position.
void forget_owner(CheckpointMeta& meta) {
  meta.record.set("owner", "");
  meta.record.set("calls", Json(Json::Array{}));
  meta.record.set("positions", Json(Json::Object{}));
}

// Journals first: without them the folder holds no critic.
void remove_history(const Path& folder) {
  for (const char* part : {"journals", "checkpoints", "set_aside"}) remove_tree(folder / part);
}

}  // namespace

void check_resume(const RunFolderConfig& config, const Path& folder) {
  const bool holds_one = has_history(folder);
  check(!holds_one || config.resume_if_exists, folder.string(),
        ": holds a critic; exp_manager.resume_if_exists=true continues with it, another explicit_log_dir starts from scratch");
  check(holds_one || config.resume_from_checkpoint || config.resume_ignore_no_checkpoint || !config.resume_if_exists, folder.string(),
        ": no critic to continue with, and exp_manager.resume_ignore_no_checkpoint=false");
}

void fork_critic(const Path& from, const Path& to, const CriticFork& fork) {
  if (has_history(to) && !fork.replaces) return;
  const std::vector<Checkpoint> all = saves_in(from, fork.what);
  std::vector<Checkpoint> saves = all;
  std::erase_if(saves, [&](const Checkpoint& one) { return fork.actor_step ? step_in(one) != *fork.actor_step : !is_sound(one); });
  check(!saves.empty(), fork.what, ": the critic in ", from.string(), " has no complete save",
        fork.actor_step ? str(" of step ", *fork.actor_step) : "", " (saves of steps: ", steps_text(all),
        "). A critic keeps its newest saves only: fork from a checkpoint of one of these steps");
  if (fork.actor_step) {
    saves.erase(saves.begin(), saves.end() - 1);
    verify_checkpoint(saves.back());
  }
  for (Checkpoint& one : saves) forget_owner(one.meta);
  remove_history(to);
  begin_history(to, saves);
  log_info("the critic starts with the saves of ", from.string(), ": steps ", steps_text(saves));
}

void verify_critic_save(const Path& folder, int64_t actor_step, const std::string& what) {
  const std::vector<Checkpoint> saves = saves_in(folder, what);
  const auto found = std::find_if(saves.rbegin(), saves.rend(), [&](const Checkpoint& one) { return step_in(one) == actor_step; });
  check(found != saves.rend(), what, ": the critic in ", folder.string(), " has no complete save of step ", actor_step,
        " (saves of steps: ", steps_text(saves), ")");
  verify_checkpoint(*found);
}

}  // namespace kedge
