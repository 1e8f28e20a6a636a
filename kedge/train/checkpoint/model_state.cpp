#include "kedge/train/checkpoint/model_state.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/fingerprint.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/files/model_parts.h"
#include "kedge/model/files/model_snapshot.h"
#include "kedge/model/files/peft_files.h"

namespace kedge {
namespace {

constexpr const char* kWeights = "parameters";

void add_weights(Fingerprint& print, const Parameters& parameters, at::ScalarType type) {
  constexpr int64_t kLookedAt = 1024;  // of a tensor: one that was trained, or initialized with another seed, differs nearly everywhere
  std::vector<Tensor> some(parameters.whole_specs().size());
  parameters.visit_masters([&](int parameter, const Tensor& master) {
    const Tensor flat = master.detach().view({-1});
    const int64_t stride = std::max<int64_t>(1, flat.numel() / kLookedAt);
    some[static_cast<size_t>(parameter)] = flat.slice(0, 0, flat.numel(), stride).to(at::kCPU).to(type).contiguous().clone();
  });
  for (size_t i = 0; i < some.size(); ++i) {
    print.add(parameters.whole_specs()[i].name);
    print.add(parameters.whole_specs()[i].size());
    print.add(std::string_view(static_cast<const char*>(some[i].const_data_ptr()), static_cast<size_t>(some[i].nbytes())));
  }
}

// Do ranks hold it together, each with a part?
bool is_shared(const Parameters& parameters) {
  return parameters.is_split() || (parameters.options().shards.num_ranks() > 1 && parameters.options().shards.kind != Sharding::none);
}

// Of the ranks that train it.
bool is_first(const Parameters& parameters) { return parameters.options().shards.is_first() && parameters.options().tensor.rank() == 0; }

FolderWriter snapshot_writer(std::shared_ptr<const ModelSnapshot> snapshot, const ModelFolderOptions& options) {
  return [snapshot = std::move(snapshot), options](const Path& folder) { snapshot->save(folder, options.save, options.base); };
}

// Adapters that ranks hold together are small: the first rank gets all of them.
FolderWriter save_split_adapters(const Model& model, StateSnapshot* state, const ModelFolderOptions& options) {
  if (!model.trained().options().shards.is_first()) return {};
  const auto snapshot = std::make_shared<const ModelSnapshot>(model);
  if (!is_first(model.trained())) return {};
  if (state != nullptr) state->take(kWeights, snapshot->masters());
  return snapshot_writer(snapshot, options);
}

// This rank's part of the folder; nothing where another rank holds the same.
FolderWriter save_shared(const Model& model, StateSnapshot* state, const ModelFolderOptions& options) {
  const Parameters& trained = model.trained();
  if (model.adapters() != nullptr) return save_split_adapters(model, state, options);
  if (trained.is_copy()) return {};
  std::vector<FlatRow> rows = trained.rows_to_save(trained.own_masters());
  if (state != nullptr)
    for (FlatRow& row : rows) row.values = state->add_part(kWeights, {row.begin, trained.whole_size()}, row.values);
  const auto parts = std::make_shared<const ModelParts>(model, std::move(rows), is_first(trained));
  return [parts, options](const Path& folder) { parts->save(folder, options.save); };
}

}  // namespace

void write_model_folder(const Model& model, const Path& folder, const ModelFolderOptions& options) {
  if (model.adapters() == nullptr) return save_model(model, folder, options.save);
  if (options.save.companions) copy_companions(*options.save.companions, folder);
  save_adapter(model, folder, options.base);
}

FolderWriter model_writer(const Model& model, const ModelFolderOptions& options) {
  if (is_shared(model.trained())) return save_shared(model, nullptr, options);
  if (!model.trained().options().shards.is_first()) return {};
  return [&model, options](const Path& folder) { write_model_folder(model, folder, options); };
}

FolderWriter save_model_state(const Model& model, StateSnapshot& state, const ModelFolderOptions& options) {
  if (is_shared(model.trained())) return save_shared(model, &state, options);
  if (!model.trained().options().shards.is_first()) return {};
  if (!state.copies()) {
    state.add(kWeights, model.trained().flat_master());
    return model_writer(model, options);
  }
  // One copy of the weights serves the state and the model's folder.
  const auto snapshot = std::make_shared<const ModelSnapshot>(model);
  state.take(kWeights, snapshot->masters());
  return snapshot_writer(snapshot, options);
}

void write_part_of(int rank, const StateSnapshot& state, const FolderWriter& write_model, const Path& folder) {
  if (rank == 0) {
    state.write(folder / "state");
  } else if (state.has_tensors()) {
    state.write_tensors(folder / "state", rank);
  }
  if (write_model) write_model(folder / "model");
}

void load_model_state(Model& model, const StateFiles& state) {
  const NoGrad no_grad;
  if (is_shared(model.trained())) {
    const Parameters& trained = model.trained();
    trained.restore_rows(trained.own_masters(), at::kFloat, [&](const FlatRow& row) {
      state.read_part(kWeights, {row.begin, trained.whole_size()}, row.values);
    });
    return model.trained().publish();
  }
  const Tensor& masters = model.trained().flat_master();
  if (masters.scalar_type() == at::kFloat) {
    state.read(kWeights, masters);
  } else {
    // An inference network has no extra fp32 weights.
    const Tensor whole = at::empty(masters.sizes(), at::kFloat);
    state.read(kWeights, whole);
    masters.copy_(whole);
  }
  model.trained().publish();
}

std::string saved_weights_hash(const Path& folder) { return StateFiles(folder).hash(kWeights); }

std::string start_print(const Model& model) {
  const NoGrad no_grad;
  Fingerprint print;
  print.add(model.config().source.dump());
  // Trained weights exist in fp32. With adapters, the base and the initial head are in the network's type.
  const at::ScalarType type = model.parameters().options().trainable ? at::kFloat : at::kBFloat16;
  add_weights(print, model.parameters(), type);
  if (model.adapters() != nullptr) add_weights(print, model.adapters()->parameters(), type);
  return print.hex();
}

}  // namespace kedge
