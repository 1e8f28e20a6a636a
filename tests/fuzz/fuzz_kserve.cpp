// Bytes as a request, a reply and a model's configuration: they are refused with the errors their callers expect, or what was read is
// written and read again to the same. The first byte says whether a header length is given and which input bare data would be; the next two
// are that length.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/core/error.h"
#include "kedge/net/kserve.h"
#include "kedge/net/signature.h"

namespace {

using namespace kedge;

const ModelSignature kSignature{.name = "m",
                                .max_batch_size = 8,
                                .inputs = {{"x", WireType::int64, {-1}, true}, {"t", WireType::bytes, {1}, true}},
                                .outputs = {{"y", WireType::fp32, {1}}, {"z", WireType::fp32, {-1}}}};

bool has_uint64(const std::vector<WireTensor>& tensors) {
  for (const WireTensor& tensor : tensors)
    if (tensor.type == WireType::uint64) return true;  // JSON does not keep the upper half of its range
  return false;
}

// Rows taken apart and put together are the tensor again.
void check_rows(const std::vector<WireTensor>& tensors) {
  for (const WireTensor& tensor : tensors) {
    if (tensor.shape.empty()) continue;
    const int64_t half = tensor.shape.front() / 2;
    const WireTensor top = take_rows(tensor, 0, half);
    const WireTensor bottom = take_rows(tensor, half, tensor.shape.front() - half);
    const WireTensor* const parts[] = {&top, &bottom};
    ensure(join_rows(parts) == tensor, "rows do not join to what they were taken from");
  }
}

void fuzz_request(std::string_view body, std::optional<int64_t> header_length, const std::optional<WireTensor>& raw) {
  InferRequest request;
  try {
    request = parse_request(body, header_length, raw);
  } catch (const RequestError&) {
    return;
  }
  check_rows(request.inputs);
  const KserveBody binary = write_request(request);
  ensure(parse_request(binary.bytes, binary.header_length) == request, "a request reads back otherwise");
  try {
    const KserveBody json = write_request(request, false);
    ensure(has_uint64(request.inputs) || parse_request(json.bytes, json.header_length) == request, "a JSON request reads back otherwise");
  } catch (const RequestError& error) {
    ensure(error.status() == 500 || has_uint64(request.inputs) || std::string_view(error.what()).ends_with("send it as binary data"),
           error.what());
  }
  try {
    static_cast<void>(wanted_outputs(kSignature, request));
    ensure(check_inputs(kSignature, request) > 0, "a request without rows was let in");
  } catch (const RequestError&) {
  }
}

void fuzz_reply(std::string_view body, std::optional<int64_t> header_length) {
  InferReply reply;
  try {
    reply = parse_reply(body, header_length);
  } catch (const RequestError&) {
    throw Bug("a reply's fault was blamed on a request");
  } catch (const UsageError&) {
    throw Bug("a reply's fault was blamed on the user");
  } catch (const Error&) {
    return;
  }
  const KserveBody binary = write_reply(reply, std::vector<bool>(reply.outputs.size(), true));
  ensure(parse_reply(binary.bytes, binary.header_length) == reply, "a reply reads back otherwise");
  if (has_uint64(reply.outputs)) return;
  KserveBody json;
  try {
    json = write_reply(reply, std::vector<bool>(reply.outputs.size(), false));
  } catch (const RequestError&) {  // what JSON cannot say
    return;
  }
  ensure(!json.header_length && parse_reply(json.bytes, {}) == reply, "a JSON reply reads back otherwise");
}

void fuzz_config(std::string_view body) {
  try {
    const ModelSignature once = read_model_config(model_config(read_model_config(Json::parse(body))));
    ensure(read_model_config(Json::parse(model_config(once).dump_compact())) == once, "a configuration reads back otherwise");
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  int16_t length = 0;
  std::memcpy(&length, data + 1, sizeof(length));
  const std::string_view body(reinterpret_cast<const char*>(data) + 3, size - 3);
  const auto header_length = (data[0] & 1U) != 0 ? std::optional<int64_t>(length) : std::nullopt;
  std::optional<WireTensor> raw;
  if ((data[0] & 2U) != 0) raw = WireTensor{.name = "x", .type = static_cast<WireType>((data[0] >> 2U) % 14U), .shape = {1, -1}};
  fuzz_request(body, header_length, raw);
  fuzz_reply(body, header_length);
  fuzz_config(body);
  return 0;
}
