#include "kedge/train/checkpoint/call_history.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/train/checkpoint/checkpoint_name.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

// The first byte of a record is its kind.
constexpr char kOpening = 'o', kCall = 'c', kTakenBack = 'x';
constexpr const char *kNumber = "history", *kBefore = "history_before";  // counters of a checkpoint
constexpr std::string_view kNeeded = "history_needed";                   // begins the names of those that hold the numbers of needed ones

int64_t counter_of(const Checkpoint& checkpoint, const char* key) {
  const auto found = checkpoint.meta.counters.find(key);
  return found == checkpoint.meta.counters.end() ? 0 : found->second;
}

int64_t number_of(const Checkpoint& checkpoint) { return counter_of(checkpoint, kNumber); }

std::set<int64_t> needed_numbers(const Checkpoint& checkpoint) {
  std::set<int64_t> numbers;
  for (const auto& [key, number] : checkpoint.meta.counters)
    if (key.starts_with(kNeeded)) numbers.insert(number);
  return numbers;
}

// Into a folder of the same file system, in place of what has that name there.
void move_into(const Path& path, const Path& folder) {
  make_folder(folder);
  const Path to = folder / path.filename();
  fs::remove_all(to);
  fs::rename(path, to);
  sync_folder(folder);
}

}  // namespace

CallHistory::CallHistory(const Path& folder, std::string pattern, size_t num_kept)
    : checkpoints_(folder / "checkpoints"),
      journals_(folder / "journals"),
      set_aside_(folder / "set_aside"),
      pattern_(std::move(pattern)),
      num_kept_(num_kept) {
  static_cast<void>(checkpoint_name(pattern_, {}, "filename"));
  open_checkpoints(checkpoints_);
  make_folder(journals_);
  find_journals();
  const std::vector<Checkpoint> saved = checkpoints();
  const int64_t newest = saved.empty() ? 0 : number_of(saved.back());
  if (numbers_.empty() || newest > numbers_.back()) {
    // At the start, or killed between a save and its journal.
    begin_journal(newest, {newest, saved.empty() ? 0 : counter_of(saved.back(), kBefore), Json()});
  } else {
    open_newest();
  }
  set_aside_void();
  prune();
}

Path CallHistory::journal_path(int64_t number) const { return journals_ / str("journal-", number); }

// A record cut off by a crash was never acknowledged, but damage looks the same: a copy of the journal is kept.
void CallHistory::open_newest() {
  current_number_ = numbers_.back();
  const Path path = journal_path(current_number_);
  const auto size = fs::file_size(path);
  if (size > read_journal(MappedFile(path).text()).size) {
    const Path folder = set_aside_ / "journals";
    make_folder(folder);
    fs::copy_file(path, folder / (path.filename().string() + "-damaged"), fs::copy_options::overwrite_existing);
    log_warn(path.string(), ": its end cannot be read; a copy of the original is in ", folder.string(), " until the next save");
  }
  current_ = std::make_unique<Journal>(path);
}

// One without its first record was killed before it began, or is damaged.
void CallHistory::find_journals() {
  for (const auto& entry : fs::directory_iterator(journals_)) {
    const std::string name = entry.path().filename().string();
    int64_t number = -1;
    const size_t digits = name.find('-') + 1;
    const auto [end, error] = std::from_chars(name.data() + digits, name.data() + name.size(), number);
    if (!name.starts_with("journal-") || error != std::errc() || end != name.data() + name.size()) continue;
    numbers_.push_back(number);
  }
  std::sort(numbers_.begin(), numbers_.end());
  while (!numbers_.empty() && read_journal(MappedFile(journal_path(numbers_.back())).text()).records.empty()) {
    const Path path = journal_path(numbers_.back());
    if (fs::file_size(path) == 0) {
      fs::remove(path);
    } else {
      log_warn(path.string(), ": its first record cannot be read, after a crash or a disk error; the journal is in ",
               (set_aside_ / "journals").string(), " until the next save");
      move_into(path, set_aside_ / "journals");
    }
    numbers_.pop_back();
  }
}

