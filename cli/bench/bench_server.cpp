#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/core/stopwatch.h"
#include "kedge/net/http_client.h"
#include "kedge/net/model_server.h"
#include "kedge/reward/reward_service.h"

#include "cli/bench/bench_support.h"

namespace kedge::cli {
namespace {

struct ServerBenchOptions {
  BenchFlags common;
  int64_t clients = 64, requests = 512, length = 256, micro_batch = 4;
  int64_t latency_requests = 50, flat_requests = 0;

  void fields(auto&& field) {
    common.fields(field);
    field("clients", clients, "concurrent clients, each sending one row per call", at_least(1));
    field("requests", requests, "calls of all clients in one timed run", at_least(1));
    field("length", length, "tokens per row", at_least(1));
    field("micro_batch", micro_batch, "the server's forward_micro_batch_size: rows of full length per forward pass", at_least(1));
    field("latency_requests", latency_requests, "calls of a single client, to measure latency", at_least(1));
    field("flat_requests", flat_requests, "further calls of all clients, with rows of 8 tokens, before memory is measured; 0: none",
          at_least(0));
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// A call with one row, ready to be sent.
HttpRequest call_with(const TokenIds& row) {
  const auto length = static_cast<int64_t>(row.size());
  InferRequest request;
  request.inputs = {int64_tensor("tokens", {1, length}, std::vector<int64_t>(row.begin(), row.end())),
                    int64_tensor("sequence_lengths", {1, 1}, std::vector<int64_t>{length})};
  request.outputs = {{"rewards", true}};
  KserveBody body = write_request(request);
  return {"POST",
          "/v2/models/reward_model/infer",
          {{"Inference-Header-Content-Length", std::to_string(*body.header_length)}},
          std::move(body.bytes)};
}

float reward_in(const HttpResponse& response) {
  if (response.status != 200) throw Error(str("the server answered ", response.status, ": ", response.body));
  const InferReply reply = parse_reply(response.body, find_count(response.headers, "Inference-Header-Content-Length"));
  return fp32_values(reply.outputs.at(0))[0];
}

// A reward model, its server on its own port, and clients for it.
class ServerBench {
 public:
  ServerBench(const ServerBenchOptions& options, const Model& model)
      : options_(options),
        rows_({}, model.config(), {options.length, false, false}),
        served_(model, {.max_tokens = options.micro_batch * model.config().max_positions}),
        offline_(model, {}),
        rows_in_(random_rows(options.requests, options.length, model.config().vocab_size)),
        server_({}, {make_reward_service("reward_model", rows_, served_, {{options.micro_batch}, 2000})}) {
    for (const TokenIds& row : rows_in_) calls_.push_back(call_with(row));
    rewards_.resize(rows_in_.size());
  }

  // Rows per second of all clients; every reply is compared with the offline one.
  double serve() { return run(calls_); }

  // Rows per second of the model alone, as kedge score runs it: 8192 tokens together.
  double score() {
    const auto together = static_cast<size_t>(std::max<int64_t>(1, 8192 / options_.length));
    offline_rewards_.clear();
    const Stopwatch watch;
    for (size_t begin = 0; begin < rows_in_.size(); begin += together) {
      const Tensor scores = offline_.score(std::span(rows_in_).subspan(begin, std::min(together, rows_in_.size() - begin)));
      offline_rewards_.insert(offline_rewards_.end(), scores.const_data_ptr<float>(), scores.const_data_ptr<float>() + scores.numel());
    }
    return static_cast<double>(rows_in_.size()) / watch.seconds();
  }

  [[nodiscard]] double largest_difference() const {
    double largest = 0;
    for (size_t i = 0; i < rewards_.size(); ++i) largest = std::max(largest, std::abs(double{rewards_[i]} - offline_rewards_.at(i)));
    return largest;
  }

  struct Latency {
    double call_ms = 0, added_ms = 0;
  };
  // Of one call, alone on the server, and of what is not the model's run in it; the server itself takes the time of that.
  Latency latency() {
    std::this_thread::sleep_for(std::chrono::seconds(2));  // until the server has been idle for a while
    HttpConnection connection("127.0.0.1", server_.port());
    std::vector<double> calls, added;
    double before = compute_ms(connection);
    for (int64_t i = 0; i < options_.latency_requests; ++i) {
      const Stopwatch watch;
      (void)reward_in(connection.send(calls_[static_cast<size_t>(i) % calls_.size()]));
      calls.push_back(watch.seconds() * 1000);
      const double after = compute_ms(connection);
      added.push_back(calls.back() - (after - before));
      before = after;
    }
    return {median(calls), median(added)};
  }

  // Resident memory after a tenth of the calls, and after all.
  std::pair<int64_t, int64_t> memory(int64_t num_calls, int64_t vocab_size) {
    std::vector<HttpRequest> calls;
    for (const TokenIds& row : random_rows(64, 8, vocab_size)) calls.push_back(call_with(row));
    const auto repeat = [&](int64_t count) {
      std::vector<HttpRequest> many;
      for (int64_t i = 0; i < count; ++i) many.push_back(calls[static_cast<size_t>(i) % calls.size()]);
      rewards_.resize(std::max(rewards_.size(), many.size()));
      (void)run(many);
    };
    const int64_t part = std::max<int64_t>(1, num_calls / 10);
    repeat(part);
    const int64_t before = resident_bytes();
    for (int64_t i = 1; i < 10; ++i) repeat(part);
    return {before, resident_bytes()};
  }

 private:
  static double compute_ms(HttpConnection& connection) {
    const Json stats = Json::parse(connection.send({"GET", "/v2/models/reward_model/stats", {}, ""}).body);
    const Json& model = stats.at("model_stats", "stats").as_array("model_stats").at(0);
    return model.at("inference_stats", "stats").at("compute_infer", "stats").at("ns", "stats").as_number("ns") * 1e-6;
  }

  double run(const std::vector<HttpRequest>& calls) {
    std::atomic<size_t> next = 0;
    std::vector<std::thread> clients;
    std::exception_ptr failure;
    std::mutex mutex;
    const Stopwatch watch;
    for (int64_t i = 0; i < options_.clients; ++i)
      clients.emplace_back([&] {
        try {
          HttpConnection connection("127.0.0.1", server_.port());
          for (size_t call = next++; call < calls.size(); call = next++) rewards_[call] = reward_in(connection.send(calls[call]));
        } catch (...) {
          const std::lock_guard lock(mutex);
          failure = std::current_exception();
        }
      });
    for (std::thread& client : clients) client.join();
    if (failure) std::rethrow_exception(failure);
    return static_cast<double>(calls.size()) / watch.seconds();
  }

  const ServerBenchOptions& options_;
  ServedRows rows_;
  RewardScorer served_, offline_;
  std::vector<TokenIds> rows_in_;
  std::vector<HttpRequest> calls_;
  std::vector<float> rewards_, offline_rewards_;
  ModelServer server_;
};

}  // namespace

std::string bench_server_flags() { return options_help<ServerBenchOptions>(); }

Json bench_server_reward(const Arguments& arguments) {
  const auto options = parse_options<ServerBenchOptions>(arguments);
  const auto model = make_bench_model(options.common, {.head = HeadKind::score});
  ServerBench bench(options, *model);
  (void)bench.score();
  (void)bench.serve();
  // Alternating, so that other load on the machine affects both equally.
  std::vector<double> offline, served, shares;
  for (int64_t i = 0; i < options.common.repeats; ++i) {
    offline.push_back(bench.score());
    served.push_back(bench.serve());
    shares.push_back(served.back() / offline.back());
    log_info("run ", i + 1, ": offline ", offline.back(), " rows/s, served ", served.back(), " rows/s");
  }
  const double difference = bench.largest_difference();
  const ServerBench::Latency latency = bench.latency();
  Json settings = bench_settings(options.common, *model);
  settings.set("clients", options.clients);
  settings.set("requests", options.requests);
  settings.set("length", options.length);
  settings.set("micro_batch", options.micro_batch);
  Json json = bench_line("server.reward", std::move(settings));
  json.set("offline_rows_per_s", spread_of(offline));
  json.set("served_rows_per_s", spread_of(served));
  json.set("served_share", spread_of(shares));
  json.set("largest_difference", difference);
  json.set("call_ms", latency.call_ms);
  json.set("added_ms", latency.added_ms);
  if (options.flat_requests > 0) {
    const auto [before, after] = bench.memory(options.flat_requests, model->config().vocab_size);
    json.set("flat_requests", options.flat_requests);
    json.set("resident_bytes_early", before);
    json.set("resident_bytes_late", after);
  }
  return json;
}

}  // namespace kedge::cli
