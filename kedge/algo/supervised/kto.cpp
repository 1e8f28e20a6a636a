#include "kedge/algo/supervised/kto.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "kedge/algo/supervised/preference_task.h"
#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/data/sets/kto_dataset.h"
#include "kedge/text/chat/model_chat.h"

namespace kedge {
namespace {

// Sums over rows, for the metrics. Rewards are log-ratios as the loss scores them; of those with beta, sums over responses' tokens.
struct KtoSum {
  enum Index : size_t {
    rows,
    skipped,
    preference,
    sft,
    kl,
    num_chosen,
    num_rejected,
    chosen,
    rejected,
    squares,
    chosen_reward,
    rejected_reward,
    chosen_logps,
    rejected_logps,
    count
  };
};

// A batch in progress: this rank's examples, and what all ranks know of it.
struct KtoBatch {
  std::map<int64_t, KtoExample> examples;
  double num_rows = 0, num_chosen = 0;  // without those that are too long
  double kl = 0;
};

class KtoSplit {
 public:
  static constexpr size_t kNumSums = KtoSum::count;

  KtoSplit(const KtoModelConfig& config, std::shared_ptr<const KtoDataset> set, std::shared_ptr<TaskReference> reference,
           const std::unique_ptr<Model>& model)
      : config_(config), means_(score_means(config.loss, false)), set_(std::move(set)), reference_(std::move(reference)), model_(model) {}

  [[nodiscard]] int64_t size() const { return set_->size(); }

  [[nodiscard]] std::vector<ReferencePasses> passes(const BatchList& batches, int64_t step, int64_t micro_size) const {
    return {reference_passes(first_passes(batches, step, micro_size),
                             [this](std::span<const int64_t> rows) { return responses(examples_of(*set_, rows)); }),
            mismatched_passes(std::span(batches).subspan(static_cast<size_t>(step)), micro_size)};
  }
  void begin_batch(const BatchRows& batch) {
    batch_ = {};
    const std::map<int64_t, int64_t> before = rows_before(batch.all);
    std::vector<std::vector<ResponseRow>> own, mismatches;
    for (const std::vector<int64_t>& rows : batch.own) {
      std::vector<int64_t> others;
      for (const int64_t row : rows) others.push_back(before.at(row));
      std::vector<KtoExample> examples = examples_of(*set_, rows);
      own.push_back(responses(examples));
      mismatches.push_back(mismatched(examples, examples_of(*set_, others)));
      batch_.num_rows += static_cast<double>(own.back().size());
      for (size_t i = 0; i < rows.size(); ++i) {
        if (examples[i].chosen && !examples[i].masked) ++batch_.num_chosen;
        batch_.examples.emplace(rows[i], std::move(examples[i]));
      }
    }
    own.insert(own.end(), mismatches.begin(), mismatches.end());
    reference_->begin_batch(own);
    estimate_kl(mismatches, batch.group);
  }

  [[nodiscard]] RowsResult compute(std::span<const int64_t> rows, const PassOptions& pass) const {
    std::vector<KtoExample> examples;
    for (const int64_t row : rows)
      if (const KtoExample& example = batch_.examples.at(row); !example.masked) examples.push_back(example);
    RowsResult result;
    const auto numbers = at::TensorOptions().dtype(at::kDouble).device(model_->device());
    if (examples.empty()) {
      result.sums = at::zeros({kNumSums}, numbers);
      result.sums[static_cast<int64_t>(KtoSum::skipped)] = static_cast<double>(rows.size());
      return result;
    }
    const std::vector<ResponseRow> sides = responses(examples);
    const ResponseScores scores = score_responses(*model_, reference_->get(), sides, pass);
    const Tensor ratios = scores.scored(scores.ratios, means_.preference), chosen = labels(examples);
    const KtoTuningConfig& tuning = config_.loss;
    const Tensor preference =
        kto_losses({tuning.ref_policy_kl_penalty, tuning.desirable_loss_weight, tuning.undesirable_loss_weight}, ratios, chosen, batch_.kl)
            .sum();
    const Tensor sft = -(scores.scored(scores.logps, means_.sft) * chosen).sum();
    result.loss = preference * (tuning.preference_loss_weight / batch_.num_rows);
    if (tuning.sft_loss_weight > 0 && batch_.num_chosen > 0) result.loss = result.loss + sft * (tuning.sft_loss_weight / batch_.num_chosen);
    if (!result.loss.requires_grad()) result.loss = Tensor();  // no response has a token to learn from
    result.num_tokens = num_fed(sides);
    const NoGrad no_grad;
    const auto number = [&](double value) { return at::full({}, value, numbers); };
    const auto sum = [&](const Tensor& values, const Tensor& of) { return (values.detach() * of).sum(); };
    const Tensor rejected = chosen.logical_not(), rewards = scores.ratios.detach() * tuning.ref_policy_kl_penalty;
    const auto count = static_cast<double>(examples.size());
    result.sums = sums_of({number(count), number(static_cast<double>(rows.size()) - count), preference, sft, number(batch_.kl * count),
                           chosen.sum(), rejected.sum(), sum(ratios, chosen), sum(ratios, rejected), ratios.square().sum(),
                           sum(rewards, chosen), sum(rewards, rejected), sum(scores.logps, chosen), sum(scores.logps, rejected)});
    return result;
  }

