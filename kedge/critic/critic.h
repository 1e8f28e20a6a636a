#pragma once
// A critic that lives in a folder: every call that changes it takes effect exactly once, whenever the process dies, and a repeated call
// gets the first reply. Independent of requests and HTTP.
//
// In the process of the run that it trains, training is not journaled (CriticParts::journals): both die together, and the run restores the
// critic to its own save before anything else. A training call that fails ends both.
//
// Ranks may hold it together (CriticParts::group): each has one of these, and all make the same calls. Rank 0 keeps the folder, in which
// all write their parts of a save. Nothing is journaled then, either. On a server only rank 0 has one of these, which directs the others
// (CriticParts::ranks); its calls are journaled as those of one process.
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/critic/critic_model.h"
#include "kedge/critic/critic_ranks.h"
#include "kedge/critic/train_call.h"
#include "kedge/metrics/metrics.h"
#include "kedge/train/checkpoint/call_history.h"

namespace kedge {

// The result of a call.
struct CriticResult {
  std::optional<double> loss = {};  // of the last update; of training and restoring, where it is known
  int64_t train_calls = 0;          // in effect when it was done
  int64_t epoch = 0;                // of a restore only: sent with all later calls of its actor
};

// The caller, as far as it identifies itself.
struct CriticCaller {
  std::string run = {};               // the id of its run; empty: not given
  std::optional<int64_t> epoch = {};  // from its restore
  bool takes_over = false;            // restore: a critic that belongs to another run becomes this one's
};

struct CriticParts {
  Path folder;                                          // of the run; locked, by rank 0
  std::function<std::unique_ptr<CriticModel>()> start;  // the critic as it is before the first call
  MetricsLog& log;                                      // metrics of every update
  int64_t warn_after_calls = 1000;  // warn after this many calls without a save: the journal holds them, and a restart replays them all
  Group group = Group::single();    // the ranks that hold it together and all make its calls
  CriticRanks* ranks = nullptr;     // those that hold it with this one, which alone gets the calls; none: no others
  bool journals = true;             // false: its calls die with it, because its caller does, too; `group` of several: never
};

// Not thread-safe. `parts` must outlive it.
class Critic {
 public:
  // Resumes from the folder: the newest checkpoint, then a replay of every call after it; one without a journal waits for restore().
  // UsageError if those started from another critic than that of `start`.
  explicit Critic(CriticParts parts);

  // As of CriticModel.
  [[nodiscard]] Tensor values(std::span<const TokenIds> rows) const;
  [[nodiscard]] Tensor rewards(std::span<const TokenIds> rows);

  // A critic belongs to the run that restored or saved it last, if it gave one. RequestError (409) for a caller of another run, or of
  // none, and for one whose epoch is not that of the last restore: an actor that was replaced.
  //
  // Calls with the key of one of the last 64 calls get its reply. An empty key never matches.
  // On disk before it takes effect, and after an error nothing has changed, if it is journaled. RequestError (409) if the number of calls
  // in effect is not `after`: the call was meant for a critic that has since been restored.
  CriticResult train(const CriticBatch& batch, const std::string& key, std::optional<int64_t> after = {}, const CriticCaller& caller = {});
  // A checkpoint, labelled with the actor's step if there is one. The three newest are kept, and those labelled with one of
  // `resumable_steps`: the actor could resume from them, however many of its saves have failed since or the newest is damaged.
  CriticResult save(std::optional<int64_t> actor_step, const std::string& key, const CriticCaller& caller = {},
                    const std::vector<int64_t>& resumable_steps = {});
  // Restores everything to the save with that label; later training is set aside until the next save. 0 is the start if no
  // checkpoint has that label. RequestError (404) if there is none.
  CriticResult restore(int64_t actor_step, const std::string& key, const CriticCaller& caller = {});
  // For read-only callers.
  void check_epoch(std::optional<int64_t> epoch) const;

  [[nodiscard]] int64_t train_calls() const { return train_calls_; }  // in effect since the start
  [[nodiscard]] const std::string& owner() const { return owner_; }   // the id of a run; empty: none
  [[nodiscard]] const CriticModel& model() const { return *model_; }
  [[nodiscard]] bool is_of_ranks() const { return parts_.group.size() > 1; }  // do several make its calls?
  [[nodiscard]] bool keeps_folder() const { return history_.has_value(); }    // not on ranks above 0

 private:
  struct Remembered {
    std::string call, key;  // "train", and what the caller named it
    CriticResult result;
  };
  [[nodiscard]] const CriticResult* find(std::string_view call, const std::string& key) const;
  CriticResult remember(Remembered done);
  [[nodiscard]] static Json to_json(const Remembered& done);
  void remember_json(const Json& done);

  [[nodiscard]] bool journals() const { return parts_.journals && !is_of_ranks(); }
  void check_usable() const;
  void check_caller(const CriticCaller& caller) const;
  void start();
  void check_start(const std::string& print) const;
  void recover();
  static void check_sound(const Checkpoint& checkpoint, int64_t actor_step);
  void load(const Checkpoint* checkpoint);
  void load_state(const Path& state);
  void read_owner(const Json& json);
  CriticResult apply(const CriticBatch& batch, const std::string& key);
  void warn_of_journal();
  void write_save(const CheckpointMeta& meta, const Json& remark, const std::vector<int64_t>& resumable_steps);
  [[nodiscard]] std::optional<Checkpoint> find_save(int64_t actor_step) const;
  [[nodiscard]] CheckpointMeta meta(std::optional<int64_t> actor_step, const Remembered& save, const std::string& owner);
  [[nodiscard]] bool is_saved(int64_t actor_step) const;

  CriticParts parts_;
  std::optional<CallHistory> history_;  // rank 0's
  std::unique_ptr<CriticModel> model_;
  std::string start_print_;  // of the model before the first call
  int64_t train_calls_ = 0;
  std::string owner_;                // the id of its run
  int64_t epoch_ = 0;                // restores since the start
  std::optional<double> last_loss_;  // of the newest update; none before the first, and in folders that do not say it
  int64_t calls_since_save_ = 0;
  bool is_usable_ = false;             // its state is that of the folder
  std::deque<Remembered> remembered_;  // the newest last
};

}  // namespace kedge
