#include "cli/bench/bench_support.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/spec/shapes.h"

namespace kedge::cli {

std::unique_ptr<Model> make_bench_model(const BenchFlags& flags, bool trainable, HeadKind head) {
  StorageOptions storage = flags.device.storage();
  storage.trainable = trainable && !flags.lora;
  check(flags.model.has_value() != flags.shape.has_value(), "kedge bench: expected either --model or --shape");
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
