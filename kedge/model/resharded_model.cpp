#include "kedge/model/resharded_model.h"

#include "kedge/core/autograd.h"

namespace kedge {
namespace {

StorageOptions copy_storage(const Model& source, const TensorRanks& tensor) {
  StorageOptions storage;
  storage.dtype = source.parameters().options().dtype;
  storage.device = source.device();
  storage.tensor = tensor;
  storage.comes_and_goes = true;
  return storage;
}

}  // namespace

ReshardedModel::Way::Way(const Group& world, const Parameters& source, const Parameters& copy)
    : from(source), to(copy), plan(world, from.blocks(), to.blocks()) {}

ReshardedModel::ReshardedModel(const Model& source, const Group& world, const TensorRanks& tensor)
    : copy_(source.config(), source.head(), copy_storage(source, tensor)), base_(world, source.parameters(), copy_.parameters()) {
  if (source.adapters() == nullptr) return;
  copy_.add_adapters(source.adapters()->config(), source.adapters()->slices(), false);
  adapters_.emplace(world, source.adapters()->parameters(), copy_.adapters()->parameters());
}

int64_t ReshardedModel::bytes_sent() const {
  const int64_t elements = base_.plan.traffic().sent + (adapters_ ? adapters_->plan.traffic().sent : 0);
  return elements * copy_.parameters().flat().element_size();
}

void ReshardedModel::run(const Way& way) const {
  way.plan.run([&](const WeightBlock& block) { return way.from.view(block); }, [&](const WeightBlock& block) { return way.to.view(block); },
               copy_.parameters().flat().options());
}

void ReshardedModel::fill() {
  const NoGrad no_grad;
  copy_.parameters().take_values();
  run(base_);
  if (!adapters_) return;
  copy_.adapters()->parameters().take_values();
  run(*adapters_);
}

void ReshardedModel::empty() {
  copy_.parameters().drop_values();
  if (adapters_) copy_.adapters()->parameters().drop_values();
}

}  // namespace kedge
