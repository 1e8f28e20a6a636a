#include "kedge/model/split_vocabulary.h"

#include <cmath>
#include <vector>

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

namespace kedge {
namespace {

// What a rank knows of a row: the log of its sum of exponentials, the target's logit or 0, its own entropy.
constexpr int64_t kLogSum = 0, kTarget = 1, kEntropy = 2, kNumbers = 3;

// One loop on the CPU: the vectorized functions of tensors give the last rows of a tensor other bits than the rest.
void join_on_cpu(const std::vector<Tensor>& parts, const LogitStats& to) {
  const int64_t rows = parts[0].size(1);
  std::vector<const double*> numbers;
  for (const Tensor& part : parts) numbers.push_back(part.const_data_ptr<double>());
  auto *logprob = to.logprob.mutable_data_ptr<float>(), *log_sum = to.log_sum.mutable_data_ptr<float>();
  float* entropy = to.entropy.defined() ? to.entropy.mutable_data_ptr<float>() : nullptr;
  for (int64_t row = 0; row < rows; ++row) {
    double most = numbers[0][row], sum = 0, target = 0, mean = 0;
    for (const double* its : numbers) most = std::max(most, its[kLogSum * rows + row]);
    for (const double* its : numbers) {
      sum += std::exp(its[kLogSum * rows + row] - most);
      target += its[kTarget * rows + row];
    }
    const double total = most + std::log(sum);
    for (const double* its : numbers) {
      const double rest = total - its[kLogSum * rows + row];
      mean += std::exp(-rest) * (its[kEntropy * rows + row] + rest);
    }
    log_sum[row] = static_cast<float>(total);
    logprob[row] = static_cast<float>(target - total);
    if (entropy != nullptr) entropy[row] = static_cast<float>(mean);
  }
}

void join_on_gpu(const std::vector<Tensor>& parts, const LogitStats& to) {
  Tensor most = parts[0][kLogSum];
  for (const Tensor& part : parts) most = most.maximum(part[kLogSum]);
  Tensor sum = at::zeros_like(most), target = at::zeros_like(most), mean = at::zeros_like(most);
  for (const Tensor& part : parts) {
    sum += (part[kLogSum] - most).exp_();
    target += part[kTarget];
  }
  const Tensor total = most + sum.log_();
  to.log_sum.copy_(total);
  to.logprob.copy_(target - total);
  if (!to.entropy.defined()) return;
  for (const Tensor& part : parts) {
    const Tensor rest = total - part[kLogSum];
    mean += rest.neg().exp_() * (part[kEntropy] + rest);
  }
  to.entropy.copy_(mean);
}

}  // namespace

Tensor own_targets(const Tensor& targets, const SplitVocabulary& vocabulary) {
  const Tensor are_own = targets.ge(vocabulary.ids.begin).logical_and_(targets.lt(vocabulary.ids.end));
  return (targets - vocabulary.ids.begin).masked_fill_(are_own.logical_not(), -1);
}

LogitStats split_logit_stats(const Tensor& logits, const Tensor& targets, bool with_entropy, double temperature,
                             const SplitVocabulary& vocabulary) {
  const Tensor own = own_targets(targets, vocabulary), column = own.clamp_min(0);
  const LogitStats mine = logit_stats(logits, column, with_entropy, temperature);
  Tensor target = logits.gather(1, column.unsqueeze(1)).squeeze(1).to(at::kFloat);
  if (temperature != 1) target.div_(temperature);
  target.masked_fill_(own.lt(0), 0);
  const Tensor numbers = at::stack({mine.log_sum, target, with_entropy ? mine.entropy : at::zeros_like(target)}).to(at::kDouble);
  const std::vector<Tensor> parts =
      vocabulary.ranks->gather(numbers, std::vector(static_cast<size_t>(vocabulary.ranks->size()), numbers.sizes().vec()));
  const auto row = [&] { return at::empty_like(mine.log_sum); };
  const LogitStats all{row(), row(), with_entropy ? row() : Tensor(), temperature};
  logits.is_cuda() ? join_on_gpu(parts, all) : join_on_cpu(parts, all);
  return all;
}

}  // namespace kedge
