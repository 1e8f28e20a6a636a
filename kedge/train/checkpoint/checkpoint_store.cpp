#include "kedge/train/checkpoint/checkpoint_store.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "kedge/core/content_hash.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/train/checkpoint/checkpoint_name.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMeta = "meta.json", kLast = "-last", kUnfinished = ".unfinished-", kRemoved = ".removed-",
                           kReplaced = ".replaced-";
constexpr std::string_view kOwnHash = "hash";  // the record's last member: the hash of the others
constexpr std::string_view kPatternKey = "exp_manager.checkpoint_callback_params.filename";

bool is_last(const Path& checkpoint) { return checkpoint.filename().string().ends_with(kLast); }
// Its name as the last one.
Path twin_of(const Path& checkpoint) { return checkpoint.string() + std::string(kLast); }

// Every file below the folder but the record itself, by its path from there.
std::map<std::string, int64_t> file_sizes(const Path& folder) {
  std::map<std::string, int64_t> sizes;
  for (const Path& file : files_below(folder)) {
    const std::string name = file.lexically_relative(folder).generic_string();
    if (name != kMeta) sizes[name] = static_cast<int64_t>(fs::file_size(file));
  }
  return sizes;
}

template <typename T>
Json object_of(const std::map<std::string, T>& values) {
  Json json{Json::Object{}};
  for (const auto& [key, value] : values) json.append(key, Json(value));
  return json;
}

std::map<std::string, std::string> file_hashes(const Path& folder, const std::map<std::string, int64_t>& files) {
  std::map<std::string, std::string> hashes;
  for (const auto& [name, size] : files) hashes[name] = file_content_hash(folder / name);
  return hashes;
}

std::string record_of(const CheckpointMeta& meta, const Path& folder) {
  const auto files = file_sizes(folder);
  Json json;
  json.set("counters", object_of(meta.counters));
  json.set("metrics", object_of(meta.metrics));
  json.set("record", meta.record);
  json.set("files", object_of(files));
  json.set("hashes", object_of(file_hashes(folder, files)));
  json.set(kOwnHash, content_hash(json.dump()));
  return json.dump(2) + "\n";
}

// An old record has no hash.
void check_record(const Json& json, const Path& folder, const std::string& where) {
  const Json* hash = json.find(kOwnHash);
  if (hash == nullptr) return;
  Json::Object others = json.as_object(where);
  std::erase_if(others, [](const Json::Member& member) { return member.first == kOwnHash; });
  check(*hash == Json(content_hash(Json(std::move(others)).dump())), folder.string(), ": ", kMeta,
        ": its bytes are not those that were saved");
}

std::vector<CheckpointFile> check_files(const Json& json, const Path& folder, const std::string& where) {
  const Json* hashes = json.find("hashes");
  const auto found = file_sizes(folder);
  std::vector<CheckpointFile> files;
  for (const auto& [name, size] : json.at("files", where).as_object(where)) {
    const auto file = found.find(name);
    check(file != found.end(), folder.string(), ": ", name, " is missing");
    check(file->second == size.as_integer(where), folder.string(), ": ", name, " has ", file->second, " bytes instead of ",
          size.as_integer(where));
    files.push_back({name, file->second, hashes == nullptr ? "" : hashes->at(name, where).as_text(where)});
  }
  return files;
}

Checkpoint read_whole(const Path& folder) {
  const std::string where = (folder / kMeta).string();
  check(is_file(folder / kMeta), folder.string(), " has no ", kMeta);
  const Json json = Json::parse(read_text(folder / kMeta), where);
  check_record(json, folder, where);
  Checkpoint checkpoint{folder, {}, check_files(json, folder, where)};
  CheckpointMeta& meta = checkpoint.meta;
  for (const auto& [key, value] : json.at("counters", where).as_object(where)) meta.counters[key] = value.as_integer(where);
  for (const auto& [key, value] : json.at("metrics", where).as_object(where))
    meta.metrics[key] = value.is_null() ? std::nan("") : value.as_number(where);  // JSON has no NaN
  meta.record = json.at("record", where);
  return checkpoint;
}

bool is_better_by(MonitorMode mode, double a, double b) { return mode == MonitorMode::min ? a < b : a > b; }

Path hidden_beside(const Path& checkpoint, std::string_view prefix) {
  return checkpoint.parent_path() / (std::string(prefix) + checkpoint.filename().string());
}

void rename_folder(const Path& from, const Path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw Error(str(from.string(), ": cannot be renamed to ", to.string(), ": ", std::strerror(errno)));
}

