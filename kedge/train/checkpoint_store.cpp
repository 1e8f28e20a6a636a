#include "kedge/train/checkpoint_store.h"

#include <algorithm>
#include <cmath>

#include "kedge/core/bit_hash.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/train/checkpoint_name.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMeta = "meta.json", kLast = "-last", kUnfinished = ".unfinished-", kRemoved = ".removed-";

bool is_last(const Path& checkpoint) { return checkpoint.filename().string().ends_with(kLast); }

// Every file below the folder but the record itself, by its path from there.
std::map<std::string, int64_t> file_sizes(const Path& folder) {
  std::map<std::string, int64_t> sizes;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).generic_string();
    if (entry.is_regular_file() && name != kMeta) sizes[name] = static_cast<int64_t>(entry.file_size());
  }
  return sizes;
}

std::string hash_of(const Path& file) { return bit_hash(MappedFile(file).text()); }

template <typename T>
Json object_of(const std::map<std::string, T>& values) {
  Json json{Json::Object{}};
  for (const auto& [key, value] : values) json.append(key, Json(value));
  return json;
}

std::string record_of(const CheckpointMeta& meta, const Path& folder) {
  const std::map<std::string, int64_t> files = file_sizes(folder);
  std::map<std::string, std::string> hashes;
  for (const auto& [name, size] : files) hashes[name] = hash_of(folder / name);
  Json json;
  json.set("counters", object_of(meta.counters));
  json.set("metrics", object_of(meta.metrics));
  json.set("record", meta.record);
  json.set("files", object_of(files));
  json.set("hashes", object_of(hashes));
  return json.dump(2) + "\n";
}

CheckpointMeta read_whole(const Path& folder) {
  const std::string where = (folder / kMeta).string();
  check(is_file(folder / kMeta), folder.string(), " has no ", kMeta);
  const Json json = Json::parse(read_text(folder / kMeta), where);
  const auto found = file_sizes(folder);
  for (const auto& [name, size] : json.at("files", where).as_object(where)) {
    const auto file = found.find(name);
    check(file != found.end(), folder.string(), ": ", name, " is missing");
    check(file->second == size.as_integer(where), folder.string(), ": ", name, " has ", file->second, " bytes instead of ",
          size.as_integer(where));
  }
  CheckpointMeta meta;
  for (const auto& [key, value] : json.at("counters", where).as_object(where)) meta.counters[key] = value.as_integer(where);
  for (const auto& [key, value] : json.at("metrics", where).as_object(where))
    meta.metrics[key] = value.is_null() ? std::nan("") : value.as_number(where);  // JSON has no NaN
  meta.record = json.at("record", where);
  return meta;
}

void sync_all(const Path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) sync_file(entry.path());
    if (entry.is_directory()) sync_folder(entry.path());
  }
  sync_folder(folder);
}

std::optional<double> number_of(const CheckpointMeta& meta, const std::string& key) {
  if (const auto found = meta.metrics.find(key); found != meta.metrics.end() && !std::isnan(found->second)) return found->second;
  if (const auto found = meta.counters.find(key); found != meta.counters.end()) return static_cast<double>(found->second);
  return std::nullopt;
}

Path hidden_beside(const Path& checkpoint, std::string_view prefix) {
  return checkpoint.parent_path() / (std::string(prefix) + checkpoint.filename().string());
}

// Gives a written folder its name; one of that name from an earlier try goes first.
void publish(const Path& written, const Path& checkpoint) {
  if (fs::exists(checkpoint)) remove_checkpoint(checkpoint);
  fs::rename(written, checkpoint);
  sync_folder(checkpoint.parent_path());
}

// The folder of a checkpoint to be, removed again unless it gets its name.
class Unfinished {
 public:
  explicit Unfinished(const Path& checkpoint) : folder_(hidden_beside(checkpoint, kUnfinished)) {
    fs::remove_all(folder_);
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
    sync_all(folder_);
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

Checkpoint read_checkpoint(const Path& folder) { return {folder, read_whole(folder)}; }

std::vector<std::string> changed_files(const Path& checkpoint) {
  const std::string where = (checkpoint / kMeta).string();
  const Json json = Json::parse(read_text(checkpoint / kMeta), where);
  std::vector<std::string> changed;
  if (json.find("hashes") == nullptr) return changed;
  for (const auto& [name, hash] : json.at("hashes", where).as_object(where))
    if (!is_file(checkpoint / name) || hash_of(checkpoint / name) != hash.as_text(where)) changed.push_back(name);
  return changed;
}

void open_checkpoints(const Path& folder) {
  make_folder(folder);
  std::vector<Path> leftovers;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kUnfinished) || name.starts_with(kRemoved)) leftovers.push_back(entry.path());
  }
  for (const Path& path : leftovers) {
    log_info("removing ", path.string(), ", which a run that ended early left behind");
    fs::remove_all(path);
  }
}

