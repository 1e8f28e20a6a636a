#pragma once
// Served models at their addresses: the endpoints of the KServe protocol, health, statistics, authorization. Independent of what the models
// do.
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/serial_worker.h"
#include "kedge/net/call_queue.h"
#include "kedge/net/http_server.h"
#include "kedge/net/local_token.h"
#include "kedge/net/served_model.h"
#include "kedge/net/server_config.h"

namespace kedge {

// Checks early that a server can be created there: a UsageError, or an Error if the address is
// taken.
void check_address(const ServerConfig& config);

// Serves from its construction on. Thread-safe.
class ModelServer {
 public:
  // UsageError for a public address without a token or `insecure`. `on_start` is called first on the thread that runs
  // the models.
  ModelServer(const ServerConfig& config, std::vector<ServedModel> models, std::function<void()> on_start = {});
  ~ModelServer();  // stops
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  [[nodiscard]] int64_t port() const { return http_->port(); }
  // The file of the token for calls that change a model, if the server created it.
  [[nodiscard]] std::optional<std::string> token_path() const;

  // Finishes the running batch, answers waiting calls with 503, closes. Health calls return "not ready" from the start of it.
  void stop();

 private:
  // The address of a model: /v2/models/NAME[/versions/V][/ACTION].
  struct Route {
    std::string name, action;
    std::optional<std::string> version;
  };
  [[nodiscard]] static std::optional<Route> find_route(const std::vector<std::string>& parts);
  [[nodiscard]] std::optional<HttpResponse> gate(const HttpRequest& head) const;
  [[nodiscard]] bool changes_a_model(const HttpRequest& head) const;
  void handle(HttpRequest request, const HttpReply& reply);
  [[nodiscard]] std::optional<HttpResponse> answer_server(const HttpRequest& request, const std::vector<std::string>& parts);
  [[nodiscard]] HttpResponse answer_model(size_t model, const std::string& action) const;
  void infer(HttpRequest request, size_t model, const HttpReply& reply);
  void read_and_queue(HttpRequest request, size_t model, const HttpReply& reply);
  [[nodiscard]] size_t find_model(const std::string& name, const std::optional<std::string>& version) const;
  [[nodiscard]] HttpResponse statistics(std::optional<size_t> model) const;
  [[nodiscard]] HttpResponse prometheus();

  ServerConfig config_;
  std::optional<std::string> token_, change_token_;  // for every call; for those that change a model
  std::vector<ServedModel> models_;
  std::deque<ModelStats> stats_;
  std::atomic<bool> ready_ = true, is_token_out_ = false;
  std::unique_ptr<CallQueue> queue_;
  std::unique_ptr<SerialWorker> reader_;  // of large bodies, so that network threads serve others meanwhile
  std::unique_ptr<HttpServer> http_;      // goes first: its threads use everything above
  std::unique_ptr<LocalToken> local_token_;
};

}  // namespace kedge
