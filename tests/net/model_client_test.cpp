#include "kedge/net/model_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <memory>

#include "kedge/net/model_server.h"

#include "tests/support/expect_error.h"
#include "tests/support/log_file.h"
#include "tests/support/toy_models.h"

namespace kedge {
namespace {

using std::chrono::milliseconds;
using testing::count_by;
using testing::Counter;
using testing::doubling_model;
using testing::error_of;
using testing::numbers;

using Numbers = std::vector<int64_t>;

ClientOptions options_of(int64_t port) {
  return {
      .server = {
          .label = "toy server", .port = port, .keys = "toy.ip and toy.port", .period = milliseconds(50), .patience = milliseconds(500)}};
}

Numbers output_of(std::future<InferReply> reply) {
  const InferReply got = reply.get();
  const auto values = int64_values(got.outputs.at(0));
  return {values.begin(), values.end()};
}

int64_t free_port() {
  return HttpServer({}, [](const HttpRequest&, const HttpReply&) {}).port();
}

TEST(ModelClient, CallsAModelAndLearnsWhatItTakes) {
  ModelServer server({}, {doubling_model({}, {4}, 100)});
  ModelClient client(options_of(server.port()));
  EXPECT_TRUE(client.is_kedge());
  const ModelSignature signature = client.signature("double");
  EXPECT_EQ(signature.max_batch_size, 1000);
  EXPECT_EQ(signature.outputs.at(0).name, "y");
  EXPECT_EQ(output_of(client.infer("double", numbers({1, 2, 3}))), (Numbers{2, 4, 6}));
}

TEST(ModelClient, ManyCallsAreUnderWayAtOnce) {
  ModelServer server({}, {doubling_model()});
  ModelClient client(options_of(server.port()));
  std::vector<std::future<InferReply>> replies;
  for (int64_t i = 0; i < 400; ++i) replies.push_back(client.infer("double", numbers({i, i + 1})));
  for (int64_t i = 0; i < 400; ++i) EXPECT_EQ(output_of(std::move(replies[static_cast<size_t>(i)])), (Numbers{2 * i, 2 * i + 2}));
}

TEST(ModelClient, WhatTheServerRefusesIsAnErrorThatNamesIt) {
  ModelServer server({}, {doubling_model()});
  ModelClient client(options_of(server.port()));
  const std::string where = str("double of the toy server 127.0.0.1:", server.port());
  EXPECT_EQ(error_of<RemoteError>([&] { (void)client.infer("double", numbers({666})).get(); }), where + ": HTTP 500: cannot double 666");
  EXPECT_EQ(error_of<RemoteError>([&] { (void)client.infer("triple", numbers({1})).get(); }),
            str("model triple of the toy server 127.0.0.1:", server.port(), ": HTTP 404: no model named triple"));
  EXPECT_EQ(output_of(client.infer("double", numbers({1}))), (Numbers{2}));
}

TEST(ModelClient, AServerThatIsAwayIsWaitedFor) {
  const int64_t port = free_port();
  ModelClient client(options_of(port));
  auto early = client.infer("double", numbers({4}));
  EXPECT_EQ(early.wait_for(milliseconds(100)), std::future_status::timeout);
  auto server = std::make_unique<ModelServer>(ServerConfig{.port = port}, std::vector{doubling_model()});
  EXPECT_EQ(output_of(std::move(early)), (Numbers{8}));
  server.reset();
  auto later = client.infer("double", numbers({5}));
  EXPECT_EQ(later.wait_for(milliseconds(100)), std::future_status::timeout);
  server = std::make_unique<ModelServer>(ServerConfig{.port = port}, std::vector{doubling_model()});
  EXPECT_EQ(output_of(std::move(later)), (Numbers{10}));
}

TEST(ModelClient, AServerThatStaysAwayEndsTheCall) {
  ClientOptions options = options_of(free_port());
  options.server.start_limit = milliseconds(200);
  ModelClient client(options);
  const std::string error = error_of<Error>([&] { (void)client.infer("double", numbers({4})).get(); });
  EXPECT_NE(error.find("did not become ready"), std::string::npos) << error;
  EXPECT_NE(error.find("toy.ip and toy.port"), std::string::npos) << error;
}

TEST(ModelClient, AFullQueueIsTriedAgain) {
  Counter counter;
  ModelServer server({.queue_limit = 1}, {counter.model([] { std::this_thread::sleep_for(milliseconds(30)); })});
  ModelClient client(options_of(server.port()));
  std::vector<std::future<InferReply>> replies;
  for (int i = 0; i < 8; ++i) replies.push_back(client.infer("count", count_by(1, std::to_string(i)), Resend::by_key));
  for (auto& reply : replies) (void)reply.get();
  EXPECT_EQ(counter.sum(), 8);
}

// Stands before a server, passes everything on, and loses what it is told to lose.
class LossyProxy {
 public:
  explicit LossyProxy(int64_t port)
      : port_(port), server_({}, [this](const HttpRequest& request, const HttpReply& reply) { pass(request, reply); }) {}

