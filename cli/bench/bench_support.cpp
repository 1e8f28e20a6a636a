#include "cli/bench/bench_support.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/core/random.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/spec/shapes.h"

namespace kedge::cli {
namespace {

// Weights that are only timed: one piece of normal draws over and over, since drawing billions takes minutes. Its length is a prime, so
// that neither rows nor layers are equal.
void fill_weights(Parameters& parameters, uint64_t seed, double range) {
  constexpr int64_t kPiece = 1048573;
  const Random random(seed, 0);
  Tensor draws = at::empty({kPiece}, at::kFloat);
  float* out = draws.mutable_data_ptr<float>();
  at::parallel_for(0, kPiece, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)) * range);
  });
  draws = draws.to(parameters.options().device);
  int64_t used = 0;
  for (size_t i = 0; i < parameters.specs().size(); ++i) {
    const Tensor weights = parameters.master(static_cast<int>(i)).view({-1});
    const ParameterSpec::Init init = parameters.specs()[i].init;
    if (init != ParameterSpec::Init::normal) {
      weights.fill_(init == ParameterSpec::Init::ones ? 1 : 0);
      continue;
    }
    for (int64_t first = 0, count = 0; first < weights.numel(); first += count) {
      count = std::min(kPiece - used, weights.numel() - first);
      weights.narrow(0, first, count).copy_(draws.narrow(0, used, count));
      used = (used + count) % kPiece;
    }
  }
  parameters.publish();
}

}  // namespace

LoraConfig bench_lora(int64_t rank) {
  LoraConfig lora;
  lora.adapter_dim = rank;
  lora.target_modules = {"all"};
  return lora;
}

ModelConfig bench_model_config(const BenchFlags& flags) {
  check(flags.model.has_value() != flags.shape.has_value(), "kedge bench: expected either --model or --shape");
  return flags.model ? load_model_config(find_model_folder(*flags.model, "--model")) : shape_config(*flags.shape);
}

std::unique_ptr<Model> make_bench_model(const BenchFlags& flags, const BenchModel& wanted) {
  const ModelConfig config = bench_model_config(flags);
  StorageOptions storage = flags.device.storage();
  storage.trainable = wanted.trainable && !flags.lora;
  storage.kept_logits = wanted.kept_logits;
  const auto seed = static_cast<uint64_t>(flags.device.seed);
  std::unique_ptr<Model> model;
  if (flags.model) {
    LoadOptions load;
    load.storage = storage;
    load.head = wanted.head;
    load.new_labels = 1;
    model = load_model(find_model_folder(*flags.model, "--model"), load);
  } else {
    model = std::make_unique<Model>(config, HeadOptions{.kind = wanted.head}, storage);
    fill_weights(model->parameters(), seed, model->config().init_range);
  }
  if (flags.lora) {
    model->add_adapters(bench_lora(*flags.lora), wanted.trainable);
    model->adapters()->initialise(seed);
  }
  return model;
}

Json bench_settings(const BenchFlags& flags, const Model& model) {
  Json json;
  json.set("model", flags.model.value_or(flags.shape.value_or("")));
  json.set("parameters", model.parameters().num_elements());
  json.set("device", name_of(model.device()));
  json.set("dtype", name_of(dtype_of(flags.device.dtype)));
  if (flags.lora) json.set("lora", *flags.lora);
  json.set("threads", int64_t{at::get_num_threads()});
  return json;
}

Json bench_line(const char* name, Json settings) {
  Json json;
  json.set("case", name);
  json.set("machine", this_machine().cpu);
  json.set("settings", std::move(settings));
  return json;
}

Json spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  Json json;
  json.set("median", values[values.size() / 2]);
  json.set("min", values.front());
  json.set("max", values.back());
  return json;
}

}  // namespace kedge::cli
