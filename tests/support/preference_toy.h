#pragma once
// DPO and KTO tasks over a tiny network and rows in a folder, without a run around them.
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "kedge/algo/supervised/dpo.h"
#include "kedge/algo/supervised/kto.h"
#include "kedge/algo/supervised/response_logprobs.h"
#include "kedge/core/autograd.h"

#include "tests/support/temp_folder.h"
#include "tests/support/tiny_training.h"

namespace kedge::testing {

inline Json data_prefix(const Path& file) {
  const Json::Array one{file.string()};
  return Json::Object{{"train", one}, {"validation", one}, {"test", one}};
}

inline std::vector<int64_t> all_rows(const SupervisedTask& task) {
  std::vector<int64_t> rows(static_cast<size_t>(task.train.size));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

inline std::vector<std::vector<int64_t>> micros_of(const std::vector<int64_t>& rows, size_t size) {
  std::vector<std::vector<int64_t>> micros;
  for (size_t i = 0; i < rows.size(); i += size)
    micros.emplace_back(rows.begin() + static_cast<int64_t>(i), rows.begin() + static_cast<int64_t>(std::min(rows.size(), i + size)));
  return micros;
}

// One batch of all rows, in micro-batches of this size; gradients are added to those that are there.
struct BatchNumbers {
  double loss = 0;
  Metrics metrics;
};
inline BatchNumbers run_batch(const SupervisedTask& task, size_t micro_size) {
  const std::vector<int64_t> rows = all_rows(task);
  const auto micros = micros_of(rows, micro_size);
  const Group group = Group::single();
  task.train.begin_batch({rows, micros, group});
  BatchNumbers numbers;
  Tensor sums;
  for (const auto& micro : micros) {
    const RowsResult found = task.train.compute(micro, {});
    if (found.loss.defined()) {
      backward(found.loss);
      numbers.loss += found.loss.item<double>();
    }
    sums = sums.defined() ? sums + found.sums : found.sums;
  }
  numbers.metrics = task.metrics_of(std::span(sums.const_data_ptr<double>(), static_cast<size_t>(sums.numel())));
  return numbers;
}

// Begins the task as a run does: its reference is the model as it is now.
inline void begin_task(const SupervisedTask& task, Model& model, const RunPlace& place = {}, int64_t micro_size = 2) {
  const Group group = Group::single();
  const std::vector<int64_t> rows = all_rows(task);
  task.begin({model, group, place, micro_size, {rows}, 0, {{rows}}});
}

inline SupervisedTask make_toy_task(const DpoModelConfig& config, const std::unique_ptr<Model>& model, const Tokenizer& tokenizer) {
  return make_dpo_task(config, {model, tokenizer, model->config().vocab_size, "none"});
}
inline SupervisedTask make_toy_task(const KtoModelConfig& config, const std::unique_ptr<Model>& model, const Tokenizer& tokenizer) {
  return make_kto_task(config, {model, tokenizer, model->config().vocab_size, "none"});
}

// `Config`: DpoModelConfig or KtoModelConfig.
template <typename Config>
struct PreferenceToy {
  TempFolder temp;
  std::unique_ptr<Model> model = byte_model();
  std::unique_ptr<Tokenizer> tokenizer = make_byte_tokenizer();
  Config config;

  explicit PreferenceToy(const std::string& rows) {
    take_rows(rows);
    config.data.seq_length = 64;
    config.loss.ref_policy_kl_penalty = 0.5;
  }
  void take_rows(const std::string& rows) { config.data.data_prefix = data_prefix(temp.file("rows.jsonl", rows)); }
  [[nodiscard]] SupervisedTask task() const { return make_toy_task(config, model, *tokenizer); }
  // Begun with the present weights, after which they move.
  SupervisedTask begun(double distance) {
    SupervisedTask made = task();
    begin_task(made, *model);
    scatter_weights(model->parameters(), 900, distance);
    return made;
  }
  [[nodiscard]] double logprob(const std::string& prompt, const std::string& response) const {
    const std::vector<ResponseRow> row = {{tokenizer->encode(prompt + response), static_cast<int64_t>(prompt.size())}};
    return response_logprobs(*model, row)[0].item<double>();
  }
};

inline void copy_weights(Model& to, const Model& from) {
  const NoGrad no_grad;
  to.parameters().flat_master().copy_(from.parameters().flat_master());
  to.parameters().publish();
}

}  // namespace kedge::testing
