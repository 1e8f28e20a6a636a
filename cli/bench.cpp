#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <ATen/Parallel.h>

#include "kedge/core/autograd.h"
#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/core/random.h"
#include "kedge/model/model_files.h"
#include "kedge/model/model_folder.h"
#include "kedge/model/shapes.h"
#include "kedge/train/optimizer.h"

#include "cli/commands.h"
#include "cli/device_flags.h"
#include "cli/json_lines.h"

namespace kedge::cli {
namespace {

struct BenchOptions {
  std::string name;
  std::optional<std::string> model, shape;
  DeviceFlags flags;
  int64_t rows = 16, length = 256, micro_rows = 0;
  int64_t repeats = 3;
  bool checkpoint = false;
  std::optional<int64_t> lora;
  OptimizerConfig optim;

  void fields(auto&& field) {
    field("name", name, "which case");
    field("model", model, "a model folder");
    field("shape", shape, "random weights of a named shape instead (kedge init --help lists them)");
    flags.fields(field);
    field("rows", rows, "sequences in a step", at_least(1));
    field("length", length, "tokens in each", at_least(2));
    field("micro_rows", micro_rows, "sequences in a forward and backward pass; 0: all", at_least(0));
    field("repeats", repeats, "timed steps after one to warm up", at_least(1));
    field("checkpoint", checkpoint, "keep only every layer's input, compute the rest twice");
    field("lora", lora, "train adapters of this rank on all linear layers instead of everything", at_least(1));
    field("optim", optim, "the optimizer");
  }
};

const std::vector<std::string> kPositionals = {"name"};

std::unique_ptr<Model> make_model(const BenchOptions& options) {
  StorageOptions storage = options.flags.storage();
  storage.trainable = !options.lora;
  check(options.model.has_value() != options.shape.has_value(), "kedge bench: wants either --model or --shape");
  std::unique_ptr<Model> model;
  if (options.model) {
    LoadOptions load;
    load.storage = storage;
    model = load_model(find_model_folder(*options.model, "--model"), load);
  } else {
    model = std::make_unique<Model>(shape_config(*options.shape), HeadOptions{}, storage);
    model->initialise(static_cast<uint64_t>(options.flags.seed));
  }
  if (options.lora) {
    LoraConfig lora;
    lora.adapter_dim = *options.lora;
    lora.target_modules = {"all"};
    model->add_adapters(lora, true);
    model->adapters()->initialise(static_cast<uint64_t>(options.flags.seed));
  }
  return model;
}

std::vector<std::vector<int32_t>> random_rows(int64_t rows, int64_t length, int64_t vocab_size) {
  const Random random(1234, 0);
  std::vector<std::vector<int32_t>> all(static_cast<size_t>(rows));
  uint64_t position = 0;
  for (auto& row : all)
    for (int64_t i = 0; i < length; ++i) row.push_back(static_cast<int32_t>(random.uniform(position++) * static_cast<double>(vocab_size)));
  return all;
}

// One optimizer step of the language-model loss, micro-batch by micro-batch.
class TrainStep {
 public:
  TrainStep(const BenchOptions& options, Model& model) : model_(model), optimizer_(options.optim, model.trained()), lr_(options.optim.lr) {
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
    double loss = 0;
    for (const PackedBatch& batch : batches_) {
      const Tensor part = model_logprobs(model_, batch, predicted_tokens(batch), {}, pass_).logprobs.sum() * (-1 / num_predicted_);
      backward(part);
      loss = part.item<double>();
    }
    const double norm = optimizer_.gradient_norm();
    optimizer_.step(lr_, norm > 1 ? 1 / norm : 1);
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

// Forward and backward of the matrices (six operations a weight and token) and of causal attention; recomputation does not count.
double step_flops(const ModelConfig& config, int64_t num_parameters, int64_t rows, int64_t length) {
  const auto tokens = static_cast<double>(rows * length);
  return 6.0 * static_cast<double>(num_parameters) * tokens +
         6.0 * static_cast<double>(config.num_layers * config.q_size()) * tokens * static_cast<double>(length);
}

int64_t peak_bytes(bool cuda) {
  if (cuda) return peak_cuda_bytes();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

Json summary(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  Json json;
  json.set("median", values[values.size() / 2]);
  json.set("min", values.front());
  json.set("max", values.back());
  return json;
}

Json settings_of(const BenchOptions& options, const Model& model) {
  Json json;
  json.set("model", options.model.value_or(options.shape.value_or("")));
  json.set("parameters", model.parameters().num_elements());
  json.set("device", name_of(model.device()));
  json.set("dtype", name_of(dtype_of(options.flags.dtype)));
  json.set("rows", options.rows);
  json.set("length", options.length);
  json.set("micro_rows", options.micro_rows == 0 ? options.rows : options.micro_rows);
  json.set("checkpoint", options.checkpoint);
  if (options.lora) json.set("lora", *options.lora);
  json.set("threads", int64_t{at::get_num_threads()});
  return json;
}

Json bench_train_step(const BenchOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  const auto model = make_model(options);
  log_info("model ready after ", since(), " s");
  TrainStep step(options, *model);
  const bool cuda = model->device().is_cuda();
  static_cast<void>(step.run());
  log_info("warm after ", since(), " s");
  if (cuda) reset_peak_cuda_bytes();
  std::vector<double> seconds;
  for (int64_t i = 0; i < options.repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double loss = step.run();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    log_info("step ", i + 1, ": ", seconds.back(), " s, loss of the last micro-batch ", loss);
  }
  std::vector<double> tokens, tflops;
  const double flops = step_flops(model->config(), model->parameters().num_elements(), options.rows, options.length);
  for (const double time : seconds) {
    tokens.push_back(static_cast<double>(options.rows * options.length) / time);
    tflops.push_back(flops / time / 1e12);
  }
  Json json;
  json.set("case", "train.step");
  json.set("machine", this_machine().cpu);
  json.set("settings", settings_of(options, *model));
  json.set("tokens_per_s", summary(tokens));
  json.set("tflops", summary(tflops));
  json.set("s_per_step", summary(seconds));
  json.set("peak_bytes", peak_bytes(cuda));
  return json;
}

}  // namespace

std::string bench_flags() {
  BenchOptions options;
  return flags_help(describe(options), kPositionals) +
         "\nCases\n  train.step  forward, backward and AdamW of the language-model loss on random tokens\n";
}

int run_bench(const Arguments& arguments) {
  BenchOptions options;
  parse_arguments(describe(options), arguments, kPositionals);
  check(options.name == "train.step", "kedge bench: no case \"", options.name, "\"; there is train.step");
  print_json_line(bench_train_step(options));
  return kExitOk;
}

}  // namespace kedge::cli
