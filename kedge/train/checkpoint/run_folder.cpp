#include "kedge/train/checkpoint/run_folder.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

std::string next_number(const Path& parent) {
  for (int64_t number = 0;; ++number) {
    const std::string name = str("version_", number);
    if (!is_folder(parent / name)) return name;
  }
}

// Why each of them cannot be used, one line each.
std::string unusable_ones(const std::vector<Path>& folders, const CheckpointCheck& verify) {
  std::string text;
  for (const Path& folder : folders) {
    try {
      verify(read_checkpoint(folder));
    } catch (const UsageError& error) {
      text += str("\n  ", error.what());
    }
  }
  return text;
}

Path make_scratch_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "kedge-run-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw Error(str(name, ": cannot be made a folder: ", std::strerror(errno)));
  log_info("exp_manager.keep_folder=false: nothing of this run is saved");
  return name;
}

}  // namespace

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;  // what cannot be removed stays in the system's folder for temporary files
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::string time_as_version() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%F_%H-%M-%S", &local)};
}

Path open_run_folder(const RunFolderConfig& config, std::string_view now) {
  if (!config.keep_folder) return make_scratch_folder();
  Path folder;
  if (config.explicit_log_dir) {
    folder = *config.explicit_log_dir;
  } else {
    folder = config.parent() / config.name;
    if (config.version) {
      folder /= *config.version;
    } else if (!config.resume_if_exists) {
      folder /= config.use_datetime_version ? std::string(now) : next_number(folder);
    }
  }
  make_folder(folder);
  return folder;
}

std::optional<Checkpoint> find_resume(const RunConfig& config, const Path& folder, const CheckpointStore& store,
                                      const CheckpointCheck& verify) {
  const std::vector<Path> folders = store.folders();
  check(
      folders.empty() || config.resume_if_exists, folder.string(),
      ": holds checkpoints of an earlier run; exp_manager.resume_if_exists=true resumes it, another explicit_log_dir starts from scratch");
  if (!folders.empty()) {
    std::optional<Checkpoint> newest = store.newest_sound(verify);
    check(newest.has_value(), folder.string(), ": none of its checkpoints can be used:", unusable_ones(folders, verify),
          "\nRestore what is missing. To start again, move these folders away, or set another exp_manager.explicit_log_dir.");
    return newest;
  }
  if (config.resume_from_checkpoint) return open_checkpoint(*config.resume_from_checkpoint, "exp_manager.resume_from_checkpoint");
  check(config.resume_ignore_no_checkpoint || !config.resume_if_exists, folder.string(), ": no checkpoint to resume from");
  return std::nullopt;
}

void set_metrics_aside(const Path& folder) {
  for (const char* name : {"metrics.jsonl", "samples.jsonl"}) {
    const Path file = folder / name;
    std::error_code error;
    if (!is_file(file) || std::filesystem::file_size(file, error) == 0) continue;
    int64_t number = 1;
    while (std::filesystem::exists(str(file.string(), ".before-", number))) ++number;
    const Path aside = str(file.string(), ".before-", number);
    std::filesystem::rename(file, aside, error);
    if (error) throw Error(str(file.string(), ": cannot be renamed to ", aside.string(), ": ", error.message()));
    log_info("the lines of an earlier start without a checkpoint are kept in ", aside.string());
  }
}

Checkpoint open_checkpoint(const Path& folder, std::string_view key) {
  check(is_folder(folder), key, ": no folder ", folder.string());
  try {
    Checkpoint checkpoint = read_checkpoint(folder);
    verify_checkpoint(checkpoint);
    return checkpoint;
  } catch (const UsageError& error) {
    throw UsageError(str(key, ": incomplete checkpoint: ", error.what()));
  }
}

}  // namespace kedge
