#include "kedge/net/model_server.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/core/version.h"
#include "kedge/net/auth_token.h"
#include "kedge/net/own_host.h"
#include "kedge/net/packed_body.h"
#include "kedge/net/request_error.h"

namespace kedge {
namespace {

constexpr const char* kHeaderLength = "Inference-Header-Content-Length";
constexpr size_t kReadAtOnce = 1 << 20;  // larger bodies take longer to read than others should wait for

HttpResponse json_response(const Json& json) { return {200, {{"Content-Type", "application/json"}}, json.dump_compact()}; }

void want_method(const HttpRequest& request, std::string_view method) {
  if (request.method != method) throw RequestError(405, str(request.target, ": expected ", method, ", found ", request.method));
}

InferRequest read_request(const HttpRequest& request, const ModelSignature& signature, int64_t max_bytes, const HttpReply& reply) {
  const std::optional<int64_t> header_length = find_count(request.headers, kHeaderLength);
  const std::string encoding = find_header(request.headers, "Content-Encoding").value_or("identity");
  if (encoding == "identity") return parse_request(request.body, header_length, raw_input(signature));
  return parse_request(unpack_body(request.body, encoding, max_bytes, [&](int64_t more) { reply.hold(more); }), header_length,
                       raw_input(signature));
}

HttpResponse reply_response(const std::string& model, const std::optional<std::string>& id, const std::vector<OutputWish>& wishes,
                            ServedResult result) {
  InferReply reply{.id = id, .model_name = model, .parameters = std::move(result.parameters)};
  std::vector<bool> binary;
  for (const OutputWish& wish : wishes) {
    const auto output =
        std::find_if(result.outputs.begin(), result.outputs.end(), [&](const WireTensor& tensor) { return tensor.name == wish.name; });
    ensure(output != result.outputs.end(), model, " gave no ", wish.name);
    reply.outputs.push_back(std::move(*output));
    binary.push_back(wish.binary);
  }
  KserveBody body = write_reply(reply, binary);
  HttpResponse response{200, {{"Content-Type", "application/json"}}, std::move(body.bytes)};
  if (body.header_length)
    response.headers = {{"Content-Type", "application/octet-stream"}, {kHeaderLength, std::to_string(*body.header_length)}};
  return response;
}

HttpResponse failure_response(std::exception_ptr error) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const RequestError& request_error) {
    return error_response(request_error.status(), request_error.what());
  } catch (const std::exception& exception) {
    log_error("a call failed: ", exception.what());
    return error_response(500, exception.what());
  }
}

std::optional<std::string> read_token(const ServerConfig& config) {
  if (!config.token_file) return std::nullopt;
  return read_token_file(*config.token_file, "token_file");
}

HttpServerOptions http_options(const ServerConfig& config, bool has_token) {
  const std::string ip = config.ip == "localhost" ? "127.0.0.1" : config.ip;
  check(is_loopback(ip) || has_token || config.insecure, "ip: ", ip,
        " can be reached from other machines, and no token is set: set token_file, or insecure=true (--insecure) if that is intended");
  check(config.max_memory.bytes / 2 >= config.max_body.bytes, "max_memory: expected at least twice max_body (", config.max_body.bytes,
        "), for a body that is unpacked; found ", config.max_memory.bytes);
  return {.ip = ip,
          .port = config.port,
          .max_connections = config.max_connections,
          .max_body_bytes = config.max_body.bytes,
          .max_held_bytes = config.max_memory.bytes};
}

