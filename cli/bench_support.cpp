#include "cli/bench_support.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/core/random.h"
#include "kedge/model/model_files.h"
#include "kedge/model/model_folder.h"
#include "kedge/model/shapes.h"

namespace kedge::cli {

std::unique_ptr<Model> make_bench_model(const BenchFlags& flags, bool trainable, HeadKind head) {
  StorageOptions storage = flags.device.storage();
  storage.trainable = trainable && !flags.lora;
  check(flags.model.has_value() != flags.shape.has_value(), "kedge bench: wants either --model or --shape");
  const auto seed = static_cast<uint64_t>(flags.device.seed);
  std::unique_ptr<Model> model;
  if (flags.model) {
    LoadOptions load;
    load.storage = storage;
    load.head = head;
    load.new_labels = 1;
    model = load_model(find_model_folder(*flags.model, "--model"), load);
  } else {
    model = std::make_unique<Model>(shape_config(*flags.shape), HeadOptions{.kind = head}, storage);
    model->initialise(seed);
  }
  if (flags.lora) {
    LoraConfig lora;
    lora.adapter_dim = *flags.lora;
    lora.target_modules = {"all"};
    model->add_adapters(lora, trainable);
    model->adapters()->initialise(seed);
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

Json spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  Json json;
  json.set("median", values[values.size() / 2]);
  json.set("min", values.front());
  json.set("max", values.back());
  return json;
}

int64_t peak_bytes(const Model& model) {
  if (model.device().is_cuda()) return peak_cuda_bytes();
  return peak_resident_bytes();
}

}  // namespace kedge::cli
