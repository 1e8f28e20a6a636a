#include "kedge/model/files/model_snapshot.h"

#include "kedge/core/autograd.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/files/peft_files.h"

namespace kedge {
namespace {

StorageOptions host_storage(const Parameters& of) { return {.dtype = of.flat_master().scalar_type()}; }

// Between parameters of the same shapes in the same order.
void copy_masters(const Parameters& from, const Parameters& to) {
  const Tensor flat = to.flat();
  flat.copy_(from.flat_master());
}

}  // namespace

ModelSnapshot::ModelSnapshot(const Model& model) : config_(model.config()) {
  const NoGrad no_grad;
  if (const Adapters* adapters = model.adapters()) {
    const ScoreView head = model.head().kind == HeadKind::score ? model.score_head() : ScoreView{};
    adapters_ = std::make_unique<Adapters>(adapters->config(), adapters->slices(), host_storage(adapters->parameters()), head);
    copy_masters(adapters->parameters(), adapters_->parameters());
  } else {
    model_ = std::make_unique<Model>(config_, model.head(), host_storage(model.parameters()));
    copy_masters(model.parameters(), model_->parameters());
  }
}

void ModelSnapshot::save(const Path& folder, const SaveOptions& options, const std::string& base) const {
  if (model_) return save_model(*model_, folder, options);
  if (options.companions) copy_companions(*options.companions, folder);
  save_adapter(*adapters_, config_, folder, base);
}

}  // namespace kedge
