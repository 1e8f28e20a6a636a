#pragma once
// Tensor parallelism as data: which rows or columns of every parameter a rank has where several ranks compute each layer together.
// Independent of tensors and transports.
#include <cstdint>
#include <string_view>
#include <vector>

#include "kedge/dist/partition.h"
#include "kedge/model/spec/parameter_layout.h"

namespace kedge {

struct TensorSplit {
  int rank = 0, size = 1;       // among the ranks that hold one copy of the model together
  bool divides_tokens = false;  // does each compute the layers' norms for tokens of its own?

  [[nodiscard]] bool is_split() const { return size > 1; }
};

// UsageError, which opens with `where`, if a model's heads or its MLP cannot be divided among so many ranks.
void check_tensor_split(const ModelConfig& whole, int size, std::string_view where);

// The shape of what one rank computes: its heads, its share of the MLP and of the vocabulary. Ranks share a key-value head where there are
// fewer of those than ranks. The hidden size stays.
[[nodiscard]] ModelConfig split_config(const ModelConfig& whole, const TensorSplit& split);
// The ids whose rows of the embedding and of the head it has.
[[nodiscard]] Share vocabulary_share(const ModelConfig& whole, const TensorSplit& split);

// Where a rank's parameter is in the complete one.
struct ParameterPart {
  struct Rows {
    int64_t whole = 0, own = 0, count = 0;  // rows from `whole` on are its own rows from `own` on
    int sharers = 1;                        // neighbouring ranks that have the same ones
  };
  std::vector<Rows> rows;
  Share columns;  // of a matrix; {0, 1} of a vector
  // Of elements that several ranks have: has each only a summand of their gradients, or the sum?
  bool has_summands = false;

  [[nodiscard]] int64_t num_rows() const;
};

// Of every parameter of make_parameters(whole, head). One rank alone has all of all.
[[nodiscard]] std::vector<ParameterPart> parameter_parts(const ModelConfig& whole, const HeadOptions& head, const TensorSplit& split);
// Of the parameters of adapters on these slices of the complete model: adapter_specs().
[[nodiscard]] std::vector<ParameterPart> adapter_parts(const ModelConfig& whole, const HeadOptions& head,
                                                       const std::vector<LinearSlice>& slices, const std::vector<ParameterSpec>& specs,
                                                       const TensorSplit& split);

// The rank's own parameters.
[[nodiscard]] std::vector<ParameterSpec> split_specs(const std::vector<ParameterSpec>& whole, const std::vector<ParameterPart>& parts);

}  // namespace kedge
