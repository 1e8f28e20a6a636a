#pragma once
// Rewards from a reward model called by the servers' protocol, on a server or in this process: decides whether the model
// gets the policy's ids or text. Independent of HTTP.
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/serial_worker.h"
#include "kedge/net/model_client.h"
#include "kedge/net/served_model.h"
#include "kedge/net/server_pool.h"
#include "kedge/reward/reward.h"
#include "kedge/reward/reward_config.h"

namespace kedge {

// A model wherever it is. Both functions may be called from several threads.
struct ModelCaller {
  std::string name;                           // for people: "reward_model of the reward server rm01:5555"
  std::function<ModelSignature()> signature;  // may wait for a server
  std::function<std::future<InferReply>(InferRequest request)> infer;
  size_t num_servers = 1;  // that share the calls
};

// `client` must outlive it.
[[nodiscard]] ModelCaller remote_caller(ModelClient& client, const std::string& model);
// `pool` must outlive it.
[[nodiscard]] ModelCaller pool_caller(ServerPool& pool);
// Runs calls one after another on its own thread.
[[nodiscard]] ModelCaller local_caller(ServedModel model, const std::string& name);

struct ModelRewardOptions {
  RewardInput send = RewardInput::automatic;
  // What the policy's ids mean: of its tokenizer, and of the chat template that rendered its prompts, empty if there is none.
  std::string tokenizer_fingerprint = {}, chat_template_fingerprint = {};
  std::optional<int64_t> pad_to_length = {};  // rows of ids are padded with 0 to this width; none: as wide as the longest of a call
};

// The model's input for one rollout.
[[nodiscard]] RewardInput choose_input(const ModelSignature& signature, const ModelRewardOptions& options, const Rollout& rollout);

// The conversation of which the rollout is the last turn; null if its prompt was not one.
[[nodiscard]] Json conversation_of(const Rollout& rollout);

// Thread-safe. A row that the model rejects fails alone; a model that cannot be reached ends the run.
class ModelReward : public RewardSource {
 public:
  ModelReward(ModelCaller caller, ModelRewardOptions options);

  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override;

 private:
  // Rows that are sent in one way, and their places among those that were submitted.
  struct Part {
    RewardInput input = RewardInput::tokens;
    std::vector<size_t> places = {};
    Rollouts rollouts = {};
  };
  [[nodiscard]] std::vector<Part> parts_of(const Rollouts& rollouts);
  [[nodiscard]] std::vector<Part> shares_of(const Part& part) const;
  [[nodiscard]] InferRequest request_of(const Part& part) const;
  [[nodiscard]] std::vector<RowReward> rewards_of(const Part& part, std::future<InferReply> reply) const;
  void warn_of_unknown_tokenizer(const ModelSignature& signature, RewardInput input, const Rollout& rollout);

  ModelCaller caller_;
  ModelRewardOptions options_;
  std::once_flag warned_;
  SerialWorker sender_;  // last: its tasks use all of the above. It may wait for the server; callers of submit() do not
};

}  // namespace kedge
