#pragma once
// Inputs and outputs of a served model: names, types and shapes, in the format of the KServe protocol, and checked for every
// request. Independent of HTTP and models.
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
  std::vector<int64_t> dims = {};  // without the batch dimension if the model is batched; -1: any size
  bool optional = false;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

struct ModelSignature {
  std::string name;
  int64_t max_batch_size = 0;  // above 0: requests of several rows, which may be run together; 0: the complete shape is in `dims`
  std::vector<TensorSpec> inputs = {}, outputs = {};
  std::vector<int64_t> preferred_batch_sizes = {};
  int64_t max_queue_delay_us = 0;
  std::vector<std::pair<std::string, std::string>> parameters = {};  // part of the configuration for clients

  friend bool operator==(const ModelSignature&, const ModelSignature&) = default;
};

// Empty if there is none of that name.
[[nodiscard]] std::string parameter_of(const ModelSignature& signature, std::string_view name);

[[nodiscard]] Json model_metadata(const ModelSignature& signature);  // of GET /v2/models/NAME
[[nodiscard]] Json model_config(const ModelSignature& signature);    // of GET /v2/models/NAME/config
// The other way, as a client reads it from any server. An Error that names what is missing; parameters that are not texts are ignored.
[[nodiscard]] ModelSignature read_model_config(const Json& config);

// RequestError (400) if names, types, ranks, fixed sizes or numbers of rows are not as declared. Returns the rows of a request to a
// batched model, 1 for another.
int64_t check_inputs(const ModelSignature& signature, const InferRequest& request);

// What the reply must hold, in the order of the declaration; RequestError (400) if a requested output does not exist.
[[nodiscard]] std::vector<OutputWish> wanted_outputs(const ModelSignature& signature, const InferRequest& request);

// The one input of a model that takes no other, for parse_request: one row if the model is batched. None for other models.
[[nodiscard]] std::optional<WireTensor> raw_input(const ModelSignature& signature);

}  // namespace kedge
