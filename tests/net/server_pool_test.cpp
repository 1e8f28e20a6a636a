#include "kedge/net/server_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "kedge/net/model_server.h"

#include "tests/support/expect_error.h"
#include "tests/support/log_file.h"

namespace kedge {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::LogFile;

int64_t port_without_server() {
  return HttpServer({}, [](const HttpRequest&, const HttpReply&) {}).port();
}

// Returns its input, and counts the rows that it was sent. What it does before that is a test's.
struct Echo {
  std::atomic<int64_t> num_rows = 0;

  [[nodiscard]] ServedModel model(const std::string& print = "m", std::function<void()> before = {}) {
    ServedModel model;
    model.signature = {.name = "echo",
                       .max_batch_size = 100,
                       .inputs = {{"x", WireType::fp32, {-1}}},
                       .outputs = {{"y", WireType::fp32, {-1}}},
                       .parameters = {{"model_print", print}}};
    model.run = [this, before = std::move(before)](const std::vector<WireTensor>& inputs, const Json&) {
      num_rows += inputs[0].shape[0];
      if (before) before();
      return ServedResult{{fp32_tensor("y", inputs[0].shape, fp32_values(inputs[0]))}};
    };
    return model;
  }
};

PoolOptions pool_of(const std::vector<int64_t>& ports, milliseconds limit = std::chrono::seconds(60)) {
  PoolOptions options{.servers = {}, .model = "echo", .label = "echo servers"};
  for (const int64_t port : ports)
    options.servers.push_back({.label = "echo server",
                               .port = port,
                               .keys = "echo.url",
                               .period = milliseconds(30),
                               .patience = milliseconds(1000),
                               .start_limit = limit,
                               .return_limit = limit});
  return options;
}

InferRequest request_of(float x, int64_t rows = 1) {
  InferRequest request;
  request.inputs = {fp32_tensor("x", {rows, 1}, std::vector<float>(static_cast<size_t>(rows), x))};
  return request;
}

float answer_of(std::future<InferReply> reply) { return fp32_values(reply.get().outputs.at(0))[0]; }

// Stands before a server, and has no room for calls of this kind.
HttpHandler without_room(int64_t port, const std::string& kind) {
  return [port, kind](const HttpRequest& request, const HttpReply& reply) {
    if (request.target.ends_with(kind)) return reply.send(error_response(503, "no workers"));
    reply.send({200, {}, HttpConnection("127.0.0.1", port).send({"GET", request.target}).body});
  };
}

// Until both are known to be up, calls go to the one that is.
void wait_for_both(ServerPool& pool, const Echo& one, const Echo& other) {
  while (one.num_rows == 0 || other.num_rows == 0) static_cast<void>(answer_of(pool.infer(request_of(0))));
}

TEST(ServerPool, CallsAreSharedByTheRowsThatWait) {
  Echo one, other;
  ModelServer first({}, {one.model()}), second({}, {other.model()});
  ServerPool pool(pool_of({first.port(), second.port()}));
  EXPECT_EQ(pool.name(), str("echo of the echo servers 127.0.0.1:", first.port(), ", 127.0.0.1:", second.port()));
  wait_for_both(pool, one, other);
  const int64_t before = one.num_rows, before_other = other.num_rows;
  std::vector<std::future<InferReply>> replies;
  for (const int64_t rows : {30, 10, 10, 10, 1, 1}) replies.push_back(pool.infer(request_of(static_cast<float>(rows), rows)));
  for (const float rows : {30, 10, 10, 10, 1, 1}) {
    EXPECT_EQ(answer_of(std::move(replies.front())), rows);
    replies.erase(replies.begin());
  }
  const int64_t most = std::max(one.num_rows - before, other.num_rows - before_other);
  EXPECT_EQ(one.num_rows + other.num_rows - before - before_other, 62);
  EXPECT_EQ(most, 31);
}

TEST(ServerPool, AServerThatIsAwayIsLeftOutUntilItIsBack) {
  Echo one, other;
  ModelServer first({}, {one.model()});
  auto second = std::make_unique<ModelServer>(ServerConfig{}, std::vector{other.model()});
  const int64_t port = second->port();
  ServerPool pool(pool_of({first.port(), port}));
  wait_for_both(pool, one, other);
  const LogFile log;
  second.reset();
  const int64_t before = one.num_rows;
  for (int i = 0; i < 10; ++i) {
    InferReply reply = pool.infer(request_of(3)).get();
    EXPECT_EQ(fp32_values(reply.outputs.at(0))[0], 3);
    EXPECT_EQ(reply.sender, str("echo server 127.0.0.1:", first.port()));
  }
  EXPECT_EQ(one.num_rows, before + 10);
  log.wait_for(str("the echo server 127.0.0.1:", port, " is unreachable ("));
  second = std::make_unique<ModelServer>(ServerConfig{.port = port}, std::vector{other.model()});
  const int64_t gone = other.num_rows;
  while (other.num_rows == gone) EXPECT_EQ(answer_of(pool.infer(request_of(4))), 4);
}

TEST(ServerPool, WhatOneServerCannotComputeAnotherOneDoes) {
  Echo one, other;
  ModelServer first({}, {one.model()}), second({}, {other.model("m", [] { throw Error("out of memory"); })});
  ServerPool pool(pool_of({first.port(), second.port()}));
  for (int i = 0; i < 200 && other.num_rows == 0; ++i) EXPECT_EQ(answer_of(pool.infer(request_of(5))), 5);
  EXPECT_GT(other.num_rows, 0) << "it was never asked";
}

TEST(ServerPool, WhatAllServersFailAtIsAnErrorThatNamesOne) {
  Echo one, other;
  const auto fail = [] { throw Error("out of memory"); };
  ModelServer first({}, {one.model("m", fail)}), second({}, {other.model("m", fail)});
  ServerPool pool(pool_of({first.port(), second.port()}));
  EXPECT_THAT(error_of<RemoteError>([&] { static_cast<void>(answer_of(pool.infer(request_of(5)))); }),
              AllOf(HasSubstr("echo of the echo server 127.0.0.1:"), HasSubstr("out of memory")));
}

TEST(ServerPool, AServerWithoutRoomIsLeftOut) {
  for (const char* kind : {"/infer", "/config"}) {
    Echo one;
    ModelServer first({}, {one.model()});
    HttpServer full({}, without_room(first.port(), kind));
    ServerPool pool(pool_of({first.port(), full.port()}));
    const LogFile log;
    const std::string left_out =
        str("the echo server 127.0.0.1:", full.port(), " accepted no call within 1 s (HTTP 503: no workers); it is left out for 30 s");
    while (!log.contains(left_out)) EXPECT_EQ(answer_of(pool.infer(request_of(5))), 5);
  }
}

TEST(ServerPool, WhereNoneHasRoomTheCallEndsAtTheLimitOrWithASignal) {
  Echo one;
  ModelServer server({}, {one.model()});
  HttpServer first({}, without_room(server.port(), "/infer")), second({}, without_room(server.port(), "/infer"));
  PoolOptions options = pool_of({first.port(), second.port()}, milliseconds(1000));
  std::atomic<int> signal = 0;
  const auto call = [&] {
    ServerPool pool(options);
    static_cast<void>(pool.signature());
    signal = SIGTERM;
    static_cast<void>(pool.infer(request_of(5)).get());
  };
  EXPECT_THAT(error_of<Error>([&] { call(); }),
              AllOf(HasSubstr("none of the echo servers accepted the call within 1 s (the echo server 127.0.0.1:"),
                    HasSubstr("(HTTP 503: no workers)); their addresses are set by echo.url")));
  options = pool_of({first.port(), second.port()});
  signal = 0;
  for (WatchOptions& each : options.servers) {
    each.patience = milliseconds(1100);  // more than a call waits at one server
    each.tell_every = milliseconds(300);
    each.stop = [&] { return signal == 0 ? std::nullopt : std::optional<int>(signal); };
  }
  const LogFile log;
  EXPECT_THAT(error_of<Interrupted>([&] { call(); }), HasSubstr("SIGTERM received while the echo servers (the echo server 127.0.0.1:"));
  EXPECT_TRUE(log.contains("none of the echo servers accepted the call so far (the echo server 127.0.0.1:"));
}

TEST(ServerPool, ACallThatIsRefusedIsNotTriedElsewhere) {
  Echo one, other;
  const auto refuse = [] { throw RequestError(400, "a bad row"); };
  ModelServer first({}, {one.model("m", refuse)}), second({}, {other.model("m", refuse)});
  ServerPool pool(pool_of({first.port(), second.port()}));
  EXPECT_THAT(error_of<RemoteError>([&] { static_cast<void>(answer_of(pool.infer(request_of(5)))); }), HasSubstr("a bad row"));
  EXPECT_EQ(one.num_rows + other.num_rows, 1);
}

TEST(ServerPool, ServersOfDifferentModelsAreRefused) {
  Echo one, other;
  ModelServer first({}, {one.model("m")}), second({}, {other.model("n")});
  ServerPool pool(pool_of({first.port(), second.port()}));
  const std::string error = error_of<UsageError>([&] {
    while (true) static_cast<void>(answer_of(pool.infer(request_of(1))));
  });
  EXPECT_THAT(error, AllOf(HasSubstr(str("echo server 127.0.0.1:", first.port())), HasSubstr(str("echo server 127.0.0.1:", second.port())),
                           HasSubstr(" do not serve the same echo: model_print is ")));
  EXPECT_TRUE(one.num_rows == 0 || other.num_rows == 0) << "the second one gets no rows";
}

TEST(ServerPool, WhereNoneIsThereAllAreNamed) {
  const int64_t one = port_without_server(), other = port_without_server();
  ServerPool pool(pool_of({one, other}, milliseconds(300)));
  EXPECT_THAT(error_of<Error>([&] { static_cast<void>(pool.signature()); }),
              AllOf(HasSubstr("none of the echo servers was ready within 0 s (echo server 127.0.0.1:"), HasSubstr(str(":", one)),
                    HasSubstr(str(":", other)), HasSubstr("Connection refused"), HasSubstr("set by echo.url")));
}

TEST(ServerPool, ASignalEndsTheWait) {
  PoolOptions options = pool_of({port_without_server(), port_without_server()});
  for (WatchOptions& server : options.servers) server.stop = [] { return std::optional<int>(SIGTERM); };
  ServerPool pool(options);
  EXPECT_THAT(error_of<Interrupted>([&] { static_cast<void>(pool.infer(request_of(1))); }),
              HasSubstr("SIGTERM received while the echo servers"));
}

TEST(ServerPool, GivingUpEndsTheWait) {
  ServerPool pool(pool_of({port_without_server(), port_without_server()}));
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(50));
    pool.give_up();
  });
  EXPECT_THAT(error_of<Error>([&] { static_cast<void>(pool.signature()); }), HasSubstr("was cancelled"));
  other.join();
}

}  // namespace
}  // namespace kedge