  [[nodiscard]] int64_t port() const { return server_.port(); }
  std::atomic<int> num_answers_to_lose = 0;            // of infer calls: carried out, but never heard of
  std::atomic<bool> hides_name = false;                // the server looks like a foreign one
  std::atomic<int> num_model_calls_before_loaded = 0;  // answered as Triton does while it loads its models
  std::atomic<int> num_calls_before_room = 0;          // answered with 503, as a full server or a balancer without workers does

 private:
  void pass(const HttpRequest& request, const HttpReply& reply) {
    if (request.target.starts_with("/v2/models/") && num_model_calls_before_loaded > 0) {
      --num_model_calls_before_loaded;
      return reply.send(error_response(request.target.ends_with("/ready") ? 400 : 404, "Request for unknown model"));
    }
    if (!request.target.starts_with("/v2/health") && num_calls_before_room > 0) {
      --num_calls_before_room;
      return reply.send(error_response(503, "no workers"));
    }
    HttpConnection connection("127.0.0.1", port_);
    HttpResponse response = connection.send({request.method, request.target, without_host(request.headers), request.body});
    if (request.target.ends_with("/infer") && num_answers_to_lose > 0) {
      --num_answers_to_lose;
      // An answer that ends before it should: the connection is closed on the client.
      return reply.send({200, {{"Transfer-Encoding", "broken"}, {"Connection", "close"}}, ""});
    }
    if (request.target == "/v2" && hides_name) response.body = R"({"name":"triton","version":"2"})";
    HttpHeaders headers;
    for (const auto& header : response.headers)
      if (header.first == "Inference-Header-Content-Length") headers.push_back(header);
    reply.send({response.status, headers, response.body});
  }
  static HttpHeaders without_host(HttpHeaders headers) {
    std::erase_if(headers, [](const auto& header) { return header.first == "Host" || header.first == "Content-Length"; });
    return headers;
  }

