#include "kedge/reward/ids_request.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {

InferRequest ids_request(const Rollouts& rollouts, std::optional<int64_t> pad_to_length) {
  const auto count = static_cast<int64_t>(rollouts.size());
  int64_t width = 0;
  std::vector<int64_t> lengths;
  for (const auto& rollout : rollouts) {
    lengths.push_back(rollout->length());
    width = std::max(width, rollout->length());
  }
  if (pad_to_length) {
    check(width <= *pad_to_length, "pad_to_length: ", *pad_to_length, " tokens, but a rollout has ", width);
    width = *pad_to_length;
  }
  std::vector<int64_t> ids(static_cast<size_t>(count * width), 0);
  for (int64_t row = 0; row < count; ++row) {
    const TokenIds& from = rollouts[static_cast<size_t>(row)]->ids;
    std::copy(from.begin(), from.end(), ids.begin() + row * width);
  }
  InferRequest request;
  request.inputs = {int64_tensor("tokens", {count, width}, ids), int64_tensor("sequence_lengths", {count, 1}, lengths)};
  return request;
}

}  // namespace kedge