// No longer recognized as a checkpoint. If it remains, the next start removes it.
void remove_hidden(const Path& hidden) {
  try {
    remove_tree(hidden);
  } catch (const Error& error) {
    log_warn(error.what(), "; it takes up space until the run is restarted");
  }
}

// Gives a written folder its name. One of that name from an earlier attempt exists until that moment: the two are exchanged, and if the
// file system cannot do that, it is renamed so that it can be found again.
void publish(const Path& written, const Path& checkpoint) {
  const Path parent = checkpoint.parent_path();
  if (!fs::exists(checkpoint)) {
    rename_folder(written, checkpoint);
    return sync_folder(parent);
  }
  if (::renameat2(AT_FDCWD, written.c_str(), AT_FDCWD, checkpoint.c_str(), RENAME_EXCHANGE) == 0) return sync_folder(parent);
  const Path old = hidden_beside(checkpoint, kReplaced);
  remove_tree(old);
  rename_folder(checkpoint, old);
  rename_folder(written, checkpoint);
  sync_folder(parent);
  remove_hidden(old);
}

// These two throw if the disk fails: a checkpoint that is not seen would be treated as missing.
bool is_visible_folder(const Path& path) {
  const std::string name = path.filename().string();
  return !name.starts_with('.') && name != "lost+found" && fs::is_directory(path);  // that one is the file system's own
}
bool is_made_as_one(const Path& folder) {
  return fs::exists(folder / kMeta) || fs::exists(folder / "state") || fs::exists(folder / "model");
}

// Where the checkpoint of this step goes: a pattern without {step} gives several steps one name, and the later ones become NAME-v1, NAME-v2
// and so on, as NeMo's do. A last one may be replaced, since only the newest is kept.
Path untaken_path(const Path& wanted, int64_t step, const std::vector<Checkpoint>& all) {
  const auto is_taken = [&](const Path& path) {
    return std::any_of(all.begin(), all.end(), [&](const Checkpoint& one) { return one.folder == path && one.step() != step; });
  };
  Path path = wanted;
  for (int64_t i = 1; is_taken(path); ++i) path = str(wanted.string(), "-v", i);
  return path;
}

// Empty if the file is intact. An Error if it cannot be read.
std::string damage_of(const Checkpoint& checkpoint, const CheckpointFile& file) {
  return file.hash.empty() ? "" : file_damage(checkpoint.folder, file.name, file.hash);
}

// The folder of a checkpoint in progress, removed again unless it gets its name.
class Unfinished {
 public:
  explicit Unfinished(const Path& checkpoint) : folder_(hidden_beside(checkpoint, kUnfinished)) {
    remove_tree(folder_);
    make_folder(folder_);
  }
  ~Unfinished() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  void fill(const CheckpointMeta& meta, const std::function<void(const Path& folder)>& write) const {
    write(folder_);
    write_atomic(folder_ / kMeta, record_of(meta, folder_));
    sync_tree(folder_);
  }
  void link(const Path& other) const {
    link_folder(other, folder_);
    sync_tree(folder_);
  }

  [[nodiscard]] const Path& folder() const { return folder_; }

 private:
  Path folder_;
};

}  // namespace

int64_t Checkpoint::step() const {
  const auto found = meta.counters.find("step");
  return found == meta.counters.end() ? 0 : found->second;
}

std::optional<double> monitored_number(const CheckpointMeta& meta, const std::string& monitor) {
  if (const auto found = meta.metrics.find(monitor); found != meta.metrics.end() && !std::isnan(found->second)) return found->second;
  if (const auto found = meta.counters.find(monitor); found != meta.counters.end()) return static_cast<double>(found->second);
  constexpr std::string_view kLongName = "validation_";
  return monitor.starts_with(kLongName) ? monitored_number(meta, "val_" + monitor.substr(kLongName.size())) : std::nullopt;
}

bool Checkpoint::has_hashes() const { return !files.empty() && !files.front().hash.empty(); }

Checkpoint read_checkpoint(const Path& folder) { return read_whole(folder); }

std::vector<std::string> find_damage(const Checkpoint& checkpoint) {
  std::vector<std::string> damage;
  for (const CheckpointFile& file : checkpoint.files) {
    try {
      if (const std::string one = damage_of(checkpoint, file); !one.empty()) damage.push_back(one);
    } catch (const Error& error) {
      damage.push_back(file.name + ": " + error.what());  // a disk that cannot read a block says so
    }
  }
  return damage;
}

