#pragma once
// A critic as served: values (and rewards), training, saving, restoring. Independent of HTTP.
#include <string>
#include <vector>

#include "kedge/critic/critic.h"
#include "kedge/net/served_model.h"
#include "kedge/reward/reward_service.h"
#include "kedge/reward/served_rows.h"

namespace kedge {

// All must outlive what is created from them.
struct CriticServiceParts {
  Critic& critic;
  const ServedRows& rows;
  ServedBatches batches = {};
  int64_t max_length = 4096;  // encoder_seq_length: the widest rows to train on
};

// critic_infer (with rewards if the critic returns them), critic_train, critic_save and critic_restore. Every reply has the parameter
// train_calls: how many are in effect.
//
// Parameters of requests: request_key (a call that changes the critic, repeated with the same key, gets the first reply);
// actor_step of critic_save, the label; min_train_calls of critic_infer, which waits until that many are in effect; run_id of those that
// change the critic, whose it is, and take_over of critic_restore; epoch of all, as critic_restore's reply gave it.
[[nodiscard]] std::vector<ServedModel> make_critic_service(const CriticServiceParts& parts);

}  // namespace kedge
