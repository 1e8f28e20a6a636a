#pragma once
// Models from and to Hugging Face folders.
#include <memory>
#include <optional>
#include <string>

#include "kedge/core/files.h"
#include "kedge/model/model.h"

namespace kedge {

struct LoadOptions {
  StorageOptions storage;
  HeadKind head = HeadKind::language;
  // For a score head if the folder has none: a new one of this many labels, initialized with the seed. 0 rejects such a folder.
  int64_t new_labels = 0;
  bool new_bias = false;
  uint64_t seed = 1234;
};

// Every missing, unexpected and mis-shaped tensor is named in one UsageError. Weights that are not finite are logged as a warning.
[[nodiscard]] std::unique_ptr<Model> load_model(const Path& folder, const LoadOptions& options);

struct SaveOptions {
  std::optional<at::ScalarType> dtype = {};  // of the file; otherwise the one config.json names
  int64_t max_shard_bytes = int64_t{5} << 30U;
  std::optional<Path> companions = {};  // a folder whose tokenizer, chat template and generation_config.json are copied
};

// Writes config.json, the weights (shards and their index where one file would be too large) and the companions. Adapters are
// neither merged nor saved.
void save_model(const Model& model, const Path& folder, const SaveOptions& options = {});

}  // namespace kedge