CallHistory::Opening CallHistory::opening_of(int64_t number) const {
  const std::string where = journal_path(number).string();
  const MappedFile file(where);
  const JournalRecords found = read_journal(file.text());
  if (found.records.empty() || found.records[0].empty() || found.records[0][0] != kOpening)
    throw Error(str(where, ": its first record is damaged"));
  const Json json = Json::parse(found.records[0].substr(1), where);
  return {json.at("checkpoint", where).as_integer(where), json.at("before", where).as_integer(where), json.at("remark", where)};
}

void CallHistory::begin_journal(int64_t number, const Opening& opening) {
  auto journal = std::make_unique<Journal>(journal_path(number));
  Json json;
  json.set("checkpoint", opening.checkpoint);
  json.set("before", opening.before);
  json.set("remark", opening.remark);
  journal->append(kOpening + json.dump());
  current_ = std::move(journal);
  current_number_ = number;
  numbers_.push_back(number);
}

void CallHistory::remove_journals(int64_t begin, int64_t end) {
  std::erase_if(numbers_, [&](int64_t number) {
    if (number < begin || number >= end) return false;
    fs::remove(journal_path(number));  // where it was not set aside
    return true;
  });
  sync_folder(journals_);
}

// Leftovers of a restore: checkpoints and journals between the restored one and its own journal. If something is there
// already, the journal of an attempt without a save is not kept: a caller that fails and restores repeatedly must not
// fill the disk.
void CallHistory::set_aside_void() {
  const Opening opening = opening_of(current_number_);
  const bool is_empty = !is_folder(set_aside_);
  std::set<int64_t> saved;
  for (const Checkpoint& one : list_checkpoints(checkpoints_)) {
    saved.insert(number_of(one));
    if (number_of(one) > opening.checkpoint && number_of(one) < current_number_) move_into(one.folder, set_aside_ / "checkpoints");
  }
  for (const int64_t number : numbers_)
    if (number >= opening.checkpoint && number < current_number_ && (is_empty || saved.contains(number)))
      move_into(journal_path(number), set_aside_ / "journals");
  sync_folder(checkpoints_);
  remove_journals(opening.checkpoint, current_number_);
}

void CallHistory::clear_set_aside() {
  std::error_code error;
  fs::remove_all(set_aside_, error);
  if (error) log_warn(set_aside_.string(), ": cannot be removed: ", error.message());
}

// The newest ones' journals stay too, in case a newer checkpoint is damaged; those of an older one that is needed do not: with it they
// would grow without limit. What cannot be removed takes up space until the next attempt and is not a failed save.
void CallHistory::prune() {
  try {
    const std::vector<Checkpoint> saved = checkpoints();
    if (saved.size() < num_kept_) return;
    const size_t num_old = saved.size() - num_kept_;
    const std::set<int64_t> needed = needed_numbers(saved.back());
    for (size_t i = 0; i < num_old; ++i)
      if (!needed.contains(number_of(saved[i]))) remove_checkpoint(saved[i].folder);
    remove_journals(0, number_of(saved[num_old]));
  } catch (const std::runtime_error& error) {
    log_warn("files that are no longer needed take up space until the next save: ", error.what());
  }
}

std::vector<Checkpoint> CallHistory::checkpoints() const {
  std::vector<Checkpoint> saved = list_checkpoints(checkpoints_);
  std::sort(saved.begin(), saved.end(), [](const Checkpoint& a, const Checkpoint& b) { return number_of(a) < number_of(b); });
  return saved;
}

void CallHistory::tell(const HistoryListener& listener) { tell_journal(current_number_, listener); }

void CallHistory::tell_checkpoint(const Opening& opening, const HistoryListener& listener) {
  if (opening.checkpoint == 0) return listener.load(nullptr);
  for (const Checkpoint& one : checkpoints())
    if (number_of(one) == opening.checkpoint && is_sound(one)) return listener.load(&one);
  if (!is_file(journal_path(opening.before)) || opening.before >= opening.checkpoint)
    throw Error(str(checkpoints_.string(), ": a checkpoint is damaged or missing, and so is the journal of the calls that led to it"));
  log_warn(checkpoints_.string(), ": a checkpoint is damaged or missing; all calls since the one before it are replayed");
  tell_journal(opening.before, listener);
}

