#pragma once
// A reward model as served: rows in, rewards out. Independent of HTTP.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kedge/net/served_model.h"
#include "kedge/reward/reward_scorer.h"
#include "kedge/reward/served_rows.h"

namespace kedge {

// How calls to a batched model are merged.
struct ServedBatches {
  std::vector<int64_t> preferred_sizes = {};
  int64_t max_queue_delay_us = 2000;
};

// A batched model whose inputs are rows, without outputs and without anything to run. `rows` must outlive it.
[[nodiscard]] ServedModel served_rows_model(const std::string& name, const ServedRows& rows, const ServedBatches& batches);

// Rewards of rows, as a scorer gives them.
using RowScores = std::function<Tensor(std::span<const TokenIds> rows)>;

// `rows` and `scorer` must outlive it. `scores` are the scorer's where ranks compute them; empty: it does so itself.
[[nodiscard]] ServedModel make_reward_service(const std::string& name, const ServedRows& rows, const RewardScorer& scorer,
                                              const ServedBatches& batches, RowScores scores = {});

// "rewards", as a scorer gives them.
[[nodiscard]] WireTensor rewards_tensor(const Tensor& rewards);

}  // namespace kedge
