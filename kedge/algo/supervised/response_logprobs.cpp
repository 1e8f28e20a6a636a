#include "kedge/algo/supervised/response_logprobs.h"

#include <algorithm>

#include <ATen/ops/split_with_sizes.h>
#include <ATen/ops/stack.h>

#include "kedge/core/error.h"

namespace kedge {

int64_t ResponseRow::num_predicted() const {
  return std::max<int64_t>(0, static_cast<int64_t>(ids.size()) - std::max<int64_t>(1, num_prompt_tokens));
}

Tensor response_logprobs(const Model& model, std::span<const ResponseRow> rows, const PassOptions& pass) {
  ensure(!rows.empty(), "log-probabilities of no responses");
  std::vector<TokenIds> inputs;
  std::vector<int64_t> places, targets, counts;
  int64_t begin = 0;
  for (const ResponseRow& row : rows) {
    counts.push_back(row.num_predicted());
    if (row.ids.size() < 2) continue;
    const auto length = static_cast<int64_t>(row.ids.size());
    for (int64_t i = length - counts.back(); i < length; ++i) {
      places.push_back(begin + i - 1);
      targets.push_back(row.ids[static_cast<size_t>(i)]);
    }
    inputs.emplace_back(row.ids.begin(), row.ids.end() - 1);
    begin += length - 1;
  }
  if (places.empty()) return at::zeros({std::ssize(rows)}, at::TensorOptions().device(model.device()));
  const PackedBatch batch = pack_rows(inputs, model.device());
  const PredictedTokens predicted = {at::tensor(places).to(model.device()), at::tensor(targets).to(model.device())};
  const Tensor logprobs = model_logprobs(model, batch, predicted, {}, pass).logprobs;
  std::vector<Tensor> sums;
  for (const Tensor& part : at::split_with_sizes(logprobs, counts)) sums.push_back(part.sum(at::kDouble));
  return at::stack(sums).to(at::kFloat);
}

int64_t num_fed(std::span<const ResponseRow> rows) {
  int64_t tokens = 0;
  for (const ResponseRow& row : rows) tokens += std::max<int64_t>(0, static_cast<int64_t>(row.ids.size()) - 1);
  return tokens;
}

}  // namespace kedge
