#include "kedge/net/kserve.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kedge/net/tensor_json.h"

namespace kedge {
namespace {

constexpr size_t kMaxJsonBytes = size_t{64} << 20U;

std::string in_quotes(std::string_view text) { return Json(text).dump(); }

// The JSON of a body as it grows, and the tensors whose bytes are to follow it.
class BodyWriter {
 public:
  // The next member of the open object; its value follows.
  void key(std::string_view name) {
    out += out.empty() ? '{' : ',';
    out += in_quotes(name) + ":";
  }
  // Everything of one tensor after its name, type and shape.
  void data(const WireTensor& tensor, bool binary) {
    if (binary) {
      out += str(R"(,"parameters":{"binary_data_size":)", tensor.data.size(), "}}");
      payloads_.push_back(tensor.data);
    } else {
      out += R"(,"data":)";
      append_json_data(tensor, out);
      out += '}';
    }
  }
  KserveBody take() {
    out += '}';
    size_t num_bytes = 0;
    for (const std::string_view payload : payloads_) num_bytes += payload.size();
    KserveBody body{.bytes = std::move(out)};
    if (num_bytes == 0) return body;
    body.header_length = static_cast<int64_t>(body.bytes.size());
    body.bytes.reserve(body.bytes.size() + num_bytes);
    for (const std::string_view payload : payloads_) body.bytes += payload;
    return body;
  }

  std::string out;

