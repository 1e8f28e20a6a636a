#pragma once
// A copy in host memory of what a checkpoint's model folder holds, so that training continues while another thread writes it.
#include <memory>
#include <string>

#include "kedge/core/files.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/model.h"

namespace kedge {

// The complete model, or only the adapters if there are any. Weights are copied in the type they are trained in, so that they are rounded
// once, when they are written. Any thread may save; the model may be gone by then.
class ModelSnapshot {
 public:
  // This process has the model's master weights completely. Adapters may be split over tensor ranks, which all make the call.
  explicit ModelSnapshot(const Model& model);

  // The copied weights, in host memory.
  [[nodiscard]] const Tensor& masters() const { return model_ ? model_->parameters().flat() : adapters_->parameters().flat(); }

  // What save_model would have written, or save_adapter and the companions. `base` is the adapters' base_model_name_or_path.
  void save(const Path& folder, const SaveOptions& options, const std::string& base) const;

 private:
  ModelConfig config_;
  std::unique_ptr<Model> model_;  // null if there are adapters
  std::unique_ptr<Adapters> adapters_;
};

}  // namespace kedge
