#pragma once
// A critic on a server, kedge's or a compatible one. Every call that changes it carries a key, so that it takes effect once,
// however often it is sent. Independent of HTTP.
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
  bool wants_rewards = true;  // the server must, or must not, also return rewards (combine_rm_and_critic_server)
  std::string combine_key = "remote_critic_rm.combine_rm_and_critic_server";
  std::optional<int64_t> pad_to_length = {};  // rows are sent this wide; none: as wide as the longest of a call
  // What the rows will be: the server's tokenizer must be this one, and its rows at least as long. Empty, 0: not checked.
  std::string tokenizer_fingerprint = {};
  int64_t longest_row = 0;
  std::string run_id = {};        // the run that owns the critic; empty: not given
  bool take_over = false;         // although it belongs to another run
  Group group = Group::single();  // of those who share the critic
};

// Not thread-safe, but for the futures. `client` must outlive it.
class RemoteCritic : public ValueSource {
 public:
  RemoteCritic(ModelClient& client, RemoteCriticOptions options);

  [[nodiscard]] std::future<RolloutValues> values(Rollouts rollouts) override;
  void train(CriticBatch batch) override;
  void finish_training() override;
  [[nodiscard]] std::shared_future<void> save(int64_t actor_step, const std::vector<int64_t>& resumable_steps) override;
  // A foreign server has no such call: it stays as it is, which is logged where that matters.
  std::optional<int64_t> restore(int64_t actor_step) override;

  // Waits for the server and checks it against the options: a UsageError if it returns rewards and should not, or the other way round, has
  // another tokenizer, or takes only shorter rows.
  void check_server();

 private:
  [[nodiscard]] RolloutValues read_values(const InferReply& reply, const Rollouts& rollouts) const;
  [[nodiscard]] bool leads() const { return options_.group.rank() == 0; }
  [[nodiscard]] Json change_parameters(const char* call);
  [[nodiscard]] std::string wait_for_training();
  void share_train_calls();
  void restore_here(int64_t actor_step);

  ModelClient& client_;
  RemoteCriticOptions options_;
  std::string name_;          // prefix of the keys of all its calls: unique to this process
  int64_t num_changes_ = 0;   // calls that carried a key
  int64_t train_calls_ = -1;  // that are in effect on the server when all that was sent is done; -1: not known
  int64_t epoch_ = -1;        // from the restore, for every later call; -1: none
  bool is_training_ = false;  // rank 0 started training, whose result has not been checked yet
  // Rank 0's.
  std::shared_future<InferReply> training_;
  std::shared_future<void> saving_;
  SerialWorker sender_;  // it may wait for the server; calls for values do not
};

}  // namespace kedge
