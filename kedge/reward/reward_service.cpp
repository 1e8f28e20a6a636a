#include "kedge/reward/reward_service.h"

#include <utility>

namespace kedge {

ServedModel served_rows_model(const std::string& name, const ServedRows& rows, const ServedBatches& batches) {
  ServedModel model;
  model.signature.name = name;
  model.signature.max_batch_size = kServedBatchSize;
  model.signature.inputs = rows.inputs();
  model.signature.preferred_batch_sizes = batches.preferred_sizes;
  model.signature.max_queue_delay_us = batches.max_queue_delay_us;
  model.signature.parameters = rows.parameters();
  // Everything that can be wrong with rows shows when they are read, and reading them is cheap compared with the network.
  model.check = [&rows](const InferRequest& request) { static_cast<void>(rows.read(request.inputs)); };
  return model;
}

WireTensor rewards_tensor(const Tensor& rewards) {
  return fp32_tensor("rewards", rewards.sizes().vec(), {rewards.const_data_ptr<float>(), static_cast<size_t>(rewards.numel())});
}

ServedModel make_reward_service(const std::string& name, const ServedRows& rows, const RewardScorer& scorer, const ServedBatches& batches,
                                RowScores scores) {
  ServedModel model = served_rows_model(name, rows, batches);
  model.signature.outputs = {{"rewards", WireType::fp32, {scorer.num_rewards()}}};
  if (!scores) scores = [&scorer](std::span<const TokenIds> own) { return scorer.score(own); };
  model.run = [&rows, scores = std::move(scores)](const std::vector<WireTensor>& inputs, const Json&) {
    return ServedResult{{rewards_tensor(scores(rows.read(inputs).rows))}};
  };
  return model;
}

}  // namespace kedge
