#include "kedge/model/spec/adapter_config.h"

#include <cctype>
#include <cmath>

#include "kedge/core/error.h"
#include "kedge/core/json.h"

namespace kedge {
namespace {

bool is_empty(const Json& value) {
  return value.is_null() || value == Json(false) || (value.is_array() && value.as_array("").empty()) ||
         (value.is_object() && value.as_object("").empty());
}

// Does modules_to_save name the score head? For every sequence classifier PEFT lists "classifier" as well, after the heads of other
// families.
bool names_head(const Json& config, const std::string& origin) {
  const Json* modules = config.find("modules_to_save");
  if (modules == nullptr || is_empty(*modules)) return false;
  const std::string where = origin + ": modules_to_save";
  for (const Json& module : modules->as_array(where)) {
    const std::string& name = module.as_text(where);
    check(name == "score" || name == "classifier", where, ": \"", name, "\" is not supported, only \"score\" is");
  }
  return true;
}

// PEFT makes the first values of these adapters out of the base's weights, which it changes, each time it loads one.
void check_keeps_base(const Json& config, const std::string& origin) {
  const Json* value = config.find("init_lora_weights");
  if (value == nullptr || !value->is_text()) return;
  std::string start = value->as_text(origin);
  for (char& c : start) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* changing : {"pissa", "corda", "olora", "loftq", "lora_ga"})
    check(!start.starts_with(changing), origin, ": init_lora_weights: ", value->dump(),
          " is not supported: such an adapter belongs to a base whose weights PEFT changes when it loads it; merge the two with PEFT, or "
          "save the adapter again with save_pretrained's path_initial_model_for_weight_conversion");
}

Json read_config(const Path& folder) { return Json::parse(read_text(folder / kAdapterConfigFile), (folder / kAdapterConfigFile).string()); }

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape) text += str(text.empty() ? "" : ", ", extent);
  return "[" + text + "]";
}

}  // namespace

LoraConfig load_adapter_config(const Path& folder) {
  const std::string origin = (folder / kAdapterConfigFile).string();
  const Json json = read_config(folder);
  const auto where = [&](const char* key) { return str(origin, ": ", key); };
  const std::string& type = json.at("peft_type", origin).as_text(where("peft_type"));
  check(type == "LORA", where("peft_type"), ": \"", type, "\" is not supported, only LORA is");
  for (const char* key : {"rank_pattern", "alpha_pattern", "use_dora", "use_qalora", "lora_bias", "trainable_token_indices",
                          "layer_replication", "target_parameters", "alora_invocation_tokens"})
    if (const Json* value = json.find(key)) check(is_empty(*value), where(key), ": ", value->dump(), " is not supported");
  check_keeps_base(json, origin);
  static_cast<void>(names_head(json, origin));
  if (const Json* bias = json.find("bias"))
    check(*bias == Json("none"), where("bias"), ": ", bias->dump(), " is not supported, only \"none\" is");

  LoraConfig config;
  config.adapter_dim = json.at("r", origin).as_integer(where("r"));
  check(config.adapter_dim > 0, where("r"), ": ", config.adapter_dim, " is not a rank");
  double alpha = json.at("lora_alpha", origin).as_number(where("lora_alpha"));
  if (const Json* root = json.find("use_rslora"); root != nullptr && !is_empty(*root))
    alpha *= std::sqrt(static_cast<double>(config.adapter_dim));
  config.alpha = alpha;
  if (const Json* dropout = json.find("lora_dropout")) config.adapter_dropout = dropout->as_number(where("lora_dropout"));
  check(config.adapter_dropout >= 0 && config.adapter_dropout < 1, where("lora_dropout"), ": ", config.adapter_dropout,
        " is not in [0, 1)");
  return config;
}

bool saves_head(const Path& folder) { return names_head(read_config(folder), (folder / kAdapterConfigFile).string()); }

std::optional<HeadOptions> load_adapter_head(const Path& folder) {
  if (!saves_head(folder)) return std::nullopt;
  const WeightFiles files = WeightFiles::single(folder / kAdapterWeightsFile);
  const TensorEntry* weight = find_adapter_tensor(files, "score.weight");
  check(weight != nullptr, files.where(str(kAdapterPrefix, "score.weight")), " is missing");
  check(weight->shape.size() == 2, files.where(weight->name), ": found ", shape_text(weight->shape), ", expected [labels, hidden]");
  return HeadOptions{HeadKind::score, weight->shape[0], find_adapter_tensor(files, "score.bias") != nullptr};
}

const TensorEntry* find_adapter_tensor(const WeightFiles& files, std::string_view name) {
  const TensorEntry* entry = files.find(str(kAdapterPrefix, name));
  return entry != nullptr ? entry : files.find(name);
}

}  // namespace kedge