std::vector<Checkpoint> list_checkpoints(const Path& folder) {
  std::vector<Checkpoint> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory() || entry.path().filename().string().starts_with('.')) continue;
    try {
      found.push_back(read_checkpoint(entry.path()));
    } catch (const UsageError& error) {
      log_warn("not a whole checkpoint: ", error.what());
    }
  }
  // The last one stands behind its twin among the best.
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) {
    return std::pair(a.step(), is_last(a.folder)) < std::pair(b.step(), is_last(b.folder));
  });
  return found;
}

void write_checkpoint(const Path& checkpoint, const CheckpointMeta& meta, const std::function<void(const Path& folder)>& write) {
  const Unfinished written(checkpoint);
  written.fill(meta, write);
  publish(written.folder(), checkpoint);
}

// Out of sight first, so that a half removed one is never taken for a checkpoint.
void remove_checkpoint(const Path& checkpoint) {
  const Path hidden = hidden_beside(checkpoint, kRemoved);
  fs::rename(checkpoint, hidden);
  sync_folder(checkpoint.parent_path());
  fs::remove_all(hidden);
}

CheckpointStore::CheckpointStore(Path folder, CheckpointConfig config) : folder_(std::move(folder)), config_(std::move(config)) {
  static_cast<void>(checkpoint_name(config_.filename, {}, "filename"));
  open_checkpoints(folder_);
}

std::optional<Checkpoint> CheckpointStore::newest() const {
  std::vector<Checkpoint> all = list();
  if (all.empty()) return std::nullopt;
  return std::move(all.back());
}

std::optional<Checkpoint> CheckpointStore::best() const {
  std::optional<Checkpoint> best;
  for (Checkpoint& one : list()) {
    const std::optional<double> number = number_of(one.meta, config_.monitor);
    if (number && (!best || is_better(*number, *number_of(best->meta, config_.monitor)))) best = std::move(one);
  }
  return best;
}

bool CheckpointStore::ranks(const CheckpointMeta& meta, const std::vector<Checkpoint>& best) const {
  if (config_.save_top_k == 0) return false;
  const std::optional<double> mine = number_of(meta, config_.monitor);
  if (!mine) {
    log_warn("a checkpoint is not ranked, because ", config_.monitor, " is not known at step ", Checkpoint{{}, meta}.step());
    return false;
  }
  if (config_.save_top_k < 0 || static_cast<int64_t>(best.size()) < config_.save_top_k) return true;
  return std::any_of(best.begin(), best.end(), [&](const Checkpoint& other) {
    const std::optional<double> theirs = number_of(other.meta, config_.monitor);
    return !theirs || is_better(*mine, *theirs);
  });
}

void CheckpointStore::remove_worst(const std::string& saved) const {
  if (config_.save_top_k < 0) return;
  std::vector<Checkpoint> best;
  for (Checkpoint& one : list())
    if (!is_last(one.folder)) best.push_back(std::move(one));
  while (static_cast<int64_t>(best.size()) > config_.save_top_k) {
    // Of equals the oldest goes; never the one just saved, which ranks.
    auto worst = best.end();
    for (auto one = best.begin(); one != best.end(); ++one) {
      if (one->folder.filename() == saved) continue;
      const double number = number_of(one->meta, config_.monitor).value_or(std::nan(""));
      const double most = worst == best.end() ? 0 : number_of(worst->meta, config_.monitor).value_or(std::nan(""));
      if (worst == best.end() || (!std::isnan(most) && (std::isnan(number) || is_better(most, number)))) worst = one;
    }
    if (worst == best.end()) return;
    remove_checkpoint(worst->folder);
    best.erase(worst);
  }
}

void CheckpointStore::save(const CheckpointMeta& meta, const std::function<void(const Path& folder)>& write) {
  std::map<std::string, double> numbers = meta.metrics;
  for (const auto& [key, value] : meta.counters) numbers[key] = static_cast<double>(value);
  const std::string name = checkpoint_name(config_.filename, numbers, "filename");
  std::vector<Checkpoint> best, last;
  for (Checkpoint& one : list()) (is_last(one.folder) ? last : best).push_back(std::move(one));
  const bool ranked = ranks(meta, best);
  if (!ranked && !config_.save_last) return;

  const Path ranked_as = folder_ / name, last_as = folder_ / (name + std::string(kLast));
  const Unfinished written(ranked_as);
  written.fill(meta, write);
  if (ranked && config_.save_last) {
    // The same files under two names take no more room.
    const Unfinished twin(last_as);
    fs::copy(written.folder(), twin.folder(), fs::copy_options::recursive | fs::copy_options::create_hard_links);
    sync_all(twin.folder());
    publish(twin.folder(), last_as);
  }
  publish(written.folder(), ranked ? ranked_as : last_as);
  if (config_.save_last)
    for (const Checkpoint& old : last)
      if (old.folder != last_as) remove_checkpoint(old.folder);
  if (ranked) remove_worst(name);
}

}  // namespace kedge
