#include "kedge/model/files/weight_check.h"

#include <algorithm>
#include <set>

#include "kedge/core/error.h"

namespace kedge {
namespace {

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += str(i == 0 ? "" : ", ", shape[i]);
  return text + "]";
}

// The stored name of a slice; empty if there is none.
std::string stored_name(const WeightFiles& files, const WeightSlice& slice) {
  if (files.find(slice.name) != nullptr) return slice.name;
  for (const std::string& name : slice.other_names)
    if (files.find(name) != nullptr) return name;
  return {};
}

bool is_head(const std::string& name) { return name.starts_with("lm_head.") || name.starts_with("score."); }

std::string listed(const char* what, const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  if (names.empty()) return {};
  std::string text = str("\n  ", what, " (", names.size(), "):");
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) text += str("\n    ", names[i]);
  if (names.size() > kShown) text += str("\n    and ", names.size() - kShown, " more");
  return text;
}

}  // namespace

bool has_score_head(const ModelConfig& config, const WeightFiles& files) {
  return config.num_labels > 0 && files.find("score.weight") != nullptr;
}

HeadOptions stored_head(const ModelConfig& config, const WeightFiles& files) {
  if (config.num_labels == 0) return {HeadKind::language, 1, false};
  return {HeadKind::score, config.num_labels, files.find("score.bias") != nullptr};
}

std::string WeightCheck::text(const std::string& origin, const ModelConfig& config) const {
  if (fits()) return {};
  return str(origin, ": the weights are not those of the ", name_of(config.family), " model in config.json", listed("missing", missing),
             listed("unexpected", unexpected), listed("of another shape", misshaped), listed("of a type that is not supported", mistyped));
}

WeightCheck check_weights(const WeightFiles& files, const std::vector<WeightSlice>& table, const WeightWishes& wishes) {
  WeightCheck result;
  std::set<std::string> expected;
  for (const WeightSlice& slice : table) {
    if (wishes.fresh_head && slice.name.starts_with("score.")) continue;
    expected.insert(slice.name);
    expected.insert(slice.other_names.begin(), slice.other_names.end());
    const std::string name = stored_name(files, slice);
    if (name.empty()) {
      result.missing.push_back(slice.name);
      continue;
    }
    const TensorEntry& entry = *files.find(name);
    if (entry.shape != slice.shape)
      result.misshaped.push_back(str(name, ": found ", text_of(entry.shape), ", expected ", text_of(slice.shape)));
    if (!entry.type) result.mistyped.push_back(str(name, ": found ", entry.type_name, ", expected F32, BF16 or F16"));
    result.found.push_back({slice, name});
  }
  for (const std::string& name : files.names()) {
    const bool other_head = wishes.head == HeadKind::score && is_head(name);
    if (!expected.contains(name) && !is_constant_buffer(name) && !other_head) result.unexpected.push_back(name);
  }
  return result;
}

}  // namespace kedge