void CallHistory::tell_journal(int64_t number, const HistoryListener& listener) {
  const Opening opening = opening_of(number);
  tell_checkpoint(opening, listener);
  if (!opening.remark.is_null()) listener.remark(opening.remark);
  const MappedFile file(journal_path(number));
  const auto [records, size] = read_journal(file.text());
  if (size != file.size()) throw Error(str(file.path().string(), ": damaged after record ", records.size()));
  for (size_t i = 1; i < records.size(); ++i) {
    const bool taken_back = i + 1 < records.size() && records[i + 1].front() == kTakenBack;
    if (records[i].front() == kCall && !taken_back) listener.call(records[i].substr(1));
  }
}

void CallHistory::append(std::string_view call) {
  remove_stray();
  current_->append(kCall + std::string(call));
}

void CallHistory::take_back() { current_->append(std::string(1, kTakenBack)); }

// Without a call in between, two checkpoints have the same step and would have the same name.
Path CallHistory::free_name(const CheckpointMeta& meta) const {
  std::map<std::string, double> numbers = meta.metrics;
  for (const auto& [key, value] : meta.counters) numbers[key] = static_cast<double>(value);
  const std::string name = checkpoint_name(pattern_, numbers, "filename");
  Path path = checkpoints_ / (name + "-last");
  for (int64_t i = 1; fs::exists(path); ++i) path = checkpoints_ / str(name, "-v", i, "-last");
  return path;
}

void CallHistory::save(CheckpointMeta meta, const Json& remark, const std::function<void(const Path& folder)>& write,
                       const std::vector<Checkpoint>& needed) {
  remove_stray();
  const int64_t number = current_number_ + 1, before = current_number_;
  meta.counters[kNumber] = number;
  meta.counters[kBefore] = before;
  for (const Checkpoint& one : needed) meta.counters[str(kNeeded, "_", number_of(one))] = number_of(one);
  stray_ = free_name(meta);
  try {
    write_checkpoint(stray_, meta, write);
    begin_journal(number, {number, before, remark});
  } catch (const std::exception&) {
    try {
      remove_stray();
    } catch (const std::exception& error) {
      log_error("no call is accepted until a failed save can be removed: ", error.what());
    }
    throw;
  }
  stray_.clear();
  prune();
  clear_set_aside();
}

// A checkpoint whose journal never began would be taken for the newest by the next start, and calls that still go into the older journal
// would be lost after it.
void CallHistory::remove_stray() {
  if (stray_.empty()) return;
  if (fs::exists(stray_)) {
    remove_checkpoint(stray_);
  } else {
    sync_folder(checkpoints_);
  }
  stray_.clear();
}

void CallHistory::go_back(const Checkpoint* checkpoint, const Json& remark) {
  remove_stray();
  Opening opening{0, 0, remark};
  if (checkpoint != nullptr) opening = {number_of(*checkpoint), counter_of(*checkpoint, kBefore), remark};
  begin_journal(current_number_ + 1, opening);
  set_aside_void();
}

bool has_history(const Path& folder) { return is_folder(folder / "journals") && !fs::is_empty(folder / "journals"); }

void begin_history(const Path& folder, const std::vector<Checkpoint>& saved) {
  ensure(!has_history(folder), folder.string(), " holds a history");
  fs::remove_all(folder / "checkpoints");
  open_checkpoints(folder / "checkpoints");
  int64_t number = 0;
  for (const Checkpoint& one : saved) {
    CheckpointMeta meta = one.meta;
    meta.counters[kNumber] = ++number;
    meta.counters[kBefore] = 0;  // the calls that led to it are the other's
    std::erase_if(meta.counters, [](const auto& counter) { return counter.first.starts_with(kNeeded); });
    write_checkpoint(folder / "checkpoints" / one.folder.filename(), meta, [&](const Path& to) {
      for (const auto& entry : fs::directory_iterator(one.folder))
        if (entry.path().filename() != "meta.json") fs::copy(entry.path(), to / entry.path().filename(), fs::copy_options::recursive);
    });
  }
}

}  // namespace kedge
