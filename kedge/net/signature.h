#pragma once
// What a served model takes and gives: names, types and shapes, told to clients as the KServe protocol words it, and held against every
// request. Knows no HTTP and no model.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/net/kserve.h"
#include "kedge/net/wire_tensor.h"

namespace kedge {

struct TensorSpec {
  std::string name;
  WireType type = WireType::fp32;
  std::vector<int64_t> dims = {};  // without the batch where the model is batched; -1: any size
  bool optional = false;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

struct ModelSignature {
  std::string name;
  int64_t max_batch_size = 0;  // above 0: requests of several rows, which may be run together; 0: the whole shape is in `dims`
  std::vector<TensorSpec> inputs = {}, outputs = {};
  std::vector<int64_t> preferred_batch_sizes = {};
  int64_t max_queue_delay_us = 0;
  std::vector<std::pair<std::string, std::string>> parameters = {};  // told to clients in the configuration

  friend bool operator==(const ModelSignature&, const ModelSignature&) = default;
};

// Empty where there is none of that name.
[[nodiscard]] std::string parameter_of(const ModelSignature& signature, std::string_view name);

[[nodiscard]] Json model_metadata(const ModelSignature& signature);  // of GET /v2/models/NAME
[[nodiscard]] Json model_config(const ModelSignature& signature);    // of GET /v2/models/NAME/config
// The other way, as a client reads it from any server. An Error that names what is missing; parameters that are no texts are passed over.
[[nodiscard]] ModelSignature read_model_config(const Json& config);

// RequestError (400) where names, types, ranks, fixed sizes or numbers of rows are not as declared. Returns the rows of a request to a
// batched model, 1 for another.
int64_t check_inputs(const ModelSignature& signature, const InferRequest& request);

// What the reply must hold, in the order of the declaration; RequestError (400) where an output is wanted that the model has not.
[[nodiscard]] std::vector<OutputWish> wanted_outputs(const ModelSignature& signature, const InferRequest& request);

// The one input of a model that takes no other, as parse_request wants it: one row where the model is batched. None for other models.
[[nodiscard]] std::optional<WireTensor> raw_input(const ModelSignature& signature);

}  // namespace kedge
