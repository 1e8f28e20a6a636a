#pragma once
// A critic on a server, ours or one that speaks as ours does. Every call that changes it carries a key, so that it takes effect once
// however often it must be sent. Knows no HTTP.
#include <cstdint>
#include <future>
#include <optional>
#include <string>

#include "kedge/core/serial_worker.h"
#include "kedge/critic/value_source.h"
#include "kedge/dist/group.h"
#include "kedge/net/model_client.h"

namespace kedge {

struct RemoteCriticOptions {
  std::string infer = "critic_infer", train = "critic_train", save = "critic_save", restore = "critic_restore";  // names of the models
  bool wants_rewards = true;  // the server must, or must not, give rewards too (combine_rm_and_critic_server)
  std::string combine_key = "remote_critic_rm.combine_rm_and_critic_server";
  std::optional<int64_t> pad_to_length = {};  // rows are sent this wide; none: as wide as the longest of a call
  // What the rows will be: the server's tokenizer must be this one, and its rows as long at least. Empty, 0: that is not held against it.
  std::string tokenizer_fingerprint = {};
  int64_t longest_row = 0;
  std::string run_id = {};        // whose critic it is to be; empty: not said
  bool take_over = false;         // although it belongs to another run
  Group group = Group::single();  // of those who share the critic
};

// Not thread-safe, but for the futures. `client` must outlive it.
class RemoteCritic : public ValueSource {
 public:
  RemoteCritic(ModelClient& client, RemoteCriticOptions options);

  // Waits for the server and holds it against the options: a UsageError where it gives rewards and should not, or the other way round, has
  // another tokenizer, or takes only shorter rows.
  void check_server();

  [[nodiscard]] std::future<RolloutValues> values(Rollouts rollouts) override;
  void train(CriticBatch batch) override;
  void finish_training() override;
  [[nodiscard]] std::shared_future<void> save(int64_t actor_step, int64_t resumable_step) override;
  // A server that is not ours has no such call: it stays as it is, which is told where that matters.
  std::optional<int64_t> restore(int64_t actor_step) override;
  [[nodiscard]] std::optional<double> last_loss() const override { return last_loss_; }

 private:
  [[nodiscard]] RolloutValues read_values(const InferReply& reply, const Rollouts& rollouts) const;
  [[nodiscard]] bool leads() const { return options_.group.rank() == 0; }
  [[nodiscard]] Json change_parameters(const char* call);
  [[nodiscard]] std::string wait_for_training();
  void share_train_calls();
  void restore_here(int64_t actor_step);

  ModelClient& client_;
  RemoteCriticOptions options_;
  std::string name_;          // begins the keys of all its calls: like no other process's
  int64_t num_changes_ = 0;   // calls that carried a key
  int64_t train_calls_ = -1;  // that are in effect on the server when all that was sent is done; -1: not known
  int64_t epoch_ = -1;        // that the restore gave, for every later call; -1: none
  bool is_training_ = false;  // rank 0 began to train, and nobody has asked yet how it went
  // Rank 0's.
  std::shared_future<InferReply> training_;
  std::shared_future<void> saving_;
  std::optional<double> last_loss_;
  SerialWorker sender_;  // it may wait for the server; those who ask for values do not
};

}  // namespace kedge
