#pragma once
// What was done to something that is changed by calls, so that no call is lost or done twice whenever the process dies: checkpoints, and
// behind each a journal of the calls since. Knows no tensors and not what the calls mean.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/train/checkpoint/checkpoint_store.h"
#include "kedge/train/checkpoint/journal.h"

namespace kedge {

// How a history is told from the beginning: once `load`, then remarks and calls in their order.
struct HistoryListener {
  std::function<void(const Checkpoint* checkpoint)> load;  // null: how it was before the first call
  std::function<void(const Json& remark)> remark;          // that a save or a return left
  std::function<void(std::string_view call)> call;
};

// Numbers count saves and returns together. Checkpoint N was saved when journal N began; a journal's first record says which checkpoint it
// continues, so that a return to an older one is a new journal, there or not there. Not thread-safe; one for a folder.
class CallHistory {
 public:
  // Below `folder`, checkpoints/ and journals/ are made where they are not there. `pattern` names checkpoints by their counters:
  // "critic-{step}"; -last comes behind it.
  //
  // set_aside/ holds, in the same two folders, what a return discarded and what of a journal could not be read, until the next save.
  CallHistory(const Path& folder, std::string pattern, size_t num_kept = 2);

  // Tells how to get to where it stands on disk. An Error where too much is damaged.
  void tell(const HistoryListener& listener);

  // On disk when it returns.
  void append(std::string_view call);
  // The newest call had no effect: it is not told any more.
  void take_back();

  // A checkpoint of now, with what is to be remarked when it is told. Older ones than the newest `num_kept` go, with their journals, but
  // for `needed` (one of checkpoints(), or null), which stays at least until the next save. After an error everything is as before.
  void save(CheckpointMeta meta, const Json& remark, const std::function<void(const Path& folder)>& write,
            const Checkpoint* needed = nullptr);
  // It stands again where this checkpoint was saved (null: at the beginning); all that came later is set aside until the next save.
  void go_back(const Checkpoint* checkpoint, const Json& remark);

  // Those that can be gone back to, the oldest first.
  [[nodiscard]] std::vector<Checkpoint> checkpoints() const;

 private:
  // The first record of a journal.
  struct Opening {
    int64_t checkpoint = 0;  // that it continues; 0: the beginning
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
  std::vector<int64_t> numbers_;  // of journals that are there, ascending
  std::unique_ptr<Journal> current_;
  int64_t current_number_ = 0;
  Path stray_;  // the checkpoint of a save that is under way, or that failed and could not be removed yet; mostly empty
};

// Does the folder hold a history?
[[nodiscard]] bool has_history(const Path& folder);
// A history that begins with copies of another's checkpoints, the oldest first, and no call. The folder must not hold one; what a process
// that was killed in here left goes first.
void begin_history(const Path& folder, const std::vector<Checkpoint>& saved);

}  // namespace kedge