 private:
  std::vector<std::string_view> payloads_;
};

bool has_members(const Json& object) { return !object.as_object("parameters").empty(); }

// A list of objects in brackets.
template <typename Item, typename Write>
void write_list(std::string& out, const std::vector<Item>& items, Write&& write) {
  out += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ',';
    write(items[i], i);
  }
  out += ']';
}

// The JSON of a body and the bytes after it.
struct Parts {
  std::string_view json, binary;
};

Parts split(std::string_view body, std::optional<int64_t> header_length) {
  if (!header_length) return {body, {}};
  check_request(*header_length >= 0 && std::cmp_less_equal(*header_length, body.size()), "Inference-Header-Content-Length is ",
                *header_length, ", the body has ", body.size(), " bytes");
  return {body.substr(0, static_cast<size_t>(*header_length)), body.substr(static_cast<size_t>(*header_length))};
}

// The member as an object; an empty one if there is none.
const Json& parameters_of(const Json& object, std::string_view where) {
  static const Json kNone{Json::Object{}};
  const Json* parameters = object.find("parameters");
  if (parameters == nullptr) return kNone;
  for (const auto& [name, value] : parameters->as_object(str(where, ": parameters")))
    check_request(value.is_text() || value.is_number() || value.is_bool(), where, ": parameter \"", name,
                  "\": expected a string, a number, true or false, found ", name_of(value.kind()));
  return *parameters;
}

std::optional<std::string> id_of(const Json& object) {
  const Json* id = object.find("id");
  return id == nullptr ? std::nullopt : std::optional(id->as_text("id"));
}

// `kind` is "input" or "output".
std::string name_in(const Json& entry, std::string_view kind, size_t number) {
  const std::string where = str(kind, " ", number);
  std::string name = entry.at("name", where).as_text(str(where, ": name"));
  check_request(!name.empty(), where, ": the name is empty");
  return name;
}

std::vector<int64_t> shape_in(const Json& entry, const std::string& where) {
  const std::string place = where + ": shape";
  std::vector<int64_t> shape;
  for (const Json& size : entry.at("shape", where).as_array(place)) {
    shape.push_back(size.as_integer(place));
    check_request(shape.back() >= 0, place, ": expected sizes of at least 0, found ", shape.back());
  }
  return shape;
}

// One tensor of a request or reply; takes its bytes away from the front of `binary` where it has some there.
WireTensor read_tensor(const Json& entry, std::string_view kind, size_t number, std::string_view& binary) {
  WireTensor tensor{.name = name_in(entry, kind, number)};
  const std::string where = str(kind, " \"", tensor.name, "\"");
  tensor.shape = shape_in(entry, where);
  const std::string& type = entry.at("datatype", where).as_text(where + ": datatype");
  check_request(find_wire_type(type, tensor.type), where, ": no datatype \"", type, "\"");

  const Json& parameters = parameters_of(entry, where);
  const Json* data = entry.find("data");
  const Json* size = parameters.find("binary_data_size");
  const Json* region = parameters.find("shared_memory_region");
  const int num_given = (data != nullptr ? 1 : 0) + (size != nullptr ? 1 : 0) + (region != nullptr ? 1 : 0);
  check_request(num_given == 1, where, ": expected exactly one of data, binary_data_size and shared_memory_region, found ", num_given);
  if (region != nullptr) throw RequestError(501, where + ": shared memory is not supported; send the data in the body");
  if (data != nullptr) {
    read_json_data(*data, where, tensor);
    return tensor;
  }
  const int64_t num_bytes = size->as_integer(where + ": binary_data_size");
  check_request(num_bytes >= 0, where, ": binary_data_size is ", num_bytes);
  check_request(std::cmp_less_equal(num_bytes, binary.size()), where, ": binary_data_size is ", num_bytes, ", the body has ", binary.size(),
                " bytes left; without Inference-Header-Content-Length all of it is JSON");
  tensor.data = binary.substr(0, static_cast<size_t>(num_bytes));
  binary.remove_prefix(static_cast<size_t>(num_bytes));
  check_tensor_data(tensor);
  return tensor;
}

std::vector<WireTensor> read_tensors(const Json& list, std::string_view kind, std::string_view binary) {
  std::vector<WireTensor> tensors;
  std::set<std::string, std::less<>> names;
  for (const Json& entry : list.as_array(str(kind, "s"))) {
    tensors.push_back(read_tensor(entry, kind, tensors.size(), binary));
    check_request(names.insert(tensors.back().name).second, kind, " \"", tensors.back().name, "\" occurs twice");
  }
  check_request(binary.empty(), "the body has ", binary.size(), " bytes more than its ", kind, "s");
  return tensors;
}

std::vector<OutputWish> read_wishes(const Json& list) {
  std::vector<OutputWish> wishes;
  std::set<std::string, std::less<>> names;
  for (const Json& entry : list.as_array("outputs")) {
    OutputWish wish{.name = name_in(entry, "output", wishes.size())};
    const std::string where = str("output \"", wish.name, "\"");
    const Json& parameters = parameters_of(entry, where);
    for (const auto* unsupported : {"shared_memory_region", "classification"})
      if (parameters.find(unsupported) != nullptr) throw RequestError(501, str(where, ": ", unsupported, " is not supported"));
    if (const Json* binary = parameters.find("binary_data")) wish.binary = binary->as_bool(where + ": binary_data");
    check_request(names.insert(wish.name).second, where, " occurs twice");
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

// A body that is nothing but the data of the model's one input.
InferRequest read_raw(std::string_view body, const std::optional<WireTensor>& raw_input) {
  check_request(raw_input.has_value(), "a body without JSON (Inference-Header-Content-Length 0) requires a model with one input");
  InferRequest request;
  request.parameters.set("binary_data_output", true);
  WireTensor& tensor = request.inputs.emplace_back(*raw_input);
  const auto open = std::find(tensor.shape.begin(), tensor.shape.end(), -1);
  if (tensor.type == WireType::bytes) {
    if (open != tensor.shape.end()) *open = 1;
    append_text(tensor.data, body);  // bare, without its length
  } else {
    tensor.data = body;
    if (open != tensor.shape.end()) {
      *open = 1;
      const int64_t unit = num_elements(tensor.shape) * bytes_of(tensor.type);
      check_request(unit > 0, "input \"", tensor.name, "\": the shape ", shape_json(raw_input->shape), " does not follow from bare data");
      *open = static_cast<int64_t>(body.size()) / unit;
    }
  }
  check_tensor_data(tensor);
  return request;
}

InferRequest read_request(const Parts& parts) {
  check_request(parts.json.size() <= kMaxJsonBytes, "the request has ", parts.json.size(), " bytes of JSON, more than ", kMaxJsonBytes,
                "; send tensors as binary data");
  const Json json = Json::parse(parts.json, "request");
  const Json& inputs = json.at("inputs", "request");
  InferRequest request{.id = id_of(json), .parameters = parameters_of(json, "request")};
  for (const auto& [name, value] : request.parameters.as_object("parameters"))
    check_request(!name.starts_with("triton_"), "request: parameter \"", name, "\": names that start with triton_ are reserved");
  if (const Json* flag = request.parameters.find("binary_data_output")) static_cast<void>(flag->as_bool("request: binary_data_output"));
  request.inputs = read_tensors(inputs, "input", parts.binary);
  if (const Json* outputs = json.find("outputs")) request.outputs = read_wishes(*outputs);
  return request;
}

InferReply read_reply(const Parts& parts) {
  const Json json = Json::parse(parts.json, "reply");
  InferReply reply{.id = id_of(json), .model_name = json.at("model_name", "reply").as_text("reply: model_name")};
  if (const Json* version = json.find("model_version")) reply.model_version = version->as_text("reply: model_version");
  reply.parameters = parameters_of(json, "reply");
  reply.outputs = read_tensors(json.at("outputs", "reply"), "output", parts.binary);
  return reply;
}

}  // namespace

KserveBody write_request(const InferRequest& request, bool inputs_binary) {
  BodyWriter body;
  if (request.id) body.key("id"), body.out += in_quotes(*request.id);
  body.key("inputs");
  write_list(body.out, request.inputs, [&](const WireTensor& input, size_t) {
    body.out +=
        str(R"({"name":)", in_quotes(input.name), R"(,"shape":)", shape_json(input.shape), R"(,"datatype":")", name_of(input.type), '"');
    body.data(input, inputs_binary);
  });
  if (request.outputs) {
    body.key("outputs");
    write_list(body.out, *request.outputs, [&](const OutputWish& wish, size_t) {
      body.out += str(R"({"name":)", in_quotes(wish.name), wish.binary ? R"(,"parameters":{"binary_data":true}})" : "}");
    });
  }
  if (has_members(request.parameters)) body.key("parameters"), body.out += request.parameters.dump_compact();
  return body.take();
}

InferRequest parse_request(std::string_view body, std::optional<int64_t> header_length, const std::optional<WireTensor>& raw_input) {
  if (header_length == 0) return read_raw(body, raw_input);
  try {
    return read_request(split(body, header_length));
  } catch (const UsageError& error) {  // of the JSON
    throw RequestError(400, error.what());
  }
}

KserveBody write_reply(const InferReply& reply, const std::vector<bool>& binary) {
  ensure(binary.size() == reply.outputs.size(), reply.outputs.size(), " outputs, ", binary.size(), " of them said to be binary or not");
  BodyWriter body;
  if (reply.id) body.key("id"), body.out += in_quotes(*reply.id);
  body.key("model_name"), body.out += in_quotes(reply.model_name);
  body.key("model_version"), body.out += in_quotes(reply.model_version);
  if (has_members(reply.parameters)) body.key("parameters"), body.out += reply.parameters.dump_compact();
  body.key("outputs");
  write_list(body.out, reply.outputs, [&](const WireTensor& output, size_t i) {
    body.out +=
        str(R"({"name":)", in_quotes(output.name), R"(,"datatype":")", name_of(output.type), R"(","shape":)", shape_json(output.shape));
    body.data(output, binary[i]);
  });
  return body.take();
}

InferReply parse_reply(std::string_view body, std::optional<int64_t> header_length) {
  try {
    return read_reply(split(body, header_length));
  } catch (const Error& error) {  // of the JSON or of a tensor: here it is the server that is wrong
    throw Error(str("the server's reply is invalid: ", error.what()));
  }
}

std::string error_body(std::string_view text) {
  Json body;
  body.set("error", text);
  return body.dump_compact();
}

}  // namespace kedge