  // As large a pass as an update's, without the reference.
  [[nodiscard]] Tensor rehearse(std::span<const int64_t> rows, const PassOptions& pass) const {
    const std::vector<ResponseRow> sides = responses(examples_of(*set_, rows));
    return sides.empty() ? Tensor() : response_logprobs(*model_, sides, pass).sum();
  }

  [[nodiscard]] RowSize size_of(int64_t row) const {
    const KtoExample example = set_->get(row);
    const auto tokens = std::ssize(example.ids) - 1;
    return {tokens, 1, tokens, !example.masked};
  }

 private:
  // Those of the mismatched rows depend on the batches.
  [[nodiscard]] ReferencePasses mismatched_passes(std::span<const std::vector<int64_t>> batches, int64_t micro_size) const {
    struct Slice {
      std::vector<int64_t> rows, before;
    };
    const auto slices = std::make_shared<std::vector<Slice>>();
    for (const std::vector<int64_t>& batch : batches) {
      const std::map<int64_t, int64_t> before = rows_before(batch);
      for (size_t begin = 0; begin < batch.size(); begin += static_cast<size_t>(micro_size)) {
        Slice slice;
        for (size_t i = begin; i < std::min(batch.size(), begin + static_cast<size_t>(micro_size)); ++i) {
          if (batch[i] == Sampler::kNoRow) continue;
          slice.rows.push_back(batch[i]);
          slice.before.push_back(before.at(batch[i]));
        }
        if (!slice.rows.empty()) slices->push_back(std::move(slice));
      }
    }
    return {std::ssize(*slices), [this, slices](int64_t pass) {
              const Slice& slice = (*slices)[static_cast<size_t>(pass)];
              return mismatched(examples_of(*set_, slice.rows), examples_of(*set_, slice.before));
            }};
  }

  // By a row of the batch, the one before it, whose response its prompt is given; cyclic.
  [[nodiscard]] static std::map<int64_t, int64_t> rows_before(std::span<const int64_t> batch) {
    std::vector<int64_t> rows;
    for (const int64_t row : batch)
      if (row != Sampler::kNoRow) rows.push_back(row);
    std::map<int64_t, int64_t> before;
    for (size_t i = 0; i < rows.size(); ++i) before.emplace(rows[i], rows[(i + rows.size() - 1) % rows.size()]);
    return before;
  }

  // Those that are too long are left out.
  [[nodiscard]] static std::vector<ResponseRow> responses(const std::vector<KtoExample>& examples) {
    std::vector<ResponseRow> rows;
    for (const KtoExample& example : examples)
      if (!example.masked) rows.push_back({example.ids, example.num_prompt_tokens});
    return rows;
  }

