#pragma once
// The history of an object that is changed by calls, so that no call is lost or applied twice whenever the process dies: checkpoints, and
// after each a journal of later calls. Independent of tensors and of what the calls mean.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/train/checkpoint/checkpoint_store.h"
#include "kedge/train/checkpoint/journal.h"

namespace kedge {

// How a history is replayed from the start: once `load`, then remarks and calls in their order.
struct HistoryListener {
  std::function<void(const Checkpoint* checkpoint)> load;  // null: the state before the first call
  std::function<void(const Json& remark)> remark;          // from a save or a restore
  std::function<void(std::string_view call)> call;
};

// Numbers count saves and restores together. Checkpoint N was saved when journal N began; a journal's first record says which checkpoint it
// continues, so that a restore of an older one is a new journal, which exists or not. Not thread-safe; one per folder.
class CallHistory {
 public:
  // Below `folder`, checkpoints/ and journals/ are created if missing. `pattern` names checkpoints by their counters:
  // "critic-{step}"; followed by -last.
  //
  // set_aside/ holds, in the same two folders, what a restore discarded and unreadable parts of journals, until the next save.
  CallHistory(const Path& folder, std::string pattern, size_t num_kept = 2);

  // Replays the history to the state on disk. An Error if too much is damaged.
  void tell(const HistoryListener& listener);

  // On disk when it returns.
  void append(std::string_view call);
  // The newest call had no effect: it is no longer replayed.
  void take_back();

  // Saves a checkpoint, with its remark for replays. Older ones than the newest `num_kept` are removed, with their journals; of those
  // that are `needed` (some of checkpoints()) only the journals. They stay at least until the next save. After an error everything is as
  // before.
  void save(CheckpointMeta meta, const Json& remark, const std::function<void(const Path& folder)>& write,
            const std::vector<Checkpoint>& needed = {});
  // Goes back to this checkpoint (null: to the start); everything later is set aside until the next save.
  void go_back(const Checkpoint* checkpoint, const Json& remark);

  // Those that can be restored, the oldest first.
  [[nodiscard]] std::vector<Checkpoint> checkpoints() const;

 private:
  // The first record of a journal.
  struct Opening {
    int64_t checkpoint = 0;  // that it continues; 0: the start
    int64_t before = 0;      // the journal at whose end that checkpoint was saved
    Json remark;
  };
  [[nodiscard]] Path journal_path(int64_t number) const;
  [[nodiscard]] Opening opening_of(int64_t number) const;
  void find_journals();
  void begin_journal(int64_t number, const Opening& opening);
  void open_newest();
  void remove_journals(int64_t begin, int64_t end);
  void set_aside_void();
  void clear_set_aside();
  void prune();
  void remove_stray();
  void tell_checkpoint(const Opening& opening, const HistoryListener& listener);
  void tell_journal(int64_t number, const HistoryListener& listener);
  [[nodiscard]] Path free_name(const CheckpointMeta& meta) const;

  Path checkpoints_, journals_, set_aside_;
  std::string pattern_;
  size_t num_kept_;
  std::vector<int64_t> numbers_;  // of existing journals, ascending
  std::unique_ptr<Journal> current_;
  int64_t current_number_ = 0;
  Path stray_;  // the checkpoint of a running save, or of one that failed and could not be removed yet; mostly empty
};

// Does the folder hold a history?
[[nodiscard]] bool has_history(const Path& folder);
// A history that starts with copies of another's checkpoints, the oldest first, and no call. The folder must not hold one; leftovers of a
// process killed in this function are removed first.
void begin_history(const Path& folder, const std::vector<Checkpoint>& saved);

}  // namespace kedge