  int64_t port_;
  HttpServer server_;
};

TEST(ModelClient, ACallWhoseAnswerWasLostIsCarriedOutOnce) {
  Counter counter;
  ModelServer server({.insecure = true}, {counter.model(), doubling_model()});
  LossyProxy proxy(server.port());
  ModelClient client(options_of(proxy.port()));
  proxy.num_answers_to_lose = 2;
  EXPECT_EQ(output_of(client.infer("count", count_by(5, "a"), Resend::by_key)), (Numbers{5}));
  proxy.num_answers_to_lose = 1;
  EXPECT_EQ(output_of(client.infer("double", numbers({3}))), (Numbers{6}));
}

TEST(ModelClient, FindsTheTokenOfAServerThatIsStartedAnew) {
  Counter counter;
  auto server = std::make_unique<ModelServer>(ServerConfig{}, std::vector<ServedModel>{counter.model()});
  const int64_t port = server->port();
  ModelClient client(options_of(port));
  EXPECT_EQ(output_of(client.infer("count", count_by(5, "a"), Resend::by_key)), (Numbers{5}));
  server.reset();
  server = std::make_unique<ModelServer>(ServerConfig{.port = port}, std::vector<ServedModel>{counter.model()});
  EXPECT_EQ(output_of(client.infer("count", count_by(2, "b"), Resend::by_key)), (Numbers{7}));
  EXPECT_EQ(error_of<RemoteError>([&] { return client.infer("count", count_by(1, "c")).get(); }).substr(0, 40),
            str("count of the toy server 127.0.0.1:", port, ": HTTP 401").substr(0, 40));
}

TEST(ModelClient, AServerThatComesBackAsAnotherModelIsNotAsked) {
  const auto serve = [](int64_t port, const std::string& print) {
    ServedModel model = doubling_model();
    model.signature.parameters = {{"model_print", print}};
    return std::make_unique<ModelServer>(ServerConfig{.port = port}, std::vector<ServedModel>{model});
  };
  auto server = serve(0, "judge 1234");
  const int64_t port = server->port();
  ModelClient client(options_of(port));
  EXPECT_EQ(output_of(client.infer("double", numbers({1}))), Numbers{2});
  server.reset();
  server = serve(port, "judge 1234");
  EXPECT_EQ(output_of(client.infer("double", numbers({2}))), Numbers{4});
  server.reset();
  server = serve(port, "other 5678");
  EXPECT_EQ(error_of<Error>([&] { return client.infer("double", numbers({3})).get(); }),
            str("the toy server 127.0.0.1:", port, " came back with a different model as double: it was judge 1234, and is other 5678"));
}

TEST(ModelClient, AForeignServerIsNotToldTwice) {
  Counter counter;
  ModelServer server({.insecure = true}, {counter.model()});
  LossyProxy proxy(server.port());
  proxy.hides_name = true;
  ModelClient client(options_of(proxy.port()));
  EXPECT_FALSE(client.is_kedge());
  proxy.num_answers_to_lose = 1;
  const std::string error = error_of<Error>([&] { (void)client.infer("count", count_by(5), Resend::by_key).get(); });
  EXPECT_NE(error.find("it is unknown whether the call was executed"), std::string::npos) << error;
  EXPECT_EQ(counter.sum(), 5);
}

TEST(ModelClient, AForeignServersModelsAreWaitedFor) {
  Counter counter;
  ModelServer server({.insecure = true}, {counter.model()});
  LossyProxy proxy(server.port());
  proxy.hides_name = true;
  ModelClient client(options_of(proxy.port()));
  proxy.num_model_calls_before_loaded = 3;
  EXPECT_EQ(client.signature("count").name, "count");
  // The server was started anew: it did not carry out what it answered with 404, so even a call that must not be repeated is sent again.
  proxy.num_model_calls_before_loaded = 3;
  EXPECT_EQ(output_of(client.infer("count", count_by(5), Resend::by_key)), (Numbers{5}));
  EXPECT_EQ(counter.sum(), 5);
}

TEST(ModelClient, AForeignServersModelThatNeverComesEndsTheCall) {
  ModelServer server({.insecure = true}, {doubling_model()});
  LossyProxy proxy(server.port());
  proxy.hides_name = true;
  ClientOptions options = options_of(proxy.port());
  std::future<InferReply> never;
  {
    ModelClient client(options);
    never = client.infer("triple", numbers({1}));
    EXPECT_EQ(never.wait_for(milliseconds(200)), std::future_status::timeout);
  }
  EXPECT_NE(error_of<Error>([&] { (void)never.get(); }).find("was cancelled"), std::string::npos);
  options.server.start_limit = milliseconds(200);
  ModelClient client(options);
  const std::string error = error_of<Error>([&] { (void)client.infer("triple", numbers({1})).get(); });
  EXPECT_NE(error.find("is up, but its model triple was not ready within 0 s; its address is set by toy.ip and toy.port"),
            std::string::npos)
      << error;
}

TEST(ModelClient, WhoWaitsWhenItGivesUpIsTold) {
  ModelClient client(options_of(free_port()));
  const auto ask = [&] { return error_of<Error>([&] { (void)client.signature("double"); }); };
  std::future<std::string> waiting = std::async(std::launch::async, ask);
  EXPECT_EQ(waiting.wait_for(milliseconds(50)), std::future_status::timeout);
  client.give_up();
  EXPECT_NE(waiting.get().find("was cancelled"), std::string::npos);
  EXPECT_NE(ask().find("was cancelled"), std::string::npos) << "nor does anybody later";
}

TEST(ModelClient, ASignalEndsCallsToAServerThatIsAway) {
  std::atomic<int> signal = 0;
  ClientOptions options = options_of(free_port());
  options.max_in_flight = 2;
  options.server.stop = [&] { return signal == 0 ? std::nullopt : std::optional<int>(signal); };
  ModelClient client(options);
  std::vector<std::future<InferReply>> replies;
  for (int64_t i = 0; i < 4; ++i) replies.push_back(client.infer("double", numbers({i})));
  EXPECT_EQ(replies[0].wait_for(milliseconds(150)), std::future_status::timeout);
  signal = SIGUSR1;
  for (auto& reply : replies)
    EXPECT_NE(error_of<Interrupted>([&] { (void)reply.get(); }).find("SIGUSR1 received while the toy server"), std::string::npos);
}

TEST(ModelClient, ACallThatIsBeingComputedIsNotEndedByASignal) {
  std::atomic<int> signal = 0;
  Counter counter;
  ModelServer server({}, {counter.model([&] {
                       signal = SIGTERM;
                       std::this_thread::sleep_for(milliseconds(300));
                     })});
  ClientOptions options = options_of(server.port());
  options.server.stop = [&] { return signal == 0 ? std::nullopt : std::optional<int>(signal); };
  ModelClient client(options);
  (void)client.infer("count", count_by(1, "one"), Resend::by_key).get();
  (void)client.infer("count", count_by(1, "two"), Resend::by_key).get();
  EXPECT_EQ(counter.sum(), 2);
}

TEST(ModelClient, ASignalEndsTheWaitForAForeignServersModel) {
  ModelServer server({.insecure = true}, {doubling_model()});
  LossyProxy proxy(server.port());
  proxy.hides_name = true;
  proxy.num_model_calls_before_loaded = 1000000;
  ClientOptions options = options_of(proxy.port());
  options.server.stop = [] { return std::optional<int>(SIGINT); };
  ModelClient client(options);
  EXPECT_EQ(error_of<Interrupted>([&] { (void)client.signature("double"); }),
            str("SIGINT received while the model double of the toy server 127.0.0.1:", proxy.port(), " (not ready) was unavailable"));
}

TEST(ModelClient, AServerThatHasNoRoomForAMomentIsAskedAgainWhateverItIsAsked) {
  ModelServer server({.insecure = true}, {doubling_model()});
  LossyProxy proxy(server.port());
  ClientOptions options = options_of(proxy.port());
  options.server.patience = std::chrono::hours(1);
  options.server.stop = [] { return std::optional<int>(SIGTERM); };  // which waits until the server counts as unavailable
  ModelClient client(options);
  proxy.num_calls_before_room = 1;
  EXPECT_TRUE(client.is_kedge());
  proxy.num_calls_before_room = 1;
  EXPECT_EQ(client.signature("double").name, "double");
  EXPECT_EQ(output_of(client.infer("double", numbers({3}))), (Numbers{6}));
  proxy.num_calls_before_room = 1;
  EXPECT_EQ(output_of(client.infer("double", numbers({4}))), (Numbers{8}));
}

TEST(ModelClient, AServerThatNeverHasRoomIsNamedAndWaitedForUntilTheLimitOrASignal) {
  ModelServer server({.insecure = true}, {doubling_model()});
  LossyProxy proxy(server.port());
  ClientOptions options = options_of(proxy.port());
  options.server.return_limit = milliseconds(1000);
  const std::string who = str("the toy server 127.0.0.1:", proxy.port());
  const auto call = [&] {
    ModelClient client(options);
    proxy.num_calls_before_room = 0;
    EXPECT_EQ(output_of(client.infer("double", numbers({3}))), (Numbers{6}));
    proxy.num_calls_before_room = 1000000;
    (void)client.infer("double", numbers({4})).get();
  };
  EXPECT_EQ(error_of<Error>([&] { call(); }), who + " accepted no call within 1 s (HTTP 503: no workers)");
  options.server.return_limit = std::chrono::hours(1);
  std::atomic<int> signal = 0;
  options.server.stop = [&] { return signal == 0 ? std::nullopt : std::optional<int>(signal); };
  const testing::LogFile log;
  std::future<std::string> ended = std::async(std::launch::async, [&] { return error_of<Interrupted>([&] { call(); }); });
  log.wait_for(who + " accepts no calls (HTTP 503: no workers); waited ");
  signal = SIGTERM;
  EXPECT_EQ(ended.get(), "SIGTERM received while " + who + " (HTTP 503: no workers) was unavailable");
}

TEST(ModelClient, EndingItEndsItsCalls) {
  std::future<InferReply> reply;
  {
    ModelClient client(options_of(free_port()));
    reply = client.infer("double", numbers({4}));
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_NE(error_of<Error>([&] { (void)reply.get(); }).find("was cancelled"), std::string::npos);
}

// Takes four copies of the body: of the caller, the client, the server and the model.
TEST(ModelClient, DISABLED_ACallOfThreeGibibytesArrives) {
  ServedModel sum;
  sum.signature = {.name = "sum", .inputs = {{"x", WireType::int64, {-1}}}, .outputs = {{"y", WireType::int64, {1}}}};
  sum.run = [](const std::vector<WireTensor>& inputs, const Json&) {
    int64_t total = 0;
    for (const int64_t value : int64_values(inputs[0])) total += value;
    return ServedResult{{int64_tensor("y", {1}, std::vector<int64_t>{total})}, Json(Json::Object{})};
  };
  ModelServer server({.insecure = true, .max_body = {int64_t{4} << 30U}, .max_memory = {int64_t{8} << 30U}}, {sum});
  LossyProxy proxy(server.port());
  proxy.hides_name = true;
  const int64_t count = (int64_t{3} << 30) / 8;
  const auto large = [&] {
    InferRequest request;
    request.inputs = {WireTensor{"x", WireType::int64, {count}, std::string(static_cast<size_t>(count) * 8, '\0')}};
    request.inputs[0].data.back() = 1;  // 2^56
    request.inputs[0].data.front() = 5;
    return request;
  };
  {
    ModelClient client(options_of(server.port()));
    EXPECT_EQ(output_of(client.infer("sum", large())), (Numbers{(int64_t{1} << 56) + 5}));
  }
  ModelClient foreign(options_of(proxy.port()));
  const std::string error = error_of<Error>([&] { (void)foreign.infer("sum", large()).get(); });
  EXPECT_NE(error.find("is more than this server reads (2147483647)"), std::string::npos) << error;
}

}  // namespace
}  // namespace kedge
