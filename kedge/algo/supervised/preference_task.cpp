#include "kedge/algo/supervised/preference_task.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_set>
#include <utility>

#include <ATen/ops/cat.h>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"

namespace kedge {

ScoreMeans score_means(const PreferenceTuningConfig& config, bool by_default) {
  const bool preference = config.preference_average_log_probs.value_or(by_default);
  return {preference, config.sft_average_log_probs.value_or(preference)};
}

ResponseScores score_responses(const Model& policy, const ReferenceLogprobs& reference, std::span<const ResponseRow> rows,
                               const PassOptions& pass) {
  ResponseScores scores;
  scores.logps = response_logprobs(policy, rows, pass).to(at::kDouble);
  scores.ratios = scores.logps - reference.of(rows);
  std::vector<double> counts;
  for (const ResponseRow& row : rows) counts.push_back(static_cast<double>(std::max<int64_t>(1, row.num_predicted())));
  scores.counts = at::tensor(counts).to(policy.device());
  return scores;
}

void TaskReference::begin(const TaskStart& start, std::vector<ReferencePasses> passes) {
  const Path folder = config_.reference_cache_folder ? Path(*config_.reference_cache_folder) : start.place.folder / "reference_cache";
  reference_.emplace(start.model, start.group,
                     ReferenceOptions{.keeping = config_.reference_cache,
                                      .folder = folder,
                                      .weights = start.place.weights,
                                      .copy = start.place.reference,
                                      .stop = start.place.stop});
  if (!reference_->keeps()) return;
  reference_->compute_all(joined(std::move(passes)));
}

void TaskReference::begin_batch(std::span<const std::vector<ResponseRow>> own) {
  ensure(reference_.has_value(), "a batch before the run began");
  if (!reference_->keeps()) reference_->compute_batch(own);
}

const ReferenceLogprobs& TaskReference::get() const {
  ensure(reference_.has_value(), "a reference before the run began");
  return *reference_;
}

BatchList first_passes(const BatchList& batches, int64_t step, int64_t micro_size) {
  std::unordered_set<int64_t> wanted, seen;
  for (size_t i = static_cast<size_t>(step); i < batches.size(); ++i) wanted.insert(batches[i].begin(), batches[i].end());
  wanted.erase(Sampler::kNoRow);
  BatchList passes;
  for (const std::vector<int64_t>& batch : batches) {
    for (size_t begin = 0; begin < batch.size(); begin += static_cast<size_t>(micro_size)) {
      std::vector<int64_t> rows;
      bool is_first = false;
      for (size_t i = begin; i < std::min(batch.size(), begin + static_cast<size_t>(micro_size)); ++i) {
        if (batch[i] == Sampler::kNoRow) continue;
        rows.push_back(batch[i]);
        is_first = (seen.insert(batch[i]).second && wanted.contains(batch[i])) || is_first;
      }
      if (is_first) passes.push_back(std::move(rows));
    }
  }
  return passes;
}

ReferencePasses reference_passes(BatchList rows, std::function<std::vector<ResponseRow>(std::span<const int64_t> rows)> rows_of) {
  const auto kept = std::make_shared<const BatchList>(std::move(rows));
  return {std::ssize(*kept), [kept, rows_of = std::move(rows_of)](int64_t pass) { return rows_of((*kept)[static_cast<size_t>(pass)]); }};
}

ReferencePasses joined(std::vector<ReferencePasses> parts) {
  int64_t count = 0;
  for (const ReferencePasses& part : parts) count += part.count;
  return {count, [parts = std::move(parts)](int64_t pass) {
            size_t part = 0;
            while (pass >= parts[part].count) pass -= parts[part++].count;
            return parts[part].rows(pass);
          }};
}

Tensor sums_of(std::vector<Tensor> parts) {
  const NoGrad no_grad;
  for (Tensor& part : parts) part = part.detach().to(at::kDouble).reshape({1});
  return at::cat(parts);
}

Spread spread_of(double sum, double squares, double count) {
  const double mean = sum / count;
  return {mean, count > 1 ? std::sqrt(std::max(0.0, (squares - count * mean * mean) / (count - 1))) : 0};
}

void check_preference_weights(const PreferenceTuningConfig& config, const std::string& section) {
  check(config.preference_loss_weight > 0 || config.sft_loss_weight > 0, section,
        ".preference_loss_weight and sft_loss_weight: both are 0, so there is nothing to learn");
  check(config.ref_policy_kl_penalty > 0 || config.sft_loss_weight > 0, section,
        ".ref_policy_kl_penalty: 0, so the preference loss is the same for every policy, and with sft_loss_weight=0 there is nothing to "
        "learn");
  check(!config.reference_cache_folder || config.reference_cache == ReferenceKeeping::disk, section,
        ".reference_cache_folder: is for reference_cache=disk");
}

}  // namespace kedge
