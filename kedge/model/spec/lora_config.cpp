#include "kedge/model/spec/lora_config.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

struct Group {
  std::string_view name;
  std::array<std::string_view, 8> kinds;
};

// NeMo-Aligner's names for the linear layers of every family.
constexpr std::array<Group, 7> kGroups = {{
    {"attention_qkv", {"q_proj", "k_proj", "v_proj", "c_attn"}},
    {"attention_dense", {"o_proj", "attn.c_proj"}},
    {"mlp_fc1", {"gate_proj", "up_proj", "c_fc"}},
    {"mlp_fc2", {"down_proj", "mlp.c_proj"}},
    {"attention", {"q_proj", "k_proj", "v_proj", "c_attn", "o_proj", "attn.c_proj"}},
    {"mlp", {"gate_proj", "up_proj", "c_fc", "down_proj", "mlp.c_proj"}},
    {"all", {""}},  // the end of every name
}};

bool ends_in(const std::string& module, std::string_view name) {
  if (name.empty()) return true;
  return module.ends_with(name) && (module.size() == name.size() || module[module.size() - name.size() - 1] == '.');
}

std::vector<std::string_view> meanings(const std::string& target) {
  for (const Group& group : kGroups) {
    if (group.name != target) continue;
    if (target == "all") return {""};
    std::vector<std::string_view> kinds;
    for (const std::string_view kind : group.kinds)
      if (!kind.empty()) kinds.push_back(kind);
    return kinds;
  }
  if (target == "all-linear") return {""};  // PEFT's name
  return {target};
}

}  // namespace

std::vector<LinearSlice> select_slices(const LoraConfig& config, const std::vector<LinearSlice>& all, int64_t num_layers,
                                       const std::string& where) {
  std::set<int64_t> layers;
  for (int64_t layer = 0; layer < num_layers; ++layer)
    if (!config.layer_selection) layers.insert(layer);
  for (const int64_t number : config.layer_selection.value_or(std::vector<int64_t>{})) {
    check(number >= 1 && number <= num_layers, where, ".layer_selection: ", number, " is not one of the layers 1 to ", num_layers);
    layers.insert(number - 1);
  }
  std::vector<bool> chosen(all.size(), false);
  for (const std::string& target : config.target_modules) {
    const auto names = meanings(target);
    bool found = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (std::none_of(names.begin(), names.end(), [&](std::string_view name) { return ends_in(all[i].module, name); })) continue;
      found = true;
      if (layers.contains(all[i].layer)) chosen[i] = true;
    }
    if (found) continue;
    std::set<std::string> kinds;
    for (const LinearSlice& slice : all) kinds.insert(slice.kind);
    std::string known;
    for (const std::string& kind : kinds) known += (known.empty() ? "" : ", ") + kind;
    throw UsageError(str(where, ".target_modules: \"", target, "\" is not a linear layer of this model; it has ", known,
                         ", and the groups attention_qkv, attention_dense, mlp_fc1, mlp_fc2, attention, mlp and all"));
  }
  std::vector<LinearSlice> slices;
  for (size_t i = 0; i < all.size(); ++i)
    if (chosen[i]) slices.push_back(all[i]);
  check(!slices.empty(), where, ": no layer is selected");
  return slices;
}

}  // namespace kedge
