#pragma once
// The ids of rollouts as reward and critic servers take them.
#include <cstdint>
#include <optional>

#include "kedge/net/kserve.h"
#include "kedge/reward/rollout.h"

namespace kedge {

// `tokens` [rows, width] with 0 after every row, and `sequence_lengths` [rows, 1]. The width is `pad_to_length`, or that of the longest
// row; a UsageError if a row is longer.
[[nodiscard]] InferRequest ids_request(const Rollouts& rollouts, std::optional<int64_t> pad_to_length);

}  // namespace kedge
