#pragma once
// A model's weights a second time, as other ranks of the same job compute with them: trained in one layout, generated with in another.
#include "kedge/dist/reshard.h"
#include "kedge/model/model.h"
#include "kedge/model/stored_weights.h"

namespace kedge {

// Not thread-safe; every rank makes the same calls. The source must outlive it. Weights have memory only between fill() and empty().
class ReshardedModel {
 public:
  // `world`: all ranks that hold the source; `tensor`: those of them that compute with the copy together. Collective.
  ReshardedModel(const Model& source, const Group& world, const TensorRanks& tensor);

  // Without gradients; adapters as the source's.
  [[nodiscard]] const Model& model() const { return copy_; }
  // Bytes that this rank sends to others whenever it is filled.
  [[nodiscard]] int64_t bytes_sent() const;

  void fill();  // with the source's weights as they are now. Collective.
  void empty();

 private:
  // The way from one set of parameters to the other.
  struct Way {
    StoredWeights from, to;
    Reshard plan;

    Way(const Group& world, const Parameters& source, const Parameters& copy);
  };
  void run(const Way& way) const;

  Model copy_;
  Way base_;
  std::optional<Way> adapters_;
};

}  // namespace kedge
