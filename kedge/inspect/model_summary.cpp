#include "kedge/inspect/model_summary.h"

#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/files/weight_check.h"
#include "kedge/model/spec/adapter_config.h"

namespace kedge {
namespace {

void add_network(NetworkFacts& facts, const Path& folder) {
  const ModelConfig config = load_model_config(folder);
  const HeadOptions head = stored_head(config, WeightFiles(folder));
  facts.family = name_of(config.family);
  for (const ParameterSpec& spec : make_parameters(config, head).specs) facts.num_parameters += spec.size();
  facts.num_layers = config.num_layers;
  facts.hidden_size = config.hidden_size;
  facts.num_labels = head.kind == HeadKind::score ? head.num_labels : 0;
  facts.dtype = config.dtype;
}

void add_adapter(NetworkFacts& facts, const Path& folder, const Path& started_in) {
  facts.rank = load_adapter_config(folder).adapter_dim;
  const WeightFiles files = WeightFiles::single(folder / kAdapterWeightsFile);
  for (const std::string& name : files.names()) {
    int64_t size = 1;
    for (const int64_t extent : files.find(name)->shape) size *= extent;
    facts.num_adapter_parameters += size;
  }
  if (const auto head = load_adapter_head(folder)) facts.num_labels = head->num_labels;
  const int64_t own_labels = facts.num_labels;
  try {
    add_network(facts, find_adapter_base(folder, started_in, "base"));
  } catch (const UsageError&) {
    facts.family.clear();
  }
  if (own_labels > 0) facts.num_labels = own_labels;
}

std::string named_base(const Path& adapter) {
  const Path file = adapter / kAdapterConfigFile;
  const Json json = Json::parse(read_text(file), file.string());
  const Json* base = json.find("base_model_name_or_path");
  return base != nullptr && base->is_text() ? base->as_text("") : "";
}

}  // namespace

bool is_adapter_folder(const Path& folder) { return is_file(folder / kAdapterConfigFile) && !is_file(folder / "config.json"); }

Path find_adapter_base(const Path& adapter, const Path& started_in, const std::string& where) {
  const std::string base = named_base(adapter);
  check(!base.empty(), where, ": ", (adapter / kAdapterConfigFile).string(), " does not name the adapter's base model");
  if (const Path from_start = started_in / base; is_folder(from_start)) return find_model_folder(from_start.string(), where);
  return find_model_folder(base, where);
}

NetworkFacts read_network_facts(const Path& folder, const Path& started_in) {
  NetworkFacts facts;
  if (is_adapter_folder(folder)) {
    facts.base = named_base(folder);
    add_adapter(facts, folder, started_in);
  } else {
    add_network(facts, folder);
  }
  return facts;
}

std::string network_text(const NetworkFacts& facts) {
  std::string text = facts.family.empty() ? "a base model that is not available (" + facts.base + ")"
                                          : str(facts.family, ", ", with_commas(facts.num_parameters), " parameters in ", facts.num_layers,
                                                " layers of ", facts.hidden_size);
  if (facts.num_labels > 0) text += str(", score head of ", facts.num_labels, facts.num_labels == 1 ? " label" : " labels");
  if (facts.rank > 0) text += str("; LoRA of rank ", facts.rank, ", ", with_commas(facts.num_adapter_parameters), " parameters");
  return text;
}

Json network_json(const NetworkFacts& facts) {
  return Json::Object{{"family", facts.family.empty() ? Json() : Json(facts.family)},
                      {"parameters", facts.num_parameters},
                      {"layers", facts.num_layers},
                      {"hidden_size", facts.hidden_size},
                      {"labels", facts.num_labels},
                      {"dtype", facts.dtype},
                      {"lora_rank", facts.rank},
                      {"lora_parameters", facts.num_adapter_parameters},
                      {"base", facts.base.empty() ? Json() : Json(facts.base)}};
}

std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

}  // namespace kedge
