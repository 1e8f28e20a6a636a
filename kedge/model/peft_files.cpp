#include "kedge/model/peft_files.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/model/tensor_bytes.h"
#include "kedge/model/weight_files.h"

namespace kedge {
namespace {

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kWeightsFile = "adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.";

bool is_empty(const Json& value) {
  return value.is_null() || value == Json(false) || (value.is_array() && value.as_array("").empty()) ||
         (value.is_object() && value.as_object("").empty());
}

// "q_proj" for "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" is of no use here: the whole module is.
struct AdapterName {
  std::string module;
  bool is_a;
};

std::optional<AdapterName> parse_name(const std::string& name) {
  std::string_view rest = name;
  if (rest.starts_with(kPrefix)) rest.remove_prefix(kPrefix.size());
  for (const auto& [ending, is_a] : {std::pair<std::string_view, bool>(".lora_A.weight", true), {".lora_B.weight", false}})
    if (rest.ends_with(ending)) return AdapterName{std::string(rest.substr(0, rest.size() - ending.size())), is_a};
  return std::nullopt;
}

// The modules of the file, as slices of the model, in the model's order.
std::vector<LinearSlice> match_slices(const Model& model, const WeightFiles& files, const Path& file) {
  std::set<std::string> modules;
  for (const std::string& name : files.names()) {
    const auto parsed = parse_name(name);
    check(parsed.has_value(), files.where(name), ": wants names that end in .lora_A.weight or .lora_B.weight");
    modules.insert(parsed->module);
  }
  std::vector<LinearSlice> slices;
  for (const LinearSlice& slice : linear_slices(model.config(), model.places()))
    if (modules.erase(slice.module) > 0) slices.push_back(slice);
  check(modules.empty(), file.string(), ": ", modules.empty() ? "" : *modules.begin(), " is no linear layer of this ",
        name_of(model.config().family), " model of ", model.config().num_layers, " layers (", modules.size(), " such)");
  check(!slices.empty(), file.string(), ": no adapters");
  return slices;
}

void read_matrix(const WeightFiles& files, const std::string& module, bool is_a, const Tensor& to) {
  const std::string ending = is_a ? ".lora_A.weight" : ".lora_B.weight";
  std::string name = str(kPrefix, module, ending);
  if (files.find(name) == nullptr) name = module + ending;
  const TensorEntry* entry = files.find(name);
  check(entry != nullptr, files.where(str(kPrefix, module, ending)), " is missing");
  check(entry->shape == to.sizes().vec(), files.where(name), ": found [", entry->shape.empty() ? 0 : entry->shape[0], ", ",
        entry->shape.size() < 2 ? 0 : entry->shape[1], "], wanted [", to.size(0), ", ", to.size(1), "]");
  read_tensor({files.bytes(name), weight_type(*entry, files.where(name)), entry->shape}, to);
}

Json config_of(const Model& model, const std::string& base) {
  const Adapters& adapters = *model.adapters();
  std::set<std::string> kinds;
  std::set<int64_t> layers;
  for (const LinearSlice& slice : adapters.slices()) {
    // GPT-2 has two c_proj a layer; the longer name keeps them apart.
    const size_t cut = slice.kind == "c_proj" ? slice.module.rfind('.', slice.module.rfind('.') - 1) : slice.module.rfind('.');
    kinds.insert(slice.module.substr(cut + 1));
    layers.insert(slice.layer);
  }
  Json::Array targets, numbers;
  // Where not every kind stands in every layer, whole names say which do.
  const bool regular = adapters.slices().size() == kinds.size() * layers.size();
  for (const std::string& kind : kinds)
    if (regular) targets.emplace_back(kind);
  for (const LinearSlice& slice : adapters.slices())
    if (!regular) targets.emplace_back(slice.module);
  for (const int64_t layer : layers) numbers.emplace_back(layer);
  const bool everywhere = !regular || static_cast<int64_t>(layers.size()) == model.config().num_layers;
  Json json;
  json.set("peft_type", "LORA");
  json.set("task_type", model.head().kind == HeadKind::score ? "SEQ_CLS" : "CAUSAL_LM");
  json.set("base_model_name_or_path", base);
  json.set("r", adapters.config().adapter_dim);
  json.set("lora_alpha", adapters.config().alpha.value_or(static_cast<double>(adapters.config().adapter_dim)));
  json.set("lora_dropout", adapters.config().adapter_dropout);
  json.set("target_modules", targets);
  json.set("layers_to_transform", everywhere ? Json() : Json(numbers));
  json.set("fan_in_fan_out", model.config().family == Family::gpt2);
  json.set("bias", "none");
  json.set("use_rslora", false);
  json.set("inference_mode", true);
  return json;
}

}  // namespace

LoraConfig load_adapter_config(const Path& folder) {
  const std::string origin = (folder / kConfigFile).string();
  const Json json = Json::parse(read_text(origin), origin);
  const auto where = [&](const char* key) { return str(origin, ": ", key); };
  const std::string& type = json.at("peft_type", origin).as_text(where("peft_type"));
  check(type == "LORA", where("peft_type"), ": \"", type, "\" is not supported, only LORA is");
  for (const char* key : {"rank_pattern", "alpha_pattern", "use_dora", "modules_to_save", "use_qalora", "lora_bias",
                          "trainable_token_indices", "layer_replication", "target_parameters", "alora_invocation_tokens"})
    if (const Json* value = json.find(key)) check(is_empty(*value), where(key), ": ", value->dump(), " is not supported");
  if (const Json* bias = json.find("bias"))
    check(*bias == Json("none"), where("bias"), ": ", bias->dump(), " is not supported, only \"none\" is");

  LoraConfig config;
  config.adapter_dim = json.at("r", origin).as_integer(where("r"));
  check(config.adapter_dim > 0, where("r"), ": ", config.adapter_dim, " is no rank");
  double alpha = json.at("lora_alpha", origin).as_number(where("lora_alpha"));
  if (const Json* root = json.find("use_rslora"); root != nullptr && !is_empty(*root))
    alpha *= std::sqrt(static_cast<double>(config.adapter_dim));
  config.alpha = alpha;
  if (const Json* dropout = json.find("lora_dropout")) config.adapter_dropout = dropout->as_number(where("lora_dropout"));
  check(config.adapter_dropout >= 0 && config.adapter_dropout < 1, where("lora_dropout"), ": ", config.adapter_dropout,
        " is not in [0, 1)");
  return config;
}

void load_adapter(Model& model, const Path& folder, bool trainable) {
  const NoGrad no_grad;
  const LoraConfig config = load_adapter_config(folder);
  const Path file = folder / kWeightsFile;
  const WeightFiles files = WeightFiles::single(file);
  model.add_adapters(config, match_slices(model, files, file), trainable);
  Adapters& adapters = *model.adapters();
  for (size_t i = 0; i < adapters.slices().size(); ++i) {
    read_matrix(files, adapters.slices()[i].module, true, adapters.parameters().master(Adapters::a_of(i)));
    read_matrix(files, adapters.slices()[i].module, false, adapters.parameters().master(Adapters::b_of(i)));
  }
  adapters.parameters().publish();
}

void save_adapter(const Model& model, const Path& folder, const std::string& base) {
  const NoGrad no_grad;
  ensure(model.adapters() != nullptr, "no adapters to save");
  const Parameters& parameters = model.adapters()->parameters();
  make_folder(folder);
  std::vector<TensorEntry> entries;
  for (const ParameterSpec& spec : parameters.specs()) entries.push_back({str(kPrefix, spec.name), WeightType::f32, spec.shape});
  SafetensorsWriter writer(folder / kWeightsFile, std::move(entries));
  for (size_t i = 0; i < parameters.specs().size(); ++i)
    write_tensor(parameters.master(static_cast<int>(i)), WeightType::f32, [&](std::string_view bytes) { writer.write(bytes); });
  writer.finish();
  write_atomic(folder / kConfigFile, config_of(model, base).dump(2) + "\n");
}

}  // namespace kedge
