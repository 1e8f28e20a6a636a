#include "kedge/metrics/trackers/mlflow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "kedge/core/error.h"
#include "kedge/net/http_server.h"

#include "tests/support/expect_error.h"
#include "tests/support/scoped_variable.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::ScopedVariable;

// As much of an MLflow server as the link needs. A real one is asked in tests/cli/trackers_test.py.
class FakeMlflow {
 public:
  FakeMlflow() : server_({}, [this](const HttpRequest& request, const HttpReply& reply) { reply.send(answer(request)); }) {}
  [[nodiscard]] std::string uri() const { return str("http://127.0.0.1:", server_.port(), "/base/"); }

  std::mutex mutex;
  std::vector<std::string> calls;  // "POST runs/create"
  std::vector<Json> numbers, params;
  std::string status, authorization, tags;
  bool has_experiment = false, loses_run = false, refuses_params = false;
  bool forgets_answer = false;  // of runs/create, once

 private:
  HttpResponse answer(const HttpRequest& request) {
    const std::lock_guard lock(mutex);
    const std::string start = "/base/api/2.0/mlflow/";
    EXPECT_TRUE(request.target.starts_with(start)) << request.target;
    const std::string what = request.target.substr(start.size());
    calls.push_back(request.method + " " + what);
    authorization = find_header(request.headers, "Authorization").value_or("");
    const Json body = request.body.empty() ? Json() : Json::parse(request.body);
    if (what.starts_with("experiments/get-by-name"))
      return has_experiment ? ok(R"({"experiment": {"experiment_id": "7", "lifecycle_stage": "active"}})")
                            : failed(404, "RESOURCE_DOES_NOT_EXIST");
    if (what == "experiments/create") {
      has_experiment = true;
      return ok(R"({"experiment_id": "7"})");
    }
    if (what == "runs/create") {
      tags = body.at("tags", "").dump();
      if (std::exchange(forgets_answer, false)) return failed(503, "TEMPORARILY_UNAVAILABLE");
      return ok(R"({"run": {"info": {"run_id": "r1"}}})");
    }
    if (what == "runs/search") return ok(R"({"runs": [{"info": {"run_id": "r1"}}]})");
    if (what == "runs/update") {
      if (loses_run) return failed(404, "RESOURCE_DOES_NOT_EXIST");
      status = body.at("status", "").as_text("");
      return ok("{}");
    }
    if (body.find("params") != nullptr) {
      if (refuses_params) return failed(400, "INVALID_PARAMETER_VALUE");
      for (const Json& param : body.at("params", "").as_array("")) params.push_back(param);
    }
    if (const Json* batch = body.find("metrics")) {
      EXPECT_LE(batch->as_array("").size(), 1000U);
      for (const Json& number : batch->as_array("")) numbers.push_back(number);
    }
    return ok("{}");
  }
  static HttpResponse ok(std::string body) { return {200, {}, std::move(body)}; }
  static HttpResponse failed(int status, const std::string& code) {
    return {status, {}, str(R"({"error_code": ")", code, R"(", "message": "no"})")};
  }

  HttpServer server_;
};

MlflowConfig config_of(const FakeMlflow& server) {
  MlflowConfig config;
  config.tracking_uri = server.uri();
  return config;
}

const std::function<void()> kNoSave = [] {};