void verify_checkpoint(const Checkpoint& checkpoint) {
  std::string all;
  for (const CheckpointFile& file : checkpoint.files) {
    std::string one;
    try {
      one = damage_of(checkpoint, file);
    } catch (const UsageError& error) {
      one = file.name + ": " + error.what();
    } catch (const Error& error) {
      throw Error(str(error.what(), ". Try again; if the error persists, move ", checkpoint.folder.string(),
                      " away to resume from an earlier checkpoint"));
    }
    if (!one.empty()) all += (all.empty() ? "" : "; ") + one;
  }
  check(all.empty(), checkpoint.folder.string(), ": ", all);
}

bool is_sound(const Checkpoint& checkpoint, const CheckpointCheck& verify) {
  try {
    verify(checkpoint);
    return true;
  } catch (const UsageError& error) {
    log_warn("skipping a damaged checkpoint: ", error.what());
    return false;
  }
}

void open_checkpoints(const Path& folder) {
  make_folder(folder);
  std::vector<Path> leftovers;
  for (const Path& path : list_folder(folder)) {
    const std::string name = path.filename().string();
    if (name.starts_with(kUnfinished) || name.starts_with(kRemoved) || name.starts_with(kReplaced)) leftovers.push_back(path);
  }
  for (Path& path : leftovers) {
    const std::string name = path.filename().string();
    if (!name.starts_with(kReplaced)) continue;
    const Path checkpoint = folder / name.substr(kReplaced.size());
    if (fs::exists(checkpoint)) continue;
    log_info(checkpoint.string(), " is restored: the run ended before another replaced it");
    rename_folder(path, checkpoint);
    sync_folder(folder);
    path.clear();
  }
  std::erase(leftovers, Path());
  for (const Path& path : leftovers) {
    log_info("removing ", path.string(), ", which a run that ended early left behind");
    remove_hidden(path);
  }
}

std::vector<Path> checkpoint_folders(const Path& folder) {
  std::vector<Path> found;
  for (const Path& path : list_folder(folder))
    if (is_visible_folder(path) && is_made_as_one(path)) found.push_back(path);
  return found;
}

std::vector<Checkpoint> list_checkpoints(const Path& folder) {
  std::vector<Checkpoint> found;
  for (const Path& path : list_folder(folder)) {
    if (!is_visible_folder(path)) continue;
    try {
      found.push_back(read_checkpoint(path));
    } catch (const UsageError& error) {
      log_warn("incomplete checkpoint: ", error.what());
    }
  }
  // The last one comes after its twin among the best.
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) {
    return std::pair(a.step(), is_last(a.folder)) < std::pair(b.step(), is_last(b.folder));
  });
  return found;
}

std::vector<Checkpoint> rank_checkpoints(std::vector<Checkpoint> checkpoints, const CheckpointConfig& config) {
  std::erase_if(checkpoints, [&](const Checkpoint& one) { return !monitored_number(one.meta, config.monitor); });
  std::stable_sort(checkpoints.begin(), checkpoints.end(), [&](const Checkpoint& a, const Checkpoint& b) {
    return is_better_by(config.mode, *monitored_number(a.meta, config.monitor), *monitored_number(b.meta, config.monitor));
  });
  return checkpoints;
}

void write_checkpoint(const Path& checkpoint, const CheckpointMeta& meta, const std::function<void(const Path& folder)>& write) {
  const Unfinished written(checkpoint);
  written.fill(meta, write);
  publish(written.folder(), checkpoint);
}

// Renamed first, so that a half removed one is never mistaken for a checkpoint.
void remove_checkpoint(const Path& checkpoint) {
  const Path hidden = hidden_beside(checkpoint, kRemoved);
  remove_tree(hidden);
  rename_folder(checkpoint, hidden);
  sync_folder(checkpoint.parent_path());
  remove_hidden(hidden);
}

CheckpointStore::CheckpointStore(Path folder, CheckpointConfig config) : folder_(std::move(folder)), config_(std::move(config)) {
  static_cast<void>(checkpoint_name(config_.filename, {}, kPatternKey));
  open_checkpoints(folder_);
  finish_save();
}

void CheckpointStore::finish_save() const {
  if (!config_.save_last) return;
  const std::vector<Checkpoint> all = list();
  if (all.empty() || all.size() != folders().size()) return;  // what is incomplete may be newer
  const Path& newest = all.back().folder;
  const bool has_last = is_last(newest);
  const Path last_as = has_last ? newest : twin_of(newest);
  const auto is_older_last = [&](const Checkpoint& one) { return is_last(one.folder) && one.folder != last_as; };
  // Older ones are kept if the newest is damaged.
  if ((has_last && std::none_of(all.begin(), all.end(), is_older_last)) || !is_sound(all.back())) return;
  if (!has_last) {
    const Unfinished twin(last_as);
    twin.link(newest);
    publish(twin.folder(), last_as);
  }
  for (const Checkpoint& one : all)
    if (is_older_last(one)) remove_checkpoint(one.folder);
}

