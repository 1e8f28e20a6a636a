#include "kedge/net/model_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "kedge/core/files.h"
#include "kedge/net/auth_token.h"
#include "kedge/net/http_client.h"

#include "tests/support/expect_error.h"
#include "tests/support/raw_peer.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_models.h"

namespace kedge {
namespace {

using testing::Counter;
using testing::doubling_model;
using testing::error_of;

HttpResponse call(const ModelServer& server, const std::string& method, const std::string& target, const std::string& body = "",
                  const HttpHeaders& headers = {}) {
  HttpConnection connection("127.0.0.1", server.port());
  return connection.send({method, target, headers, body});
}

std::string said(const HttpResponse& response) { return str(response.status, " ", response.body); }

TEST(ModelServer, AnswersTheQuestionsOfTheProtocol) {
  ModelServer server({}, {doubling_model({}, {4}, 2000)});
  EXPECT_EQ(said(call(server, "GET", "/v2/health/live")), "200 ");
  EXPECT_EQ(said(call(server, "GET", "/v2/health/ready")), "200 ");
  EXPECT_EQ(said(call(server, "GET", "/v2/models/double/ready")), "200 ");
  EXPECT_EQ(said(call(server, "GET", "/v2/models/double/versions/1/ready")), "200 ");
  const Json facts = Json::parse(call(server, "GET", "/v2").body);
  EXPECT_EQ(facts.at("name", ""), Json("kedge"));
  EXPECT_EQ(said(call(server, "GET", "/v2/models/double?x=y")),
            R"(200 {"name":"double","versions":["1"],"platform":"python","inputs":[{"name":"x","datatype":"INT64","shape":[-1,-1]}],)"
            R"("outputs":[{"name":"y","datatype":"INT64","shape":[-1,-1]}]})");
  EXPECT_EQ(Json::parse(call(server, "GET", "/v2/models/double/config").body).at("max_batch_size", ""), Json(1000));
  EXPECT_EQ(said(call(server, "POST", "/v2/repository/index")), R"(200 [{"name":"double","version":"1","state":"READY","reason":""}])");
  EXPECT_EQ(
      said(call(server, "POST", "/v2/models/double/infer",
                R"({"id":"7","inputs":[{"name":"x","shape":[1,2],"datatype":"INT64","data":[1,2]}]})")),
      R"(200 {"id":"7","model_name":"double","model_version":"1","outputs":[{"name":"y","datatype":"INT64","shape":[1,2],"data":[2,4]}]})");
  EXPECT_EQ(call(server, "GET", "/v2/models/double/stats").body, call(server, "GET", "/v2/models/stats").body);
  EXPECT_NE(call(server, "GET", "/metrics").body.find("kedge_calls_total{model=\"double\",outcome=\"done\"} 1\n"), std::string::npos);
}

TEST(ModelServer, WhatIsNotThereIsSaid) {
  Counter counter;
  ModelServer server({.insecure = true}, {doubling_model(), counter.model()});
  const auto infer = [&](const std::string& body, const HttpHeaders& headers = {}) {
    return said(call(server, "POST", "/v2/models/double/infer", body, headers));
  };
  EXPECT_EQ(said(call(server, "GET", "/v2/models/reward")), R"(404 {"error":"no model named reward"})");
  EXPECT_EQ(said(call(server, "GET", "/v2/models/double/versions/2")), R"(404 {"error":"no version 2 of model double"})");
  for (const char* target :
       {"/", "/v2/", "/v2/models", "/v2/models/double/", "/v2/models/double/infer/x", "/v2/models/double/explain", "/v3"})
    EXPECT_EQ(call(server, "GET", target).status, 404) << target;
  for (const char* target : {"/v2", "/v2/health/live", "/v2/models/double/config", "/metrics"})
    EXPECT_EQ(call(server, "POST", target).status, 405) << target;
  EXPECT_EQ(said(call(server, "GET", "/v2/models/double/infer")), R"(405 {"error":"/v2/models/double/infer: expected POST, found GET"})");
  EXPECT_EQ(infer("").substr(0, 3), "400");
  EXPECT_EQ(infer(R"({"inputs":[{"name":"x","shape":[1,1],"datatype":"INT64","data":[1]}],"outputs":[{"name":"z"}]})"),
            R"(400 {"error":"model double: no output \"z\"; it gives y"})");
  EXPECT_EQ(infer(R"({"inputs":[{"name":"x","shape":[1,1],"datatype":"INT64","data":[666]}]})"), R"(500 {"error":"cannot double 666"})");
  EXPECT_EQ(infer("{}", {{"Inference-Header-Content-Length", "99"}}).substr(0, 3), "400");
  EXPECT_EQ(infer("{}", {{"Inference-Header-Content-Length", "-1"}}).substr(0, 3), "400");
  const HttpResponse packed = call(server, "POST", "/v2/models/double/infer", "xx", {{"Content-Encoding", "br"}});
  EXPECT_EQ(packed.status, 501);
  EXPECT_EQ(find_header(packed.headers, "Accept-Encoding"), "gzip, deflate");
  EXPECT_EQ(call(server, "POST", "/v2/models/double/infer", "xx", {{"Content-Encoding", "gzip"}}).status, 400);
  EXPECT_EQ(infer(R"({"inputs":[{"name":"x","shape":[1,1],"datatype":"INT64","data":[1]}]})").substr(0, 3), "200");  // and it still serves
}

TEST(ModelServer, AModelOfOneInputTakesBareData) {
  Counter counter;
  ModelServer server({.insecure = true}, {counter.model()});
  const std::string eight("\x05\0\0\0\0\0\0\0", 8);
  const HttpResponse response = call(server, "POST", "/v2/models/count/infer", eight, {{"Inference-Header-Content-Length", "0"}});
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(counter.sum(), 5);
}

TEST(ModelServer, AFullQueueAsksToComeAgain) {
  Counter counter;
  std::promise<void> open;
  const auto opened = open.get_future().share();
  std::atomic<bool> runs = false;
  ModelServer server({.insecure = true, .queue_limit = 1}, {counter.model([&] {
                       runs = true;
                       opened.wait();
                     })});
  const std::string body = R"({"inputs":[{"name":"by","shape":[1],"datatype":"INT64","data":[1]}]})";
  const auto send = [&] {
    return std::async(std::launch::async, [&] { return call(server, "POST", "/v2/models/count/infer", body).status; });
  };
  auto first = send();
  while (!runs) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // or one of the others might be before it
  std::vector<std::future<int>> rest;
  HttpResponse full;
  while (full.status != 503) {  // one runs, one waits, the next is one too many
    rest.push_back(send());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::string metrics = call(server, "GET", "/metrics").body;
    if (metrics.find("kedge_queue_length 1\n") != std::string::npos) full = call(server, "POST", "/v2/models/count/infer", body);
  }
  EXPECT_EQ(find_header(full.headers, "Retry-After"), "1");
  EXPECT_EQ(full.body, R"({"error":"the queue is full: 1 calls wait"})");
  open.set_value();
  EXPECT_EQ(first.get(), 200);
}

TEST(ModelServer, ATokenIsWantedFromEverybody) {
  const testing::TempFolder folder;
  write_atomic(folder.path() / "token", "secret\n");
  ModelServer server({.ip = "0.0.0.0", .token_file = (folder.path() / "token").string()}, {doubling_model()});
  for (const char* target : {"/v2", "/v2/health/live", "/v2/models/double", "/v2/models/other", "/metrics", "/nothing"}) {
    const HttpResponse response = call(server, "GET", target);
    EXPECT_EQ(said(response), R"(401 {"error":"unauthorized"})") << target;
    EXPECT_EQ(find_header(response.headers, "WWW-Authenticate"), "Bearer");
  }
  EXPECT_EQ(call(server, "POST", "/v2/models/double/infer", "{}").status, 401);
  for (const char* wrong : {"Bearer ", "Bearer secre", "Bearer secret2", "Basic secret", "secret"})
    EXPECT_EQ(call(server, "GET", "/v2", "", {{"Authorization", wrong}}).status, 401) << wrong;
  EXPECT_EQ(call(server, "GET", "/v2", "", {{"Authorization", "Bearer secret"}}).status, 200);
}

TEST(ModelServer, BrowsersMayNotCall) {
  testing::TempFolder folder;
  write_atomic(folder.path() / "token", "secret");
  ModelServer open({}, {doubling_model()}), closed({.token_file = (folder.path() / "token").string()}, {doubling_model()});
  for (const HttpHeaders& headers : {HttpHeaders{{"Origin", "https://evil.example"}}, HttpHeaders{{"Origin", "null"}},
                                     HttpHeaders{{"Sec-Fetch-Site", "cross-site"}}, HttpHeaders{{"Sec-Fetch-Site", "none"}}}) {
    EXPECT_EQ(call(open, "GET", "/v2", "", headers).status, 403);
    HttpHeaders with_token = headers;
    with_token.emplace_back("Authorization", "Bearer secret");
    EXPECT_EQ(call(closed, "GET", "/v2", "", with_token).status, 403);
  }
}

TEST(ModelServer, AForeignHostIsRefusedWhereNoTokenIsWanted) {
  testing::TempFolder folder;
  write_atomic(folder.path() / "token", "secret");
  ModelServer open({}, {doubling_model()}), insecure({.insecure = true}, {doubling_model()}),
      closed({.token_file = (folder.path() / "token").string()}, {doubling_model()});
  for (const ModelServer* server : {&open, &insecure}) {
    EXPECT_EQ(call(*server, "GET", "/v2", "", {{"Host", "evil.example:5556"}}).status, 403);
    EXPECT_EQ(call(*server, "GET", "/v2", "", {{"Host", ""}}).status, 403);
    for (const char* host : {"localhost:5556", "127.0.0.1", "reward:5555"})
      EXPECT_EQ(call(*server, "GET", "/v2", "", {{"Host", host}}).status, 200) << host;
  }
  EXPECT_EQ(call(closed, "GET", "/v2", "", {{"Host", "rm.example"}, {"Authorization", "Bearer secret"}}).status, 200);
}

TEST(ModelServer, CallsThatChangeAModelWantTheTokenThatItMade) {
  Counter counter;
  ModelServer server({}, {doubling_model(), counter.model()});
  const std::string body = R"({"inputs":[{"name":"by","shape":[1],"datatype":"INT64","data":[1]}]})";
  for (const char* target : {"/v2/models/count/infer", "/v2/models/count/versions/1/infer", "/v2/models/%63ount/infer?x"}) {
    const HttpResponse response = call(server, "POST", target, body);
    EXPECT_EQ(response.status, 401) << target;
    EXPECT_NE(response.body.find("requires a token"), std::string::npos) << response.body;
  }
  EXPECT_EQ(call(server, "POST", "/v2/models/count/infer", body, {{"Authorization", "Bearer wrong"}}).status, 401);
  EXPECT_EQ(counter.sum(), 0);
  EXPECT_EQ(call(server, "GET", "/v2/models/count/config").status, 200);
  EXPECT_EQ(
      call(server, "POST", "/v2/models/double/infer", R"({"inputs":[{"name":"x","shape":[1,1],"datatype":"INT64","data":[1]}]})").status,
      200);
  const std::string token = read_token_file(server.token_path().value(), "token");
  EXPECT_EQ(find_local_token("localhost", server.port()), token);
  EXPECT_EQ(call(server, "POST", "/v2/models/count/infer", body, {{"Authorization", "Bearer " + token}}).status, 200);
  EXPECT_EQ(counter.sum(), 1);

  ModelServer insecure({.insecure = true}, {counter.model()});
  EXPECT_FALSE(insecure.token_path().has_value());
  EXPECT_EQ(call(insecure, "POST", "/v2/models/count/infer", body).status, 200);
}

TEST(ModelServer, MemoryHoldsAnUnpackedBody) {
  EXPECT_EQ(error_of<UsageError>([] { check_address({.max_body = {1000}, .max_memory = {1999}}); }),
            "max_memory: expected at least twice max_body (1000), for a body that is unpacked; found 1999");
}

TEST(ModelServer, IsNotOpenToOthersByAccident) {
  EXPECT_EQ(error_of<UsageError>([] { ModelServer server({.ip = "0.0.0.0"}, {doubling_model()}); }),
            "ip: 0.0.0.0 can be reached from other machines, and no token is set: set token_file, or insecure=true (--insecure) if that "
            "is intended");
  EXPECT_THROW(check_address({.ip = "0.0.0.0"}), UsageError);
  ModelServer open({.ip = "0.0.0.0", .insecure = true}, {doubling_model()});
  EXPECT_EQ(error_of<Error>([&] { check_address({.port = open.port()}); }).substr(0, 17), "cannot listen on ");
  EXPECT_EQ(call(open, "GET", "/v2/health/live").status, 200);
}

// A server that is started again looks whether its address is free before it loads its model, and clients that wait for it must not
// take that for the server.
TEST(ModelServer, CheckingAnAddressOpensItToNobody) {
  const int64_t port = HttpServer({}, [](const HttpRequest&, const HttpReply&) {}).port();
  std::atomic<bool> checking = true;
  std::thread checker([&] {
    for (int i = 0; i < 300; ++i) check_address({.port = port});
    checking = false;
  });
  int64_t num_connected = 0;
  while (checking)
    if (RawPeer(port).connected()) ++num_connected;
  checker.join();
  EXPECT_EQ(num_connected, 0);
}

TEST(ModelServer, StoppingAnswersWhoWaits) {
  Counter counter;
  std::promise<void> open;
  const auto opened = open.get_future().share();
  std::atomic<bool> running = false;
  ModelServer server({.insecure = true}, {counter.model([&] {
                       running = true;
                       opened.wait();
                     })});
  const std::string body = R"({"inputs":[{"name":"by","shape":[1],"datatype":"INT64","data":[1]}]})";
  auto first = std::async(std::launch::async, [&] { return call(server, "POST", "/v2/models/count/infer", body).status; });
  while (!running) std::this_thread::yield();
  auto second = std::async(std::launch::async, [&] { return said(call(server, "POST", "/v2/models/count/infer", body)); });
  while (call(server, "GET", "/metrics").body.find("kedge_queue_length 1\n") == std::string::npos) std::this_thread::yield();
  std::thread stopper([&] { server.stop(); });
  while (call(server, "GET", "/v2/health/ready").status == 200) std::this_thread::yield();
  open.set_value();
  stopper.join();
  EXPECT_EQ(first.get(), 200);
  EXPECT_EQ(second.get(), R"(503 {"error":"the server is shutting down"})");
}

}  // namespace
}  // namespace kedge
