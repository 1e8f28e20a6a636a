// Calls models of any server for the interop tests: a JSON line says what to send, and another says what came back.
//
//   call_model HOST PORT [START_LIMIT_S]
//
// {"config": "NAME"} -> {"is_kedge": ..., "config": {...}}, the model's signature as its server told it, in our words.
// {"calls": [{"model": "NAME", "inputs": [{"name", "datatype", "shape", "data"}], "parameters": {...}, "by_key": false}, ...]} sends all
// at once -> {"replies": [...]}, in their order; each {"outputs": [...], "parameters": {...}}, or {"error": "...", "status": n}, the
// status being null where the server did not answer.
#include <chrono>
#include <future>
#include <iostream>
#include <string>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/net/model_client.h"
#include "kedge/net/tensor_json.h"

namespace kedge {
namespace {

WireTensor read_tensor(const Json& json) {
  WireTensor tensor;
  tensor.name = json.at("name", "input").as_text("name");
  const std::string& type = json.at("datatype", tensor.name).as_text("datatype");
  check(find_wire_type(type, tensor.type), tensor.name, ": no type is named ", type);
  for (const Json& size : json.at("shape", tensor.name).as_array("shape")) tensor.shape.push_back(size.as_integer("shape"));
  read_json_data(json.at("data", tensor.name), tensor.name, tensor);
  return tensor;
}

Json write_tensor(const WireTensor& tensor) {
  Json::Array shape;
  for (const int64_t size : tensor.shape) shape.emplace_back(size);
  std::string data;
  append_json_data(tensor, data);
  return Json::Object{
      {"name", tensor.name}, {"datatype", name_of(tensor.type)}, {"shape", std::move(shape)}, {"data", Json::parse(data, tensor.name)}};
}

std::future<InferReply> send(ModelClient& client, const Json& call) {
  InferRequest request;
  for (const Json& input : call.at("inputs", "call").as_array("inputs")) request.inputs.push_back(read_tensor(input));
  if (const Json* parameters = call.find("parameters")) request.parameters = *parameters;
  const Json* by_key = call.find("by_key");
  const bool has_key = by_key != nullptr && by_key->as_bool("by_key");
  return client.infer(call.at("model", "call").as_text("model"), std::move(request), has_key ? Resend::by_key : Resend::safe);
}

Json reply_of(std::future<InferReply> answer) {
  try {
    const InferReply reply = answer.get();
    Json::Array outputs;
    for (const WireTensor& output : reply.outputs) outputs.push_back(write_tensor(output));
    return Json::Object{{"outputs", std::move(outputs)}, {"parameters", reply.parameters}};
  } catch (const RemoteError& error) {
    return Json::Object{{"error", error.what()}, {"status", error.status()}};
  } catch (const std::exception& error) {
    return Json::Object{{"error", error.what()}, {"status", nullptr}};
  }
}

Json answer(ModelClient& client, const Json& line) {
  if (const Json* model = line.find("config")) {
    const ModelSignature signature = client.signature(model->as_text("config"));
    return Json::Object{{"is_kedge", client.is_kedge()}, {"config", model_config(signature)}};
  }
  std::vector<std::future<InferReply>> answers;
  for (const Json& call : line.at("calls", "line").as_array("calls")) answers.push_back(send(client, call));
  Json::Array replies;
  for (std::future<InferReply>& one : answers) replies.push_back(reply_of(std::move(one)));
  return Json::Object{{"replies", std::move(replies)}};
}

int run(int argc, char** argv) {
  check(argc >= 3, "usage: call_model HOST PORT [START_LIMIT_S]");
  ClientOptions options;
  options.server = {.label = "peer", .host = argv[1], .port = std::stoll(argv[2]), .keys = "HOST and PORT"};
  if (argc > 3) options.server.start_limit = options.server.return_limit = std::chrono::seconds(std::stoll(argv[3]));
  ModelClient client(options);
  for (std::string line; std::getline(std::cin, line);) {
    Json reply;
    try {
      reply = answer(client, Json::parse(line, "line"));
    } catch (const std::exception& error) {
      reply = Json::Object{{"error", error.what()}};
    }
    std::cout << reply.dump() << std::endl;  // whoever asked waits for it
  }
  return 0;
}

}  // namespace
}  // namespace kedge

int main(int argc, char** argv) {
  try {
    return kedge::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