  // Prompts with responses to others, cut to the longest row that is allowed.
  [[nodiscard]] std::vector<ResponseRow> mismatched(const std::vector<KtoExample>& prompts, const std::vector<KtoExample>& answers) const {
    std::vector<ResponseRow> rows;
    for (size_t i = 0; i < prompts.size(); ++i) {
      if (prompts[i].masked || answers[i].masked) continue;
      ResponseRow row{{prompts[i].ids.begin(), prompts[i].ids.begin() + prompts[i].num_prompt_tokens}, prompts[i].num_prompt_tokens};
      row.ids.insert(row.ids.end(), answers[i].ids.begin() + answers[i].num_prompt_tokens, answers[i].ids.end());
      row.ids.resize(std::min(row.ids.size(), static_cast<size_t>(config_.data.seq_length)));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  // The mean log-ratio of mismatched rows over the whole batch, at least 0.
  void estimate_kl(const std::vector<std::vector<ResponseRow>>& mismatches, const Group& group) {
    const NoGrad no_grad;
    const WholeWeights whole(model_->parameters());
    std::array<double, 4> sums = {0, 0, batch_.num_rows, batch_.num_chosen};
    for (const std::vector<ResponseRow>& rows : mismatches) {
      if (rows.empty()) continue;
      const ResponseScores scores = score_responses(*model_, reference_->get(), rows, {});
      sums[0] += scores.scored(scores.ratios, means_.preference).sum().item<double>();
      sums[1] += static_cast<double>(rows.size());
    }
    group.all_reduce(std::span<double>(sums), Reduce::sum);
    batch_.kl = sums[1] > 0 ? std::max(0.0, sums[0] / sums[1]) : 0;
    batch_.num_rows = sums[2];
    batch_.num_chosen = sums[3];
  }

  [[nodiscard]] Tensor labels(const std::vector<KtoExample>& examples) const {
    Tensor chosen = at::empty({std::ssize(examples)}, at::kBool);
    for (size_t i = 0; i < examples.size(); ++i) chosen.mutable_data_ptr<bool>()[i] = examples[i].chosen;
    return chosen.to(model_->device());
  }

  KtoModelConfig config_;
  ScoreMeans means_;
  std::shared_ptr<const KtoDataset> set_;
  std::shared_ptr<TaskReference> reference_;
  const std::unique_ptr<Model>& model_;
  KtoBatch batch_;
};

// As NeMo-Aligner, a mean over no rows is 0.
Metrics kto_metrics(const KtoTuningConfig& config, std::span<const double> sums) {
  Metrics metrics;
  if (sums[KtoSum::skipped] > 0) metrics.set("skipped", sums[KtoSum::skipped]);
  const double rows = sums[KtoSum::rows];
  if (rows == 0) return metrics;
  const auto mean = [&](KtoSum::Index sum, KtoSum::Index count) { return sums[count] > 0 ? sums[sum] / sums[count] : 0; };
  metrics.set("loss", config.preference_loss_weight * mean(KtoSum::preference, KtoSum::rows) +
                          config.sft_loss_weight * mean(KtoSum::sft, KtoSum::num_chosen));
  metrics.set("preference_loss", mean(KtoSum::preference, KtoSum::rows));
  metrics.set("sft_loss", mean(KtoSum::sft, KtoSum::num_chosen));
  metrics.set("kl", mean(KtoSum::kl, KtoSum::rows));
  metrics.set("rewards_chosen_mean", mean(KtoSum::chosen, KtoSum::num_chosen));
  metrics.set("rewards_rejected_mean", mean(KtoSum::rejected, KtoSum::num_rejected));
  metrics.set("rewards_margin", mean(KtoSum::chosen, KtoSum::num_chosen) - mean(KtoSum::rejected, KtoSum::num_rejected));
  const Spread all = spread_of(sums[KtoSum::chosen] + sums[KtoSum::rejected], sums[KtoSum::squares], rows);
  metrics.set("rewards_all_mean", all.mean);
  metrics.set("rewards_all_std", all.std);
  metrics.set("rewards/chosen", mean(KtoSum::chosen_reward, KtoSum::num_chosen));
  metrics.set("rewards/rejected", mean(KtoSum::rejected_reward, KtoSum::num_rejected));
  metrics.set("rewards/margins", mean(KtoSum::chosen_reward, KtoSum::num_chosen) - mean(KtoSum::rejected_reward, KtoSum::num_rejected));
  metrics.set("logps/chosen", mean(KtoSum::chosen_logps, KtoSum::num_chosen));
  metrics.set("logps/rejected", mean(KtoSum::rejected_logps, KtoSum::num_rejected));
  return metrics;
}

}  // namespace

void check_kto_config(const KtoModelConfig& config) {
  check_preference_weights(config.loss, "model.kto");
  check(config.loss.desirable_loss_weight > 0 || config.loss.undesirable_loss_weight > 0 || config.loss.sft_loss_weight > 0,
        "model.kto.desirable_loss_weight and undesirable_loss_weight: both are 0, so there is nothing to learn");
  check(config.global_batch_size > 1,
        "model.global_batch_size: 1; KTO estimates the KL from prompts with responses to other rows of the batch and needs at least 2");
}

SupervisedTask make_kto_task(const KtoModelConfig& config, const TaskModel& model) {
  check_bos(config.data.add_bos, model.tokenizer, model.folder, "model.data");
  const ChatRenderer chat = chat_of_model(model.folder);
  const auto reference = std::make_shared<TaskReference>(config.loss);
  SupervisedTask task = make_preference_task<KtoSplit>(open_data(config.data, "model.data"), config, reference, [&](const Rows& rows) {
    auto set = std::make_shared<const KtoDataset>(rows, encoder_of(model.tokenizer, model.vocab_size), config.data, chat);
    return std::make_shared<KtoSplit>(config, std::move(set), reference, model.weights);
  });
  task.metrics_of = [tuning = config.loss](std::span<const double> sums) { return kto_metrics(tuning, sums); };
  return task;
}

}  // namespace kedge
