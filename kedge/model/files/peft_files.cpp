#include "kedge/model/files/peft_files.h"

#include <set>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/model/files/tensor_bytes.h"
#include "kedge/model/files/weight_files.h"

namespace kedge {
namespace {

// "q_proj" for "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" is of no use here: the whole module is.
struct AdapterName {
  std::string module;
  bool is_a;
};

std::string_view without_prefix(std::string_view name) {
  if (name.starts_with(kAdapterPrefix)) name.remove_prefix(kAdapterPrefix.size());
  return name;
}

std::optional<AdapterName> parse_name(const std::string& name) {
  const std::string_view rest = without_prefix(name);
  for (const auto& [ending, is_a] : {std::pair<std::string_view, bool>(".lora_A.weight", true), {".lora_B.weight", false}})
    if (rest.ends_with(ending)) return AdapterName{std::string(rest.substr(0, rest.size() - ending.size())), is_a};
  return std::nullopt;
}

bool is_head(std::string_view name) {
  const std::string_view rest = without_prefix(name);
  return rest == "score.weight" || rest == "score.bias";
}

// The modules of the file, as slices of the model, in the model's order.
std::vector<LinearSlice> match_slices(const Model& model, const WeightFiles& files, const Path& file, bool with_head) {
  std::set<std::string> modules;
  for (const std::string& name : files.names()) {
    if (with_head && is_head(name)) continue;
    const auto parsed = parse_name(name);
    check(parsed.has_value(), files.where(name), ": expected names that end in .lora_A.weight or .lora_B.weight");
    modules.insert(parsed->module);
  }
  std::vector<LinearSlice> slices;
  for (const LinearSlice& slice : linear_slices(model.config(), model.places()))
    if (modules.erase(slice.module) > 0) slices.push_back(slice);
  check(modules.empty(), file.string(), ": ", modules.empty() ? "" : *modules.begin(), " is not a linear layer of this ",
        name_of(model.config().family), " model of ", model.config().num_layers, " layers (", modules.size(), " such)");
  check(!slices.empty(), file.string(), ": no adapters");
  return slices;
}

std::string text_of(at::IntArrayRef shape) {
  std::string text;
  for (const int64_t extent : shape) text += str(text.empty() ? "" : ", ", extent);
  return "[" + text + "]";
}

void read_weight(const WeightFiles& files, const std::string& name, const Tensor& to) {
  const TensorEntry* entry = find_adapter_tensor(files, name);
  check(entry != nullptr, files.where(str(kAdapterPrefix, name)), " is missing");
  const std::string where = files.where(entry->name);
  check(entry->shape == to.sizes().vec(), where, ": found ", text_of(entry->shape), ", expected ", text_of(to.sizes()));
  read_tensor({files.bytes(entry->name), weight_type(*entry, where), entry->shape}, to);
}

// A head that PEFT trained has no bias, as transformers' has none; then that of the base stays.
void read_head(const WeightFiles& files, const Model& model) {
  const Adapters& adapters = *model.adapters();
  read_weight(files, "score.weight", adapters.parameters().master(adapters.score()));
  if (const TensorEntry* bias = find_adapter_tensor(files, "score.bias")) {
    check(adapters.score_bias() >= 0, files.where(bias->name), ": the model's score head has no bias");
    read_weight(files, "score.bias", adapters.parameters().master(adapters.score_bias()));
  }
}

Json config_of(const Adapters& adapters, const ModelConfig& config, const std::string& base) {
  std::set<std::string> kinds;
  std::set<int64_t> layers;
  for (const LinearSlice& slice : adapters.slices()) {
    // GPT-2 has two c_proj per layer; the longer name distinguishes them.
    const size_t cut = slice.kind == "c_proj" ? slice.module.rfind('.', slice.module.rfind('.') - 1) : slice.module.rfind('.');
    kinds.insert(slice.module.substr(cut + 1));
    layers.insert(slice.layer);
  }
  Json::Array targets, numbers;
  // If not every kind is in every layer, complete names specify which are.
  const bool regular = adapters.slices().size() == kinds.size() * layers.size();
  for (const std::string& kind : kinds)
    if (regular) targets.emplace_back(kind);
  for (const LinearSlice& slice : adapters.slices())
    if (!regular) targets.emplace_back(slice.module);
  for (const int64_t layer : layers) numbers.emplace_back(layer);
  const bool everywhere = !regular || static_cast<int64_t>(layers.size()) == config.num_layers;
  Json json;
  json.set("peft_type", "LORA");
  json.set("task_type", adapters.score() >= 0 ? "SEQ_CLS" : "CAUSAL_LM");
  json.set("base_model_name_or_path", base);
  json.set("r", adapters.config().adapter_dim);
  json.set("lora_alpha", adapters.config().alpha.value_or(static_cast<double>(adapters.config().adapter_dim)));
  json.set("lora_dropout", adapters.config().adapter_dropout);
  json.set("target_modules", targets);
  json.set("layers_to_transform", everywhere ? Json() : Json(numbers));
  json.set("fan_in_fan_out", config.family == Family::gpt2);
  json.set("bias", "none");
  json.set("modules_to_save", adapters.score() >= 0 ? Json(Json::Array{"score"}) : Json());
  json.set("use_rslora", false);
  json.set("inference_mode", true);
  return json;
}

}  // namespace

void start_head_of_adapter(LoadOptions& options, const Path& adapter) {
  if (const auto head = load_adapter_head(adapter)) {
    options.head = HeadKind::score;
    options.new_labels = head->num_labels;
    options.new_bias = head->score_bias;
  }
}

void load_adapter(Model& model, const Path& folder, bool trainable) {
  const NoGrad no_grad;
  const LoraConfig config = load_adapter_config(folder);
  const bool with_head = saves_head(folder);
  check(!with_head || model.head().kind == HeadKind::score, folder.string(),
        ": an adapter with a score head (modules_to_save) on a language model");
  const Path file = folder / kAdapterWeightsFile;
  const WeightFiles files = WeightFiles::single(file);
  model.add_adapters(config, match_slices(model, files, file, with_head), trainable);
  Adapters& adapters = *model.adapters();
  for (size_t i = 0; i < adapters.slices().size(); ++i)
    for (const int place : {Adapters::a_of(i), Adapters::b_of(i)}) {
      const ParameterSpec& spec = adapters.parameters().whole_specs()[static_cast<size_t>(place)];
      const Tensor whole = at::empty(spec.shape, at::kFloat);
      read_weight(files, spec.name, whole);
      adapters.parameters().write_rows(place, 0, whole);
    }
  if (with_head) read_head(files, model);
  adapters.parameters().publish();
}

void save_adapter(const Model& model, const Path& folder, const std::string& base) {
  ensure(model.adapters() != nullptr, "no adapters to save");
  save_adapter(*model.adapters(), model.config(), folder, base);
}

void save_adapter(const Adapters& adapters, const ModelConfig& config, const Path& folder, const std::string& base) {
  const NoGrad no_grad;
  const Parameters& parameters = adapters.parameters();
  make_folder(folder);
  std::vector<TensorEntry> entries;
  for (const ParameterSpec& spec : parameters.specs()) entries.push_back({str(kAdapterPrefix, spec.name), WeightType::f32, spec.shape});
  SafetensorsWriter writer(folder / kAdapterWeightsFile, std::move(entries));
  for (size_t i = 0; i < parameters.specs().size(); ++i)
    write_tensor(parameters.master(static_cast<int>(i)), WeightType::f32, [&](std::string_view bytes) { writer.write(bytes); });
  writer.finish();
  write_atomic(folder / kAdapterConfigFile, config_of(adapters, config, base).dump(2) + "\n");
}

}  // namespace kedge
