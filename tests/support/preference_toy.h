#pragma once
// DPO and KTO tasks over a tiny network and rows in a folder, without a run around them.
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "kedge/algo/supervised/dpo.h"
#include "kedge/algo/supervised/kto.h"
#include "kedge/core/autograd.h"

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

inline void copy_weights(Model& to, const Model& from) {
  const NoGrad no_grad;
  to.parameters().flat_master().copy_(from.parameters().flat_master());
  to.parameters().publish();
}

}  // namespace kedge::testing
