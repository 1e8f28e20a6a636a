#include "kedge/model/files/model_snapshot.h"

#include "kedge/core/autograd.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/files/peft_files.h"

namespace kedge {
namespace {

StorageOptions host_storage(const Tensor& masters) { return {.dtype = masters.scalar_type()}; }

}  // namespace

ModelSnapshot::ModelSnapshot(const Model& model) : config_(model.config()) {
  const NoGrad no_grad;
  const Tensor& masters = model.trained().flat_master();
  if (const Adapters* adapters = model.adapters()) {
    const ScoreView head = model.head().kind == HeadKind::score ? model.score_head() : ScoreView{};
    adapters_ = std::make_unique<Adapters>(adapters->config(), adapters->slices(), host_storage(masters), head);
    adapters->parameters().visit_masters(
        [&](int parameter, const Tensor& master) { adapters_->parameters().master(parameter).copy_(master); });
  } else {
    model_ = std::make_unique<Model>(config_, model.head(), host_storage(masters));
    model_->parameters().flat().copy_(masters);
  }
}

void ModelSnapshot::save(const Path& folder, const SaveOptions& options, const std::string& base) const {
  if (model_) return save_model(*model_, folder, options);
  if (options.companions) copy_companions(*options.companions, folder);
  save_adapter(*adapters_, config_, folder, base);
}

}  // namespace kedge
