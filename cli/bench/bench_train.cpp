#include <algorithm>

#include <ATen/Parallel.h>

#include "kedge/core/autograd.h"
#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/core/stopwatch.h"
#include "kedge/run/memory_check.h"
#include "kedge/train/optim/optimizer.h"

#include "cli/bench/bench_support.h"

namespace kedge::cli {
namespace {

struct TrainOptions {
  BenchFlags common;
  int64_t rows = 16, length = 256, micro_rows = 0;
  bool checkpoint = false;
  OptimizerConfig optim;

  void fields(auto&& field) {
    common.fields(field);
    field("rows", rows, "sequences per step", at_least(1));
    field("length", length, "tokens per sequence", at_least(2));
    field("micro_rows", micro_rows, "sequences per forward and backward pass; 0: all", at_least(0));
    field("checkpoint", checkpoint, "keep only the input of every layer and recompute the rest");
    field("optim", optim, "the optimizer");
  }
};

// One optimizer step of the language-model loss, micro-batch by micro-batch.
class TrainStep {
 public:
  TrainStep(const TrainOptions& options, Model& model) : model_(model), optimizer_(options.optim, model.trained()), lr_(options.optim.lr) {
    pass_.checkpoint = options.checkpoint;
    const auto rows = random_rows(options.rows, options.length, model.config().vocab_size);
    const auto micro = static_cast<size_t>(options.micro_rows == 0 ? options.rows : options.micro_rows);
    for (size_t begin = 0; begin < rows.size(); begin += micro) {
      const size_t count = std::min(micro, rows.size() - begin);
      batches_.push_back(pack_rows(std::span(rows).subspan(begin, count), model.device()));
    }
    num_predicted_ = static_cast<double>(options.rows * (options.length - 1));
  }

  double run() {
    optimizer_.zero_gradients();
    Tensor part;
    for (const PackedBatch& batch : batches_) {
      part = model_logprobs(model_, batch, predicted_tokens(batch), {}, pass_).logprobs.sum() * (-1 / num_predicted_);
      backward(part);
    }
    const auto loss = part.item<double>();  // read once, as runs do: reading waits for the device
    const double norm = optimizer_.gradient_norm();
    optimizer_.step(lr_, clip_coefficient(norm, 1));
    if (model_.device().is_cuda()) synchronize_cuda();
    return loss;
  }

 private:
  Model& model_;
  Optimizer optimizer_;
  double lr_, num_predicted_ = 0;
  PassOptions pass_;
  std::vector<PackedBatch> batches_;
};

// Forward and backward of the matrices (six operations per weight and token) and of causal attention; recomputation does not count.
double step_flops(const ModelConfig& config, int64_t num_parameters, int64_t rows, int64_t length) {
  const auto tokens = static_cast<double>(rows * length);
  return 6.0 * static_cast<double>(num_parameters) * tokens +
         6.0 * static_cast<double>(config.num_layers * config.q_size()) * tokens * static_cast<double>(length);
}

// As a run would: with logits kept for the backward where there is room for them.
MemoryInput memory_input(const TrainOptions& options) {
  const StorageOptions storage = options.common.device.storage();
  const int64_t rows = options.micro_rows == 0 ? options.rows : std::min(options.micro_rows, options.rows);
  MemoryInput input;
  input.model = bench_model_config(options.common);
  input.dtype = storage.dtype;
  input.is_cuda = storage.device.is_cuda();
  if (options.common.lora) input.lora = bench_lora(*options.common.lora);
  input.optimizer = options.optim;
  input.tokens = rows * options.length, input.rows = rows, input.longest = options.length;
  input.checkpoint = options.checkpoint;
  input.threads = at::get_num_threads();
  MemoryRequest request{.demand = {.update = input, .saves = false}};
  request.room.host = this_machine().available_bytes;
  request.room.device = input.is_cuda ? free_cuda_bytes() : request.room.host;
  input.kept_logits = keep_logits(request);
  return input;
}

Json settings_of(const TrainOptions& options, const Model& model) {
  Json json = bench_settings(options.common, model);
  json.set("rows", options.rows);
  json.set("length", options.length);
  json.set("micro_rows", options.micro_rows == 0 ? options.rows : options.micro_rows);
  json.set("checkpoint", options.checkpoint);
  return json;
}

}  // namespace

std::string bench_train_flags() { return options_help<TrainOptions>(); }

Json bench_train_step(const Arguments& arguments) {
  const auto options = parse_options<TrainOptions>(arguments);
  const Stopwatch watch;
  const MemoryInput input = memory_input(options);
  const auto model = make_bench_model(options.common, {.trainable = true, .kept_logits = input.kept_logits});
  log_info("model ready after ", watch.seconds(), " s");
  const MemoryPlan plan = plan_memory(input);
  log_info("memory as planned\n", plan.table());
  TrainStep step(options, *model);
  static_cast<void>(step.run());
  log_info("warm after ", watch.seconds(), " s");
  if (model->device().is_cuda()) reset_peak_cuda_bytes();
  std::vector<double> seconds, tokens, tflops;
  const double flops = step_flops(model->config(), model->parameters().num_elements(), options.rows, options.length);
  for (int64_t i = 0; i < options.common.repeats; ++i) {
    const Stopwatch one;
    const double loss = step.run();
    seconds.push_back(one.seconds());
    tokens.push_back(static_cast<double>(options.rows * options.length) / seconds.back());
    tflops.push_back(flops / seconds.back() / 1e12);
    log_info("step ", i + 1, ": ", seconds.back(), " s, loss of the last micro-batch ", loss);
  }
  Json json = bench_line("train.step", settings_of(options, *model));
  json.set("tokens_per_s", spread_of(tokens));
  json.set("tflops", spread_of(tflops));
  json.set("s_per_step", spread_of(seconds));
  json.set("peak_bytes", peak_bytes(model->device()));
  json.set("planned_bytes", plan.peak_of_tensors());
  return json;
}

}  // namespace kedge::cli
