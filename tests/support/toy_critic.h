#pragma once
// A tiny critic over the folder of a tiny reward model, and rows to train it on.
#include <memory>
#include <vector>

#include "kedge/core/autograd.h"
#include "kedge/critic/critic.h"
#include "kedge/critic/critic_model.h"
#include "kedge/metrics/jsonl.h"

#include "tests/support/judge_folder.h"

namespace kedge::testing {

inline CriticOptions toy_critic_options() {
  CriticOptions options;
  options.micro_batch_size = 2;
  options.global_batch_size = 4;
  options.forward_tokens = 20;
  options.optim.lr = 1e-2;
  options.optim.sched = {.name = ScheduleKind::constant, .warmup_steps = 2};
  return options;
}

inline std::unique_ptr<CriticModel> toy_critic(const JudgeFolder& folder, const CriticOptions& options = toy_critic_options()) {
  return std::make_unique<CriticModel>(folder.load(true), options);
}

inline Tensor weights_of(const CriticModel& critic) { return critic.model().parameters().flat_master(); }

// A critic in a folder, with a log beside it.
struct CriticToy {
  explicit CriticToy(const JudgeFolder& judge, const Path& folder, const CriticOptions& options = toy_critic_options()) {
    log.add<JsonlSink>(folder, [] { return 0.0; });
    critic = std::make_unique<Critic>(CriticParts{folder, [&judge, options] { return toy_critic(judge, options); }, log});
  }
  Critic* operator->() const { return critic.get(); }
  [[nodiscard]] Tensor weights() const { return weights_of(critic->model()); }

  MetricsLog log{true};
  std::unique_ptr<Critic> critic;
};

// Those of a critic with the rewards of the folder.
inline CriticOptions toy_rewarding_options(ReferenceKind reward_model = ReferenceKind::resident) {
  CriticOptions options = toy_critic_options();
  options.rewards.emplace();
  options.rewards->max_tokens = 20;
  options.reward_model = reward_model;
  return options;
}

// Trains adapters, and with them a head.
inline std::unique_ptr<CriticModel> toy_adapted_critic(const JudgeFolder& folder, const CriticOptions& options,
                                                       StorageOptions storage = {}) {
  storage.trainable = false;
  auto model = folder.load(storage);
  model->add_adapters({}, true);
  model->adapters()->initialise(3);
  return std::make_unique<CriticModel>(std::move(model), options);
}

// Gives every token this value, whatever it reads, until it is trained: only the bias of its head is not 0.
inline std::unique_ptr<CriticModel> constant_critic(double value, const CriticOptions& options) {
  auto model = byte_model({HeadKind::score, 1, true});
  {
    const NoGrad no_grad;
    model->score_head().weight.zero_();
    model->score_head().bias.fill_(value);
  }
  return std::make_unique<CriticModel>(std::move(model), options);
}

// Rows that begin with a prompt of 2 tokens, which is not learned from, and end at different places.
inline CriticBatch toy_critic_batch(int64_t num_rows, int64_t width, uint64_t seed) {
  CriticBatch batch{num_rows, width, {}, {}, {}, {}};
  const Tensor ids = ids_below(256, num_rows * width, seed), numbers = normals({2, num_rows * (width - 1)}, seed);
  const auto* number = numbers.const_data_ptr<float>();
  batch.tokens.assign(ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + ids.numel());
  for (int64_t row = 0; row < num_rows; ++row)
    for (int64_t t = 0; t < width - 1; ++t) {
      const int64_t i = row * (width - 1) + t;
      batch.returns.push_back(number[i]);
      batch.previous.push_back(number[i + num_rows * (width - 1)]);
      batch.mask.push_back(t >= 1 && t < width - 1 - row % 3 ? 1.0F : 0.0F);
    }
  return batch;
}

}  // namespace kedge::testing
