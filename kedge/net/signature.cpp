#include "kedge/net/signature.h"

#include <algorithm>
#include <charconv>

#include "kedge/core/error.h"

namespace kedge {
namespace {

Json list_of(const std::vector<int64_t>& values) { return Json::Array(values.begin(), values.end()); }

Json text_list(std::string_view text) { return Json::Array{Json(text)}; }

Json::Object text_value(const std::string& text) { return {{"string_value", text}}; }

Json metadata_of(const std::vector<TensorSpec>& specs, bool is_batched) {
  Json::Array list;
  for (const TensorSpec& spec : specs) {
    std::vector<int64_t> shape = spec.dims;
    if (is_batched) shape.insert(shape.begin(), -1);
    list.push_back(Json::Object{{"name", spec.name}, {"datatype", name_of(spec.type)}, {"shape", list_of(shape)}});
  }
  return list;
}

Json config_of(const std::vector<TensorSpec>& specs) {
  Json::Array list;
  for (const TensorSpec& spec : specs) {
    Json::Object entry{{"name", spec.name}, {"data_type", config_name_of(spec.type)}, {"dims", list_of(spec.dims)}};
    if (spec.optional) entry.emplace_back("optional", true);
    list.emplace_back(std::move(entry));
  }
  return list;
}

// Servers that print their configuration as protobuf does write 64-bit numbers as texts.
int64_t read_integer(const Json& value, const std::string& where) {
  if (!value.is_text()) return value.as_integer(where);
  const std::string& text = value.as_text(where);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  check(error == std::errc() && end == text.data() + text.size(), where, ": expected an integer, found \"", text, "\"");
  return number;
}

std::vector<int64_t> read_integers(const Json& list, const std::string& where) {
  std::vector<int64_t> numbers;
  for (const Json& value : list.as_array(where)) numbers.push_back(read_integer(value, where));
  return numbers;
}

std::vector<TensorSpec> read_specs(const Json& config, const std::string& kind, const std::string& model) {
  std::vector<TensorSpec> specs;
  const Json* list = config.find(kind);
  if (list == nullptr) return specs;
  for (const Json& entry : list->as_array(str(model, ": ", kind))) {
    const std::string number = str(model, ": ", kind, " ", specs.size());
    TensorSpec spec{.name = entry.at("name", number).as_text(number + ": name")};
    const std::string where = str(model, ": ", kind, " \"", spec.name, "\"");
    const std::string& type = entry.at("data_type", where).as_text(where + ": data_type");
    check(find_config_wire_type(type, spec.type), where, ": no data_type \"", type, "\"");
    spec.dims = read_integers(entry.at("dims", where), where + ": dims");
    if (const Json* optional = entry.find("optional")) spec.optional = optional->as_bool(where + ": optional");
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::vector<std::pair<std::string, std::string>> read_parameters(const Json* parameters) {
  std::vector<std::pair<std::string, std::string>> texts;
  const auto add = [&](const std::string& name, const Json* value) {
    const Json* text = value == nullptr ? nullptr : value->find("string_value");
    if (text != nullptr && text->is_text()) texts.emplace_back(name, text->as_text(""));
  };
  if (parameters != nullptr && parameters->is_object()) {
    for (const auto& [name, value] : parameters->as_object("")) add(name, &value);
  } else if (parameters != nullptr && parameters->is_array()) {
    for (const Json& entry : parameters->as_array(""))
      if (const Json* key = entry.find("key"); key != nullptr && key->is_text()) add(key->as_text(""), entry.find("value"));
  }
  return texts;
}

ModelSignature read_config(const Json& config) {
  ModelSignature signature{.name = config.at("name", "model configuration").as_text("model configuration: name")};
  const std::string model = "configuration of model " + signature.name;
  if (const Json* size = config.find("max_batch_size")) signature.max_batch_size = read_integer(*size, model + ": max_batch_size");
  signature.inputs = read_specs(config, "input", model);
  signature.outputs = read_specs(config, "output", model);
  if (const Json* batching = config.find("dynamic_batching")) {
    static_cast<void>(batching->as_object(model + ": dynamic_batching"));
    if (const Json* sizes = batching->find("preferred_batch_size"))
      signature.preferred_batch_sizes = read_integers(*sizes, model + ": preferred_batch_size");
    if (const Json* delay = batching->find("max_queue_delay_microseconds"))
      signature.max_queue_delay_us = read_integer(*delay, model + ": max_queue_delay_microseconds");
  }
  signature.parameters = read_parameters(config.find("parameters"));
  return signature;
}

std::string names_of(const std::vector<TensorSpec>& specs) {
  std::string names;
  for (const TensorSpec& spec : specs) names += (names.empty() ? "" : ", ") + spec.name;
  return names;
}

const TensorSpec* find_spec(const std::vector<TensorSpec>& specs, std::string_view name) {
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

void check_input(const WireTensor& input, const TensorSpec& spec, bool is_batched, const std::string& model) {
  const std::string where = str(model, ": input \"", input.name, "\"");
  check_request(input.type == spec.type, where, ": expected ", name_of(spec.type), ", found ", name_of(input.type));
  std::vector<int64_t> wanted = spec.dims;
  if (is_batched) wanted.insert(wanted.begin(), -1);
  const bool fits = std::equal(wanted.begin(), wanted.end(), input.shape.begin(), input.shape.end(),
                               [](int64_t want, int64_t found) { return want == -1 || want == found; });
  check_request(fits, where, ": expected the shape ", shape_json(wanted), is_batched ? " with the rows first" : "",
                ", -1 being any size, found ", shape_json(input.shape));
}

}  // namespace

std::string parameter_of(const ModelSignature& signature, std::string_view name) {
  for (const auto& [key, value] : signature.parameters)
    if (key == name) return value;
  return {};
}

Json model_metadata(const ModelSignature& signature) {
  const bool is_batched = signature.max_batch_size > 0;
  return Json::Object{{"name", signature.name},
                      {"versions", text_list("1")},
                      {"platform", "python"},
                      {"inputs", metadata_of(signature.inputs, is_batched)},
                      {"outputs", metadata_of(signature.outputs, is_batched)}};
}

Json model_config(const ModelSignature& signature) {
  Json::Object parameters;
  for (const auto& [name, text] : signature.parameters) parameters.emplace_back(name, text_value(text));
  Json::Object config{{"name", signature.name},
                      {"platform", ""},
                      {"backend", "python"},
                      {"max_batch_size", signature.max_batch_size},
                      {"version_policy", Json::Object{{"latest", Json::Object{{"num_versions", 1}}}}},
                      {"input", config_of(signature.inputs)},
                      {"output", config_of(signature.outputs)},
                      {"instance_group", Json::Array{Json::Object{{"name", signature.name + "_0"}, {"kind", "KIND_CPU"}, {"count", 1}}}}};
  if (signature.max_batch_size > 0)
    config.emplace_back("dynamic_batching", Json::Object{{"preferred_batch_size", list_of(signature.preferred_batch_sizes)},
                                                         {"max_queue_delay_microseconds", signature.max_queue_delay_us}});
  config.emplace_back("parameters", std::move(parameters));
  config.emplace_back("model_warmup", Json::Array{});
  return config;
}

ModelSignature read_model_config(const Json& config) {
  try {
    return read_config(config);
  } catch (const UsageError& error) {  // not a user error: a server wrote it
    throw Error(error.what());
  }
}

int64_t check_inputs(const ModelSignature& signature, const InferRequest& request) {
  const std::string model = "model " + signature.name;
  const bool is_batched = signature.max_batch_size > 0;
  check_request(!request.inputs.empty(), model, ": expected inputs, found none; it takes ", names_of(signature.inputs));
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const WireTensor& input = request.inputs[i];
    const TensorSpec* spec = find_spec(signature.inputs, input.name);
    check_request(spec != nullptr, model, ": no input \"", input.name, "\"; it takes ", names_of(signature.inputs));
    check_request(find_tensor(request.inputs, input.name) == &input, model, ": input \"", input.name, "\" occurs twice");
    check_input(input, *spec, is_batched, model);
  }
  for (const TensorSpec& spec : signature.inputs)
    check_request(spec.optional || find_tensor(request.inputs, spec.name) != nullptr, model, ": input \"", spec.name, "\" is missing");
  if (!is_batched) return 1;

  const WireTensor& first = request.inputs.front();
  const int64_t rows = first.shape.front();
  for (const WireTensor& input : request.inputs)
    check_request(input.shape.front() == rows, model, ": inputs of one request need the same number of rows, found ", rows, " in \"",
                  first.name, "\" and ", input.shape.front(), " in \"", input.name, "\"");
  check_request(rows > 0, model, ": expected 1 row or more, found 0 in \"", first.name, "\"");
  check_request(rows <= signature.max_batch_size, model, ": expected ", signature.max_batch_size, " rows at most, found ", rows, " in \"",
                first.name, "\"");
  return rows;
}

std::vector<OutputWish> wanted_outputs(const ModelSignature& signature, const InferRequest& request) {
  const Json* all_binary = request.parameters.find("binary_data_output");
  std::vector<OutputWish> outputs;
  if (!request.outputs) {
    for (const TensorSpec& spec : signature.outputs)
      outputs.push_back({.name = spec.name, .binary = all_binary != nullptr && all_binary->as_bool("binary_data_output")});
    return outputs;
  }
  for (const OutputWish& wish : *request.outputs)
    check_request(find_spec(signature.outputs, wish.name) != nullptr, "model ", signature.name, ": no output \"", wish.name,
                  "\"; it gives ", names_of(signature.outputs));
  for (const TensorSpec& spec : signature.outputs)
    for (const OutputWish& wish : *request.outputs)
      if (wish.name == spec.name) outputs.push_back(wish);
  return outputs;
}

std::optional<WireTensor> raw_input(const ModelSignature& signature) {
  if (signature.inputs.size() != 1) return std::nullopt;
  const TensorSpec& spec = signature.inputs.front();
  WireTensor input{.name = spec.name, .type = spec.type, .shape = spec.dims};
  if (signature.max_batch_size > 0) input.shape.insert(input.shape.begin(), 1);
  return input;
}

}  // namespace kedge
