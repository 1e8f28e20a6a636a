#include "kedge/train/call_history.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/train/checkpoint_name.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

// The first byte of a record says what it is.
constexpr char kOpening = 'o', kCall = 'c', kTakenBack = 'x';
constexpr const char *kNumber = "history", *kBefore = "history_before";  // counters of a checkpoint

int64_t counter_of(const Checkpoint& checkpoint, const char* key) {
  const auto found = checkpoint.meta.counters.find(key);
  return found == checkpoint.meta.counters.end() ? 0 : found->second;
}

int64_t number_of(const Checkpoint& checkpoint) { return counter_of(checkpoint, kNumber); }

}  // namespace

CallHistory::CallHistory(const Path& folder, std::string pattern, size_t num_kept)
    : checkpoints_(folder / "checkpoints"), journals_(folder / "journals"), pattern_(std::move(pattern)), num_kept_(num_kept) {
  static_cast<void>(checkpoint_name(pattern_, {}, "filename"));
  open_checkpoints(checkpoints_);
  make_folder(journals_);
  find_journals();
  const std::vector<Checkpoint> saved = checkpoints();
  const int64_t newest = saved.empty() ? 0 : number_of(saved.back());
  if (numbers_.empty() || newest > numbers_.back()) {
    // At the very beginning, or killed between a save and its journal.
    begin_journal(newest, {newest, saved.empty() ? 0 : counter_of(saved.back(), kBefore), Json()});
  } else {
    current_number_ = numbers_.back();
    current_ = std::make_unique<Journal>(journal_path(current_number_));
  }
  remove_void();
  prune();
}

Path CallHistory::journal_path(int64_t number) const { return journals_ / str("journal-", number); }

// One without its first record was killed before it began.
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
    fs::remove(journal_path(numbers_.back()));
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
    fs::remove(journal_path(number));
    return true;
  });
  sync_folder(journals_);
}

// What a return left behind: checkpoints and journals between the one it went back to and its own journal.
void CallHistory::remove_void() {
  const Opening opening = opening_of(current_number_);
  for (const Checkpoint& one : list_checkpoints(checkpoints_))
    if (number_of(one) > opening.checkpoint && number_of(one) < current_number_) remove_checkpoint(one.folder);
  remove_journals(opening.checkpoint, current_number_);
}

// A journal older than every checkpoint is needed by none; the others stay, in case a newer checkpoint is damaged.
void CallHistory::prune() {
  std::vector<Checkpoint> saved = checkpoints();
  while (saved.size() > num_kept_) {
    remove_checkpoint(saved.front().folder);
    saved.erase(saved.begin());
  }
  if (saved.size() == num_kept_) remove_journals(0, number_of(saved.front()));
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
  log_warn(checkpoints_.string(), ": a checkpoint is damaged or missing; all calls since the one before it are made again");
  tell_journal(opening.before, listener);
}

void CallHistory::tell_journal(int64_t number, const HistoryListener& listener) {
  const Opening opening = opening_of(number);
  tell_checkpoint(opening, listener);
  if (!opening.remark.is_null()) listener.remark(opening.remark);
  const MappedFile file(journal_path(number));
  const auto [records, size] = read_journal(file.text());
  if (size != file.size()) throw Error(str(file.path().string(), ": damaged behind record ", records.size()));
  for (size_t i = 1; i < records.size(); ++i) {
    const bool taken_back = i + 1 < records.size() && records[i + 1].front() == kTakenBack;
    if (records[i].front() == kCall && !taken_back) listener.call(records[i].substr(1));
  }
}

void CallHistory::append(std::string_view call) { current_->append(kCall + std::string(call)); }

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

void CallHistory::save(CheckpointMeta meta, const Json& remark, const std::function<void(const Path& folder)>& write) {
  const int64_t number = current_number_ + 1, before = current_number_;
  meta.counters[kNumber] = number;
  meta.counters[kBefore] = before;
  const Path checkpoint = free_name(meta);
  write_checkpoint(checkpoint, meta, write);
  try {
    begin_journal(number, {number, before, remark});
  } catch (const Error&) {
    remove_checkpoint(checkpoint);  // or calls that still go into the older journal would be lost behind it
    throw;
  }
  prune();
}

void CallHistory::go_back(const Checkpoint* checkpoint, const Json& remark) {
  Opening opening{0, 0, remark};
  if (checkpoint != nullptr) opening = {number_of(*checkpoint), counter_of(*checkpoint, kBefore), remark};
  begin_journal(current_number_ + 1, opening);
  remove_void();
}

}  // namespace kedge
