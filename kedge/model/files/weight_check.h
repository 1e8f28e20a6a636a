#pragma once
// Do a folder's weights fit the model that its config.json describes? Checks names, shapes and types in the files' headers; reads no
// weights.
#include <string>
#include <vector>

#include "kedge/model/files/weight_files.h"
#include "kedge/model/spec/parameter_layout.h"

namespace kedge {

// Does the folder hold the score head of its config.json?
[[nodiscard]] bool has_score_head(const ModelConfig& config, const WeightFiles& files);
// The head of config.json; a score head has a bias if the files have one.
[[nodiscard]] HeadOptions stored_head(const ModelConfig& config, const WeightFiles& files);

struct WeightCheck {
  struct Match {
    WeightSlice slice;
    std::string name;  // under which it is stored
  };

  std::vector<Match> found;  // in the table's order
  std::vector<std::string> missing, unexpected, misshaped, mistyped;

  [[nodiscard]] bool fits() const { return missing.empty() && unexpected.empty() && misshaped.empty() && mistyped.empty(); }
  // What does not fit, up to twenty names of each kind; empty if everything does. `origin` opens it.
  [[nodiscard]] std::string text(const std::string& origin, const ModelConfig& config) const;
};

struct WeightWishes {
  HeadKind head = HeadKind::language;
  bool fresh_head = false;  // the score head is not required
};

// Of a score model the other heads that files may carry are not unexpected, nor are tensors that hold no weights.
[[nodiscard]] WeightCheck check_weights(const WeightFiles& files, const std::vector<WeightSlice>& table, const WeightWishes& wishes);

}  // namespace kedge
