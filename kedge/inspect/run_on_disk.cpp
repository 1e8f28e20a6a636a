#include "kedge/inspect/run_on_disk.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "kedge/core/error.h"

namespace kedge {
namespace {

Path config_file(const Path& folder) { return folder / "config.yaml"; }
Path starts_file(const Path& folder) { return folder / "run.json"; }

// A checkpoint among the best and its twin, the last, are the same files.
std::vector<Checkpoint> each_step_once(std::vector<Checkpoint> all) {
  std::vector<Checkpoint> checkpoints;
  for (Checkpoint& checkpoint : all)
    if (checkpoints.empty() || checkpoints.back().step() != checkpoint.step()) checkpoints.push_back(std::move(checkpoint));
  return checkpoints;
}

}  // namespace

bool is_own_run(const Path& folder, unsigned user) {
  for (const Path& part : {folder, config_file(folder), starts_file(folder)}) {
    struct stat facts {};
    if (stat(part.c_str(), &facts) != 0 || facts.st_uid != user) return false;
  }
  return true;
}

bool is_own_run(const Path& folder) { return is_own_run(folder, geteuid()); }

void check_may_run(const Path& folder, bool allow_commands) {
  check(allow_commands || is_own_run(folder), folder.string(),
        ": belongs to another user, and its config.yaml may name commands that would run as you; read it, then add --allow-commands");
}

bool trains_online(std::string_view algorithm) {
  constexpr std::array<std::string_view, 5> kOnline = {"ppo", "reinforce", "grpo", "rloo", "rs"};
  return std::find(kOnline.begin(), kOnline.end(), algorithm) != kOnline.end();
}

bool is_run(const Path& folder) { return is_file(config_file(folder)) && is_file(starts_file(folder)); }

RunOnDisk open_run(const Path& folder) {
  check(is_folder(folder), folder.string(), ": no such folder");
  check(is_run(folder), folder.string(), ": not the folder of a run, which holds config.yaml and run.json");
  RunOnDisk run;
  run.folder = std::filesystem::weakly_canonical(folder);
  run.config = config_file(run.folder);
  const Path file = starts_file(run.folder);
  const std::string where = file.string();
  run.starts = Json::parse(read_text(file), where);
  check(!run.starts.as_array(where).empty(), where, ": records no start");
  const Json& last = run.starts.as_array(where).back();
  run.started_in = last.at("folder", where).as_text(where);
  const Json::Array& words = last.at("command_line", where).as_array(where);
  check(words.size() >= 2, where, ": the command line of the last start names no command");
  for (const Json& word : words) static_cast<void>(word.as_text(where));  // so that callers need not look it up again
  run.algorithm = words[1].as_text(where);
  const Path checkpoints = run.folder / "checkpoints";
  if (is_folder(checkpoints)) run.checkpoints = each_step_once(list_checkpoints(checkpoints));
  return run;
}

}  // namespace kedge
