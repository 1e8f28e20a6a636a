#pragma once
// A model's folder that several ranks write at once: each puts the weights it holds at their places in the files, which have the same
// bytes as if one rank had written them. No rank needs the complete model, nor a connection other than the disk that all ranks see.
#include <cstdint>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/model.h"

namespace kedge {

// Any thread may save; the model may be gone by then.
class ModelParts {
 public:
  // `rows`: of the master weights, in any memory. They must not change until they are written. `is_first`: of the ranks, the one that also
  // writes what is not a weight.
  ModelParts(const Model& model, std::vector<FlatRow> rows, bool is_first);

  // This rank's part of what save_model() would have written, on disk when it returns; the folder is complete when all ranks have returned.
  // It must be a new one: a file that another rank has begun is continued, not replaced.
  void save(const Path& folder, const SaveOptions& options) const;

 private:
  ModelConfig config_;
  HeadOptions head_;
  ModelParameters places_;
  std::vector<FlatRow> rows_;
  bool is_first_;
};

}  // namespace kedge
