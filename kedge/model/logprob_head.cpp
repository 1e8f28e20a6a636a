#include "kedge/model/logprob_head.h"

#include <algorithm>

#include <ATen/core/ivalue.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>

#include "kedge/core/autograd.h"
#include "kedge/model/kernels/ops.h"

namespace kedge {
namespace {

// The head's vocabulary, kept for the backward.
struct KeptVocabulary : torch::CustomClassHolder {
  explicit KeptVocabulary(SplitVocabulary of) : vocabulary(of) {}
  SplitVocabulary vocabulary;
};

class LogprobFunction : public torch::autograd::Function<LogprobFunction> {
 public:
  static torch::autograd::variable_list forward(AutogradContext* context, const Tensor& hidden, const HeadView& head,
                                                const PredictedTokens& predicted, const LogprobOptions& options, int64_t budget) {
    const auto [with_entropy, chunk, temperature] = options;
    const Tensor &weight = head.weight, &places = predicted.places, &targets = predicted.targets;
    std::vector<Tensor> logprob, log_sum, entropy, waiting;
    for (int64_t begin = 0; begin < places.size(0); begin += chunk) {
      const int64_t count = std::min(chunk, places.size(0) - begin);
      const Tensor x = hidden.index_select(0, places.narrow(0, begin, count));
      Tensor logits = logits_of(x, weight);
      const Tensor ids = targets.narrow(0, begin, count);
      const LogitStats stats = head.vocabulary.is_split() ? split_logit_stats(logits, ids, with_entropy, temperature, head.vocabulary)
                                                          : logit_stats(logits, ids, with_entropy, temperature);
      logprob.push_back(stats.logprob);
      log_sum.push_back(stats.log_sum);
      if (with_entropy) entropy.push_back(stats.entropy);
      budget -= static_cast<int64_t>(logits.nbytes());
      if (budget >= 0) waiting.push_back(std::move(logits));
    }
    const auto joined = [&](const std::vector<Tensor>& parts) {
      return parts.empty() ? at::empty({0}, hidden.options().dtype(at::kFloat)) : at::cat(parts);
    };
    context->set_materialize_grads(false);     // an entropy without gradients costs the backward nothing
    const Tensor entropies = joined(entropy);  // empty unless requested
    context->save_for_backward({hidden, weight, places, targets, joined(log_sum), entropies.clone()});
    context->saved_data["gradient"] = head.weight_gradient;
    context->saved_data["vocabulary"] = c10::IValue::make_capsule(c10::make_intrusive<KeptVocabulary>(head.vocabulary));
    context->saved_data["chunk"] = chunk;
    context->saved_data["temperature"] = temperature;
    context->saved_data["waiting"] = waiting;
    return {joined(logprob), entropies};
  }

  static torch::autograd::variable_list backward(AutogradContext* context, const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &hidden = saved[0], &weight = saved[1], &places = saved[2], &targets = saved[3];
    const Tensor gradient = context->saved_data["gradient"].toTensor();
    const auto kept = context->saved_data["vocabulary"].toCapsule();
    const SplitVocabulary& vocabulary = static_cast<const KeptVocabulary&>(*kept).vocabulary;
    const int64_t chunk = context->saved_data["chunk"].toInt();
    const double temperature = context->saved_data["temperature"].toDouble();
    const c10::List<Tensor> waiting = context->saved_data["waiting"].toTensorList();
    context->saved_data["waiting"] = std::vector<Tensor>();  // overwritten by gradients below: a second backward recomputes them
    const auto part = [](const Tensor& x, int64_t begin, int64_t count) {
      return x.defined() && x.numel() > 0 ? x.narrow(0, begin, count) : Tensor();
    };
    const auto floats = [](const Tensor& x) { return x.defined() ? x.to(at::kFloat).contiguous() : Tensor(); };
    Tensor dlogprob = floats(gradients[0]);
    const Tensor dentropy = floats(gradients[1]);
    if (!dlogprob.defined()) dlogprob = at::zeros_like(saved[4]);
    const Tensor dhidden = at::zeros_like(hidden);
    for (int64_t begin = 0; begin < places.size(0); begin += chunk) {
      const int64_t count = std::min(chunk, places.size(0) - begin);
      const Tensor at = places.narrow(0, begin, count);
      Tensor ids = targets.narrow(0, begin, count);
      if (vocabulary.is_split()) ids = own_targets(ids, vocabulary);
      const Tensor x = hidden.index_select(0, at);
      const LogitStats stats{{}, part(saved[4], begin, count), part(saved[5], begin, count), temperature};
      const auto index = static_cast<size_t>(begin / chunk);
      const Tensor logits = index < waiting.size() ? Tensor(waiting[index]) : logits_of(x, weight);
      const Tensor dlogits =
          logit_gradient(logits, ids, stats, part(dlogprob, begin, count), part(dentropy, begin, count), weight.scalar_type());
      dhidden.index_copy_(0, at, product(dlogits, weight));
      add_weight_gradient(gradient, dlogits, x);
    }
    if (vocabulary.is_split()) vocabulary.ranks->sum_(dhidden);
    return {dhidden, {}, {}, {}, {}};
  }
};

}  // namespace

LogitMemory logit_memory(bool is_cuda, int64_t vocab_size) {
  const int64_t budget = is_cuda ? int64_t{1} << 30U : int64_t{8} << 20U;                            // bytes of fp32 logits
  const int64_t places = budget / (vocab_size * 4), multiple = is_cuda && places >= 256 ? 256 : 64;  // products are made of tiles
  return {std::clamp<int64_t>(places / multiple * multiple, 64, 4096), is_cuda ? int64_t{1536} << 20U : int64_t{128} << 20U};
}

Tensor logits_of(const Tensor& hidden, const Tensor& weight) {
  // The products of bf16 numbers are summed in fp32 anyway.
  if (hidden.is_cuda() && hidden.scalar_type() == at::kBFloat16) return at::mm(hidden, weight.t(), at::kFloat);
  return linear(hidden, weight, Tensor());
}

TokenLogprobs token_logprobs(const Tensor& hidden, const HeadView& head, const PredictedTokens& predicted, const LogprobOptions& options) {
  // Ranks that split the vocabulary exchange numbers of each chunk, so theirs are of one size.
  const LogitMemory memory = logit_memory(hidden.is_cuda(), head.vocabulary.is_split() ? head.vocabulary.most_ids : head.weight.size(0));
  LogprobOptions chosen = options;
  if (chosen.chunk == 0) chosen.chunk = memory.chunk;
  const int64_t waiting = at::GradMode::is_enabled() ? std::max(memory.waiting_bytes, head.kept_logits) : 0;
  const auto results = LogprobFunction::apply(hidden, head, predicted, chosen, waiting);
  return {results[0], options.entropy ? results[1] : Tensor()};
}

}  // namespace kedge
