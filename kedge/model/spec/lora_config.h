#pragma once
// Which linear layers get adapters, and of what size. Keys and names are NeMo-Aligner's; Hugging Face's names work too.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config.h"
#include "kedge/model/spec/parameter_layout.h"

namespace kedge {

struct LoraConfig {
  int64_t adapter_dim = 32;
  std::optional<double> alpha;
  double adapter_dropout = 0;
  std::vector<std::string> target_modules = {"attention_qkv"};
  std::optional<std::vector<int64_t>> layer_selection;

  void fields(auto&& field) {
    field("adapter_dim", adapter_dim, "rank of the adapters", at_least(1));
    field("alpha", alpha, "adapters are scaled by alpha / adapter_dim; null: alpha = adapter_dim", above(0));
    field("adapter_dropout", adapter_dropout, "dropout rate of the adapters' outputs in training", at_least(0), below(1));
    field("target_modules", target_modules,
          "attention_qkv, attention_dense, mlp_fc1, mlp_fc2, attention, mlp, all, or names such as q_proj");
    field("layer_selection", layer_selection, "layers with adapters, counted from 1; null: all");
    field.refused("column_init_method", "the first matrix of an adapter always starts Xavier-normal", {"xavier"});
    field.refused("row_init_method", "the second matrix of an adapter always starts at zero", {"zero"});
    field.refused("weight_tying", "every layer has its own adapters", {"false", "False"});
    field.ignored("position_embedding_strategy", "only tied adapters use it");
  }

  [[nodiscard]] double scale() const { return alpha.value_or(static_cast<double>(adapter_dim)) / static_cast<double>(adapter_dim); }
};

// The slices of `all` that the configuration selects. A name or a layer that does not exist here is a UsageError that opens with `where`.
[[nodiscard]] std::vector<LinearSlice> select_slices(const LoraConfig& config, const std::vector<LinearSlice>& all, int64_t num_layers,
                                                     const std::string& where);

}  // namespace kedge