std::optional<Checkpoint> CheckpointStore::newest() const {
  std::vector<Checkpoint> all = list();
  if (all.empty()) return std::nullopt;
  return std::move(all.back());
}

std::optional<Checkpoint> CheckpointStore::best() const {
  std::vector<Checkpoint> ranked = rank_checkpoints(list(), config_);
  if (ranked.empty()) return std::nullopt;
  return std::move(ranked.front());
}

std::optional<Checkpoint> CheckpointStore::newest_sound(const CheckpointCheck& verify) const {
  std::vector<Checkpoint> all = list();
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const Checkpoint& one) { return is_sound(one, verify); });
  return found == all.rend() ? std::nullopt : std::optional(std::move(*found));
}

std::optional<Checkpoint> CheckpointStore::best_sound() const {
  std::vector<Checkpoint> ranked = rank_checkpoints(list(), config_);
  const auto found = std::find_if(ranked.begin(), ranked.end(), [](const Checkpoint& one) { return is_sound(one); });
  return found == ranked.end() ? std::nullopt : std::optional(std::move(*found));
}

bool CheckpointStore::is_better(double a, double b) const { return is_better_by(config_.mode, a, b); }

bool CheckpointStore::ranks(const CheckpointMeta& meta, const std::vector<Checkpoint>& all) const {
  if (config_.save_top_k == 0) return false;
  const std::optional<double> mine = monitored_number(meta, config_.monitor);
  if (!mine) {
    log_warn("a checkpoint is not ranked, because ", config_.monitor, " is not known at step ", Checkpoint{{}, meta}.step());
    return false;
  }
  if (config_.save_top_k < 0) return true;
  // Not how many there are: a killed run left more than are kept, and so does a smaller save_top_k.
  const auto num_as_good = std::count_if(all.begin(), all.end(), [&](const Checkpoint& other) {
    const std::optional<double> theirs = monitored_number(other.meta, config_.monitor);
    return !is_last(other.folder) && theirs && !is_better(*mine, *theirs);
  });
  return num_as_good < config_.save_top_k;
}

bool CheckpointStore::wants_last(const CheckpointMeta& meta) const {
  return config_.save_last || (config_.save_top_k != 0 && !monitored_number(meta, config_.monitor));
}

bool CheckpointStore::wants(const CheckpointMeta& meta) const { return wants_last(meta) || ranks(meta, list()); }

void CheckpointStore::remove_worst() const {
  if (config_.save_top_k <= 0) return;  // at 0 none is ranked, and those of before stay
  std::vector<Checkpoint> best;
  for (Checkpoint& one : list())
    if (!is_last(one.folder)) best.push_back(std::move(one));
  while (static_cast<int64_t>(best.size()) > config_.save_top_k) {
    // Of equals the oldest goes.
    auto worst = best.begin();
    for (auto one = worst + 1; one != best.end(); ++one) {
      const double number = monitored_number(one->meta, config_.monitor).value_or(std::nan(""));
      const double most = monitored_number(worst->meta, config_.monitor).value_or(std::nan(""));
      if (!std::isnan(most) && (std::isnan(number) || is_better(most, number))) worst = one;
    }
    remove_checkpoint(worst->folder);
    best.erase(worst);
  }
}

void CheckpointStore::save(const CheckpointMeta& meta, const std::function<void(const Path& folder)>& write) {
  std::map<std::string, double> numbers = meta.metrics;
  for (const auto& [key, value] : meta.counters) numbers[key] = static_cast<double>(value);
  const std::string name = checkpoint_name(config_.filename, numbers, kPatternKey);
  const std::vector<Checkpoint> all = list();
  const bool ranked = ranks(meta, all), becomes_last = config_.save_last || !ranked;
  if (!ranked && !wants_last(meta)) return;

  const Path ranked_as = untaken_path(folder_ / name, Checkpoint{{}, meta}.step(), all), last_as = twin_of(ranked_as);
  const Unfinished written(ranked_as);
  written.fill(meta, write);
  if (ranked && becomes_last) {
    // The same files under two names take no more space. The name that is kept comes first: a run killed in between resumes from it.
    const Unfinished twin(last_as);
    twin.link(written.folder());
    publish(written.folder(), ranked_as);
    publish(twin.folder(), last_as);
  } else {
    publish(written.folder(), ranked ? ranked_as : last_as);
  }
  for (const Checkpoint& old : all)
    if (is_last(old.folder) && !(becomes_last && old.folder == last_as)) remove_checkpoint(old.folder);
  remove_worst();
}

}  // namespace kedge
