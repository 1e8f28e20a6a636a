#pragma once
// The bodies of KServe v2 calls, with Triton's binary tensors: requests and replies to bytes and back. Parsing trusts nothing: anything
// wrong is a RequestError with its place. Independent of HTTP and models.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/net/request_error.h"
#include "kedge/net/wire_tensor.h"

namespace kedge {

// A body, and how many bytes of it are JSON where binary tensors follow; without that, all of it is.
struct KserveBody {
  std::string bytes;
  std::optional<int64_t> header_length = {};
};

struct OutputWish {
  std::string name;
  bool binary = false;

  friend bool operator==(const OutputWish&, const OutputWish&) = default;
};

struct InferRequest {
  std::optional<std::string> id = {};
  Json parameters = Json(Json::Object{});
  std::vector<WireTensor> inputs = {};
  std::optional<std::vector<OutputWish>> outputs = {};  // none: all of the model's, binary where the parameter binary_data_output says so

  friend bool operator==(const InferRequest&, const InferRequest&) = default;
};

struct InferReply {
  std::optional<std::string> id = {};
  std::string model_name;
  std::string model_version = "1";
  Json parameters = Json(Json::Object{});
  std::vector<WireTensor> outputs = {};
  std::string sender = {};  // for people: which of several servers gave it; not sent

  friend bool operator==(const InferReply&, const InferReply&) = default;
};

// What a client sends: inputs binary, or as JSON lists, which people can read.
[[nodiscard]] KserveBody write_request(const InferRequest& request, bool inputs_binary = true);
// `raw_input` is the one input of a model that has no other, without its bytes: such a model may be sent bare data (header length 0). One
// size of its shape may be -1 and follows from the data. 64 MiB of JSON at most.
[[nodiscard]] InferRequest parse_request(std::string_view body, std::optional<int64_t> header_length,
                                         const std::optional<WireTensor>& raw_input = {});

// `binary`, of one output: whether it follows the JSON as bytes. What JSON cannot represent (NaN, infinities) is RequestError 500.
[[nodiscard]] KserveBody write_reply(const InferReply& reply, const std::vector<bool>& binary);
// An Error if a server's reply is invalid.
[[nodiscard]] InferReply parse_reply(std::string_view body, std::optional<int64_t> header_length);

[[nodiscard]] std::string error_body(std::string_view text);  // {"error":"..."}

}  // namespace kedge