TEST(Mlflow, MakesItsRunOnceAndSendsSettingsNumbersAndTheEnd) {
  const ScopedVariable token("MLFLOW_TRACKING_TOKEN", "secret");
  FakeMlflow server;
  const testing::TempFolder folder;
  folder.file("config.yaml", "model: {seed: 3, layers: [1, 2]}\nname: null\n");
  MlflowConfig config = config_of(server);
  config.experiment_name = "a b";
  config.tags = std::map<std::string, std::string>{{"team", "x"}};
  Json memory;
  {
    MlflowLink link(config, folder.path());
    EXPECT_EQ(link.connect(memory, kNoSave), std::nullopt);
    link.send(std::vector<TrackerRow>{{.number = 4, .step = 2, .time_ms = 1500, .numbers = {{"loss", 0.1}, {"a+b", std::nan("")}}}});
    EXPECT_EQ(link.last_kept(), 4);
    EXPECT_EQ(server.status, "RUNNING");
    link.finish(RunOutcome::failed);
  }
  EXPECT_EQ(server.status, "FAILED");
  EXPECT_EQ(server.authorization, "Bearer secret");
  EXPECT_NE(server.tags.find(R"({"key": "team", "value": "x"})"), std::string::npos);
  EXPECT_EQ(server.calls.at(0), "GET experiments/get-by-name?experiment_name=a%20b");
  EXPECT_EQ(server.calls.at(1), "POST experiments/create");
  ASSERT_EQ(server.params.size(), 3U);
  EXPECT_EQ(server.params[0].dump(), R"({"key": "model.seed", "value": "3"})");
  EXPECT_EQ(server.params[1].dump(), R"({"key": "model.layers", "value": "[1, 2]"})");
  ASSERT_EQ(server.numbers.size(), 2U);
  EXPECT_EQ(server.numbers[0].dump(), R"({"key": "loss", "value": 0.1, "timestamp": 1500, "step": 2})");
  EXPECT_EQ(server.numbers[1].dump(), R"({"key": "a_b", "value": "NaN", "timestamp": 1500, "step": 2})");

  server.calls.clear();
  MlflowLink again(config, folder.path());
  static_cast<void>(again.connect(memory, kNoSave));
  EXPECT_EQ(server.calls, (std::vector<std::string>{"POST runs/update"}));
}

TEST(Mlflow, SendsAtMostAThousandNumbersInACall) {
  FakeMlflow server;
  const testing::TempFolder folder;
  MlflowLink link(config_of(server), folder.path());
  Json memory;
  static_cast<void>(link.connect(memory, kNoSave));
  std::vector<TrackerRow> rows(50);
  for (TrackerRow& row : rows)
    for (int i = 0; i < 50; ++i) row.numbers.emplace_back(str("n", i), i);
  link.send(rows);
  EXPECT_EQ(server.numbers.size(), 2500U);
}

TEST(Mlflow, ARunWhoseIdWasLostOnTheWayIsFoundAgain) {
  FakeMlflow server;
  server.forgets_answer = true;
  const testing::TempFolder folder;
  MlflowLink link(config_of(server), folder.path());
  Json memory;
  EXPECT_EQ(error_of<Error>([&] { return link.connect(memory, kNoSave); }), "runs/create: HTTP 503: no");
  static_cast<void>(link.connect(memory, kNoSave));
  EXPECT_EQ(std::count(server.calls.begin(), server.calls.end(), "POST runs/create"), 1);
  EXPECT_EQ(memory.at("run_id", "").as_text(""), "r1");
}

TEST(Mlflow, RefusedSettingsDoNotKeepNumbersAway) {
  FakeMlflow server;
  server.refuses_params = true;
  const testing::TempFolder folder;
  folder.file("config.yaml", "a: 1\n");
  MlflowConfig config = config_of(server);
  config.run_id = "given";
  MlflowLink link(config, folder.path());
  Json memory;
  static_cast<void>(link.connect(memory, kNoSave));
  link.send(std::vector<TrackerRow>{{.numbers = {{"loss", 0.1}}}});
  EXPECT_EQ(server.numbers.size(), 1U);
  EXPECT_EQ(memory.at("run_id", "").as_text(""), "given");
}

TEST(Mlflow, ARunThatTheServerNoLongerHasIsNamed) {
  FakeMlflow server;
  server.loses_run = true;
  const testing::TempFolder folder;
  MlflowLink link(config_of(server), folder.path());
  Json memory = Json::Object{{"run_id", "r9"}};
  EXPECT_NE(error_of<Error>([&] {
              return link.connect(memory, kNoSave);
            }).find("has no run r9 any more. To send everything as a new one, remove"),
            std::string::npos);
}

TEST(Mlflow, ALinkThatIsGivenUpFailsAtOnce) {
  FakeMlflow server;
  const testing::TempFolder folder;
  MlflowLink link(config_of(server), folder.path());
  Json memory;
  link.abort(true);
  EXPECT_EQ(error_of<Error>([&] { return link.connect(memory, kNoSave); }), "given up");
  link.abort(false);
  static_cast<void>(link.connect(memory, kNoSave));
}

}  // namespace
}  // namespace kedge