HttpResponse unauthorized(const std::string& text) {
  HttpResponse response = error_response(401, text);
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace

void check_address(const ServerConfig& config) { check_listening(http_options(config, read_token(config).has_value())); }

ModelServer::ModelServer(const ServerConfig& config, std::vector<ServedModel> models, std::function<void()> on_start)
    : config_(config), token_(read_token(config)), models_(std::move(models)) {
  for (const ServedModel& model : models_) stats_.emplace_back(model.signature.name);
  const HttpServerOptions options = http_options(config_, token_.has_value());
  const QueueOptions queue{config_.queue_limit, config_.max_merged_rows, config_.merge, std::move(on_start)};
  const bool has_changes = std::any_of(models_.begin(), models_.end(), [](const ServedModel& model) { return model.is_kept; });
  if (!token_ && !config_.insecure && has_changes) change_token_ = random_token();
  queue_ = std::make_unique<CallQueue>(queue, models_, stats_);
  reader_ = std::make_unique<SerialWorker>();
  http_ = std::make_unique<HttpServer>(
      options, [this](HttpRequest request, HttpReply reply) { handle(std::move(request), reply); },
      [this](const HttpRequest& head) { return gate(head); });
  if (change_token_) local_token_ = std::make_unique<LocalToken>(http_->port(), *change_token_);
  is_token_out_ = true;
}

std::optional<std::string> ModelServer::token_path() const { return local_token_ ? std::optional(local_token_->file()) : std::nullopt; }

ModelServer::~ModelServer() { stop(); }

void ModelServer::stop() {
  ready_ = false;
  queue_->stop();
  http_->stop();
  reader_.reset();  // no more tasks are posted
  local_token_.reset();
}

std::optional<HttpResponse> ModelServer::gate(const HttpRequest& head) const {
  for (const char* header : {"Origin", "Sec-Fetch-Site"})
    if (find_header(head.headers, header))
      return error_response(403, str("a request from a web page (", header, "): browsers are not allowed"));
  const std::string shown = find_header(head.headers, "Authorization").value_or("");
  if (token_) return shows_token(shown, *token_) ? std::nullopt : std::optional(unauthorized("unauthorized"));
  const std::string host = find_header(head.headers, "Host").value_or("");
  if (!is_own_host(host))
    return error_response(403, str("Host: ", host, " is not a name of this machine; use its address, or set a token_file on both sides"));
  const bool is_known = !change_token_ || !changes_a_model(head) || shows_token(shown, *change_token_);
  if (!is_known && !is_token_out_) return error_response(503, "starting");  // nobody can have read the token yet
  if (!is_known)
    return unauthorized(
        str(head.target, " changes the model and requires a token. A kedge actor of the same user on the same machine finds ",
            "the one that this server created; for others set a token_file on both sides, or start the server with --insecure"));
  return std::nullopt;
}

std::optional<ModelServer::Route> ModelServer::find_route(const std::vector<std::string>& parts) {
  if (parts.size() < 3 || parts[0] != "v2" || parts[1] != "models") return std::nullopt;
  const bool versioned = parts.size() > 4 && parts[3] == "versions";
  const size_t rest = versioned ? 5 : 3;
  const std::string action = parts.size() > rest ? parts[rest] : "";
  const bool known =
      action == "ready" || action == "config" || action == "infer" || action == "stats" || (action.empty() && parts.size() == rest);
  if (!known || parts.size() > rest + 1) return std::nullopt;
  return Route{parts[2], action, versioned ? std::optional(parts[4]) : std::nullopt};
}

bool ModelServer::changes_a_model(const HttpRequest& head) const {
  const std::optional<Route> route = find_route(path_parts(head.target));
  return route && route->action == "infer" && std::any_of(models_.begin(), models_.end(), [&](const ServedModel& model) {
           return model.is_kept && model.signature.name == route->name;
         });
}

void ModelServer::handle(HttpRequest request, const HttpReply& reply) {
  const std::vector<std::string> parts = path_parts(request.target);
  if (std::optional<HttpResponse> response = answer_server(request, parts)) return reply.send(std::move(*response));
  const std::optional<Route> route = find_route(parts);
  if (!route) throw RequestError(404, str("no such address: ", request.target));
  const size_t model = find_model(route->name, route->version);
  want_method(request, route->action == "infer" ? "POST" : "GET");
  if (route->action == "infer") return infer(std::move(request), model, reply);
  reply.send(answer_model(model, route->action));
}

// Requests to the server itself; none for other addresses.
std::optional<HttpResponse> ModelServer::answer_server(const HttpRequest& request, const std::vector<std::string>& parts) {
  const auto is = [&](std::string_view method, std::initializer_list<std::string_view> path) {
    const bool same = std::equal(parts.begin(), parts.end(), path.begin(), path.end());
    if (same) want_method(request, method);
    return same;
  };
  if (is("GET", {"v2", "health", "live"})) return HttpResponse{};
  if (is("GET", {"v2", "health", "ready"})) return HttpResponse{ready_ ? 200 : 400, {}, ""};
  if (is("GET", {"metrics"})) return prometheus();
  if (is("GET", {"v2", "models", "stats"})) return statistics({});
  if (is("GET", {"v2"}))
    return json_response(Json::Object{
        {"name", "kedge"},
        {"version", version()},
        {"extensions", Json::Array{"binary_tensor_data", "model_configuration", "model_repository", "parameters", "statistics"}}});
  if (is("POST", {"v2", "repository", "index"})) {
    Json::Array index;
    for (const ServedModel& model : models_)
      index.push_back(Json::Object{{"name", model.signature.name}, {"version", "1"}, {"state", "READY"}, {"reason", ""}});
    return json_response(index);
  }
  return std::nullopt;
}

HttpResponse ModelServer::answer_model(size_t model, const std::string& action) const {
  const ModelSignature& signature = models_[model].signature;
  if (action == "ready") return {ready_ ? 200 : 400, {}, ""};
  if (action == "config") return json_response(model_config(signature));
  if (action == "stats") return statistics(model);
  return json_response(model_metadata(signature));
}

size_t ModelServer::find_model(const std::string& name, const std::optional<std::string>& version) const {
  const auto found = std::find_if(models_.begin(), models_.end(), [&](const ServedModel& model) { return model.signature.name == name; });
  if (found == models_.end()) throw RequestError(404, str("no model named ", name));
  if (version && *version != "1") throw RequestError(404, str("no version ", *version, " of model ", name));
  return static_cast<size_t>(found - models_.begin());
}

void ModelServer::infer(HttpRequest request, size_t model, const HttpReply& reply) {
  const bool is_large = request.body.size() > kReadAtOnce || find_header(request.headers, "Content-Encoding");
  if (!is_large) return read_and_queue(std::move(request), model, reply);
  reader_->post([this, model, reply, held = std::make_shared<HttpRequest>(std::move(request))] {
    try {
      read_and_queue(std::move(*held), model, reply);
    } catch (...) {
      reply.send(failure_response(std::current_exception()));
    }
  });
}

void ModelServer::read_and_queue(HttpRequest request, size_t model, const HttpReply& reply) {
  const ServedModel& served = models_[model];
  const ModelSignature& signature = served.signature;
  try {
    Call call{.model = model, .request = read_request(request, signature, config_.max_body.bytes, reply)};
    request.body = {};  // its tensors have been taken out
    std::vector<OutputWish> wishes = wanted_outputs(signature, call.request);
    call.rows = check_inputs(signature, call.request);
    if (served.check) served.check(call.request);
    call.done = [reply, &signature, id = call.request.id, wishes = std::move(wishes)](ServedResult result) {
      try {
        reply.send(reply_response(signature.name, id, wishes, std::move(result)));
      } catch (...) {
        reply.send(failure_response(std::current_exception()));
      }
    };
    call.failed = [reply](std::exception_ptr error) { reply.send(failure_response(std::move(error))); };
    call.is_gone = [reply] { return reply.is_gone(); };
    if (queue_->add(std::move(call))) return;
  } catch (const RequestError& error) {
    ++stats_[model].num_refused;
    HttpResponse response = error_response(error.status(), error.what());
    if (error.status() == 503) response.headers.emplace_back("Retry-After", "1");
    if (error.status() == 501) response.headers.emplace_back("Accept-Encoding", "gzip, deflate");
    return reply.send(std::move(response));
  }
  ++stats_[model].num_refused;
  HttpResponse full = error_response(503, str("the queue is full: ", config_.queue_limit, " calls wait"));
  full.headers.emplace_back("Retry-After", "1");
  reply.send(std::move(full));
}

HttpResponse ModelServer::statistics(std::optional<size_t> model) const {
  std::vector<const ModelStats*> chosen;
  for (size_t i = 0; i < stats_.size(); ++i)
    if (!model || *model == i) chosen.push_back(&stats_[i]);
  return json_response(stats_json(chosen));
}

HttpResponse ModelServer::prometheus() {
  std::vector<const ModelStats*> all;
  for (const ModelStats& stats : stats_) all.push_back(&stats);
  const Gauges gauges = {{"kedge_ready", ready_ ? 1 : 0},
                         {"kedge_queue_length", static_cast<double>(queue_->size())},
                         {"kedge_connections", static_cast<double>(http_->num_connections())},
                         {"kedge_connections_refused", static_cast<double>(http_->num_refused())},
                         {"kedge_resident_bytes", static_cast<double>(resident_bytes())}};
  return {200, {{"Content-Type", "text/plain; version=0.0.4"}}, prometheus_text(all, gauges)};
}

}  // namespace kedge
