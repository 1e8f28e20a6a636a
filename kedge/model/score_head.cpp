#include "kedge/model/score_head.h"

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/model/kernels/ops.h"

namespace kedge {
namespace {

// x weight^T + bias whose backward adds to the parameters' own buffers.
class ScoreFunction : public torch::autograd::Function<ScoreFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& states, const ScoreView& head) {
    context->save_for_backward({states, head.weight});
    context->saved_data["weight_gradient"] = head.weight_gradient;
    context->saved_data["bias_gradient"] = head.bias_gradient;
    return linear(states.to(at::kFloat), head.weight.to(at::kFloat), head.bias.defined() ? head.bias.to(at::kFloat) : head.bias);
  }
  static torch::autograd::variable_list backward(AutogradContext* context, const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor dscores = gradients[0].contiguous();
    add_weight_gradient(context->saved_data["weight_gradient"].toTensor(), dscores, saved[0].to(at::kFloat));
    add_bias_gradient(context->saved_data["bias_gradient"].toTensor(), dscores);
    return {product(dscores, saved[1].to(at::kFloat)).to(saved[0].scalar_type()), {}};
  }
};

Tensor pooled(const Tensor& hidden, const PackedBatch& batch, Pooling pooling) {
  if (pooling == Pooling::last) return hidden.index_select(0, batch.offsets.narrow(0, 1, batch.num_rows()).to(at::kLong) - 1);
  std::vector<Tensor> rows;
  int64_t start = 0;
  for (const int64_t length : batch.lengths) {
    const Tensor row = hidden.narrow(0, start, length).to(at::kFloat);
    rows.push_back(pooling == Pooling::mean ? row.mean(0, true) : row.amax(0, true));
    start += length;
  }
  return at::cat(rows);
}

constexpr const char* kPoolingKey = "kedge_pooling";

}  // namespace

void note_pooling(Model& model, Pooling pooling) {
  for (const auto& [name, value] : enum_names(Pooling{}))
    if (value == pooling) model.note(kPoolingKey, Json(name));
}

Pooling noted_pooling(const ModelConfig& config) {
  const Json* noted = config.source.find(kPoolingKey);
  if (noted == nullptr) return Pooling::last;
  for (const auto& [name, value] : enum_names(Pooling{}))
    if (*noted == Json(name)) return value;
  throw UsageError(str("config.json: ", kPoolingKey, ": expected last, mean or max, found ", noted->dump()));
}

Tensor score_states(const Model& model, const Tensor& states) { return ScoreFunction::apply(states, model.score_head()); }

Tensor row_scores(const Model& model, const PackedBatch& batch, Pooling pooling, const PassOptions& pass) {
  return score_states(model, pooled(model.hidden(batch, pass), batch, pooling));
}

Tensor token_scores(const Model& model, const PackedBatch& batch, const PassOptions& pass) {
  return score_states(model, model.hidden(batch, pass));
}

Tensor merge_labels(const Tensor& scores, const std::vector<double>& weights, const std::string& where) {
  const int64_t num_labels = scores.size(-1);
  if (weights.empty()) return scores.mean(-1);
  check(static_cast<int64_t>(weights.size()) == num_labels, where, ": ", weights.size(), " weights for ", num_labels, " labels");
  return (scores * at::tensor(weights, scores.options())).sum(-1);
}

}  // namespace kedge
