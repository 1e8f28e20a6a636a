#include "kedge/run/step_time_estimate.h"

#include <algorithm>
#include <array>

#include "kedge/core/autograd.h"
#include "kedge/core/cuda_device.h"
#include "kedge/core/random.h"
#include "kedge/core/stopwatch.h"
#include "kedge/train/optim/optimizer.h"

namespace kedge {
namespace {

// Seconds of the parts of a step, for a network of some depth.
struct Parts {
  double look = 0, update = 0;  // of a pass
  double apply = 0;             // of an update, in addition to its passes
  double draw = 0;              // of a token of all that run together
};

// A network of this depth, with arbitrary weights.
std::unique_ptr<Model> shallow_model(const StepWork& work, ModelConfig config, int64_t num_layers) {
  config.num_layers = num_layers;
  config.windows.resize(static_cast<size_t>(num_layers));
  const StorageOptions storage{work.pass.dtype, work.device, !work.pass.lora};
  auto model = std::make_unique<Model>(config, work.pass.head, storage);
  const NoGrad no_grad;
  model->parameters().flat().uniform_(-0.02, 0.02);
  if (work.pass.lora) {
    LoraConfig lora = *work.pass.lora;
    lora.layer_selection.reset();  // of layers that are not there
    model->add_adapters(lora, true);
    model->adapters()->initialise(1);
  }
  return model;
}

// The second time counts: the first one loads libraries and takes memory.
double seconds_of(at::Device device, auto&& work) {
  double seconds = 0;
  for (int i = 0; i < 2; ++i) {
    const Stopwatch watch;
    work();
    if (device.is_cuda()) synchronize_cuda();
    seconds = watch.seconds();
  }
  return seconds;
}

// A CPU needs no large passes to be busy.
constexpr int64_t kCpuTokens = 512, kCpuAnswers = 64;

int64_t running_together(const StepWork& work) {
  const bool is_cuda = work.device.is_cuda();
  return std::min({work.answers, work.engine.scheduler.running_on(is_cuda), is_cuda ? work.answers : kCpuAnswers});
}

std::vector<std::vector<int32_t>> rows_of(const StepWork& work) {
  const bool is_cuda = work.device.is_cuda();
  const int64_t tokens = is_cuda ? work.pass.tokens : std::min(work.pass.tokens, kCpuTokens);
  const int64_t length = std::clamp<int64_t>(work.pass.tokens / std::max<int64_t>(1, work.pass.rows), 2, std::max<int64_t>(2, tokens));
  return random_rows(std::max<int64_t>(1, tokens / length), length, work.pass.model.vocab_size);
}

double draw_seconds(const StepWork& work, const Model& model) {
  if (work.answers == 0) return 0;
  EngineConfig config = work.engine;
  const int64_t running = running_together(work);
  const int64_t length = std::max<int64_t>(1, std::min(work.prompt_tokens + work.answer_tokens / 2, model.config().max_positions - 32));
  constexpr int64_t kFew = 2, kMore = 18;
  config.memory = std::to_string(engine_bytes({.model = model.config(),
                                               .dtype = work.pass.dtype,
                                               .is_cuda = work.device.is_cuda(),
                                               .scheduler = config.scheduler,
                                               .answers = running,
                                               .usual = length + kMore,
                                               .longest = length + kMore})
                                     .cache);
  Engine engine(model, config);
  const auto drawing = [&](int64_t count) {
    GenerateRequest request;
    request.prompt.assign(static_cast<size_t>(length), 0);
    request.num_samples = running;
    request.max_new = count;
    return seconds_of(work.device, [&] { static_cast<void>(engine.generate({request})); });
  };
  const double more = drawing(kMore), few = drawing(kFew);
  return std::max(0.0, more - few) / static_cast<double>(kMore - kFew);
}

Parts measure_parts(const StepWork& work, int64_t num_layers) {
  auto model = shallow_model(work, work.pass.model, num_layers);
  const PackedBatch batch = pack_rows(rows_of(work), work.device);
  const double scale = static_cast<double>(work.pass.tokens) / static_cast<double>(batch.num_tokens());
  PassOptions pass;
  pass.checkpoint = work.pass.checkpoint;
  const bool scores = work.pass.head.kind == HeadKind::score;
  const auto sum = [&](const PassOptions& options) {
    return scores ? model->hidden(batch, options).sum()
                  : model_logprobs(*model, batch, predicted_tokens(batch), {}, options).logprobs.sum();
  };
  Parts parts;
  parts.look = scale * seconds_of(work.device, [&] {
                 const NoGrad no_grad;
                 static_cast<void>(sum({}));
               });
  Optimizer optimizer(work.pass.optimizer, model->trained());
  optimizer.zero_gradients();
  parts.update = scale * seconds_of(work.device, [&] { backward(sum(pass)); });
  parts.apply = seconds_of(work.device, [&] {
    const double norm = optimizer.gradient_norm();
    optimizer.step(0, clip_coefficient(norm, 1));
    optimizer.zero_gradients();
  });
  if (work.generator) model = shallow_model(work, *work.generator, num_layers);
  parts.draw = draw_seconds(work, *model);
  return parts;
}

}  // namespace

std::vector<std::vector<int32_t>> random_rows(int64_t rows, int64_t length, int64_t vocab_size) {
  const Random random(1234, 0);
  std::vector<std::vector<int32_t>> all(static_cast<size_t>(rows));
  uint64_t position = 0;
  for (auto& row : all)
    for (int64_t i = 0; i < length; ++i) row.push_back(static_cast<int32_t>(random.uniform(position++) * static_cast<double>(vocab_size)));
  return all;
}

Pace measure_pace(const StepWork& work) {
  const int64_t layers = work.pass.model.num_layers;
  const Parts one = measure_parts(work, 1), two = layers > 1 ? measure_parts(work, 2) : one;
  const auto whole = [&](double Parts::*part) {
    return one.*part + std::max(0.0, two.*part - one.*part) * static_cast<double>(layers - 1);
  };
  const double passes = 1 / static_cast<double>(std::max<int64_t>(1, work.pass.tokens));
  Pace pace;
  pace.look = whole(&Parts::look) * work.look_tokens * passes;
  pace.update = whole(&Parts::update) * work.update_tokens * passes + whole(&Parts::apply) * static_cast<double>(work.num_updates);
  if (work.answers > 0) {
    const int64_t running = running_together(work);
    const double waves = static_cast<double>(work.answers) / static_cast<double>(running);
    pace.generate = whole(&Parts::draw) * waves * static_cast<double>(work.answer_tokens);
  }
  return pace;
}

}  // namespace kedge
