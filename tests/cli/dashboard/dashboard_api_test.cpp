#include "cli/dashboard/dashboard_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/run_toy.h"

namespace kedge::cli {
namespace {

using kedge::testing::RunToy;
using kedge::testing::TempFolder;
using ::testing::HasSubstr;
using ::testing::Not;

class DashboardApiTest : public ::testing::Test {
 protected:
  DashboardApiTest() {
    first_.add_steps(0, 5);
    second_.add_steps(0, 8);
    first_.add_record(0, {{"Hello", "sad", 1}, {"World", "glum", 2}});
    first_.add_record(3, {{"Hello", "happy", 5}});
    first_.add_sample(R"({"step": 0, "time": 1, "table": "val_rollouts", "prompt": "p", "response": "r", "reward": 2.5})");
  }

  [[nodiscard]] HttpResponse get(const std::string& target) { return api().answer(request(target)); }
  [[nodiscard]] Json json(const std::string& target) {
    const HttpResponse response = get(target);
    EXPECT_EQ(response.status, 200) << target << ": " << response.body;
    return Json::parse(response.body);
  }
  [[nodiscard]] std::pair<int, std::string> fault(const std::string& target) {
    const HttpResponse response = get(target);
    return {response.status, Json::parse(response.body).at("error", "").as_text("")};
  }
  static HttpRequest request(const std::string& target) { return {"GET", target, {{"Host", "localhost:6006"}}, ""}; }
  DashboardApi& api() {
    if (!api_) api_.emplace(std::vector<std::string>{first_.folder().string(), second_.folder().string()});
    return *api_;
  }

  TempFolder folder_;
  RunToy first_{folder_ / "first"}, second_{folder_ / "second", "rollouts: {keep: none}\nmodel: {optim: {lr: 0.1}}\n"};
  std::optional<DashboardApi> api_;
};

int64_t size_of(const Json& json, std::string_view key) { return std::ssize(json.at(key, "the test").as_array("")); }

TEST_F(DashboardApiTest, ServesItsPageWithAStrictPolicy) {
  for (const auto& [target, type] :
       {std::pair{"/", "text/html"}, {"/app.js", "text/javascript"}, {"/style.css", "text/css"}, {"/icon.svg", "image/svg+xml"}}) {
    const HttpResponse response = get(target);
    EXPECT_EQ(response.status, 200) << target;
    EXPECT_THAT(find_header(response.headers, "Content-Type").value_or(""), HasSubstr(type));
    EXPECT_THAT(find_header(response.headers, "Content-Security-Policy").value_or(""), HasSubstr("default-src 'none'"));
    EXPECT_FALSE(response.body.empty());
    EXPECT_THAT(find_header(response.headers, "Access-Control-Allow-Origin").value_or("none"), "none");
  }
  EXPECT_THAT(get("/").body, Not(HasSubstr("https://")));
}

TEST_F(DashboardApiTest, OnlyLooksAreAnswered) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    HttpRequest asked = request("/api/runs");
    asked.method = method;
    const HttpResponse response = api().answer(asked);
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(find_header(response.headers, "Allow"), "GET, HEAD");
  }
  HttpRequest asked = request("/api/runs");
  asked.method = "HEAD";
  EXPECT_EQ(api().answer(asked).status, 200);
}

TEST_F(DashboardApiTest, AForeignHostIsRefused) {
  for (const char* host :
       {"evil.example", "evil.example:6006", "localhost.evil.example", "", "127.0.0.1.nip.io:6006", "[::1", "[evil]:80"}) {
    HttpRequest asked = request("/api/runs");
    asked.headers = {{"Host", host}};
    EXPECT_EQ(api().answer(asked).status, 403) << host;
  }
  EXPECT_EQ(api().answer({"GET", "/api/runs", {}, ""}).status, 403);
}

TEST_F(DashboardApiTest, WhoDoesNotShowTheTokenSeesNothing) {
  DashboardApi guarded({first_.folder().string()}, "secret");
  const auto ask = [&](const std::string& target, const HttpHeaders& more = {}) {
    HttpRequest asked = request(target);
    asked.headers.insert(asked.headers.end(), more.begin(), more.end());
    return guarded.answer(asked);
  };
  for (const char* target :
       {"/", "/api/runs", "/app.js", "/?token=", "/?token=secre", "/?token=secret2", "/api/runs?token=wrong", "/nothing"})
    EXPECT_EQ(ask(target).status, 401) << target;
  for (const char* cookie : {"kedge-6006=wrong", "kedge-6007=secret", "x=1; kedge-6006=", "xkedge-6006=secret", "secret"})
    EXPECT_EQ(ask("/api/runs", {{"Cookie", cookie}}).status, 401) << cookie;
  EXPECT_EQ(ask("/api/runs", {{"Authorization", "Bearer secret2"}}).status, 401);

  const HttpResponse page = ask("/?token=secret");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(find_header(page.headers, "Set-Cookie"), "kedge-6006=secret; HttpOnly; SameSite=Strict; Path=/");
  EXPECT_EQ(ask("/api/runs", {{"Cookie", "kedge-6006=secret"}}).status, 200);
  EXPECT_EQ(ask("/api/runs", {{"Cookie", "a=b; kedge-6006=secret; c=d"}}).status, 200);
  EXPECT_EQ(ask("/api/runs", {{"Authorization", "Bearer secret"}}).status, 200);
  EXPECT_EQ(find_header(get("/").headers, "Set-Cookie"), std::nullopt);
}

TEST_F(DashboardApiTest, OnlyServersOfThisMachineAreAsked) {
  const RunToy away(folder_ / "away", "remote_rm: {reward_model: {ip: rm.example, port: 5555}}\n");
  DashboardApi careful({away.folder().string()}), bold({away.folder().string()}, std::nullopt, true);
  const auto text_of = [](DashboardApi& one) {
    return Json::parse(one.answer(request("/api/servers")).body).at("servers", "").as_array("")[0].at("text", "").as_text("");
  };
  EXPECT_EQ(text_of(careful), "not asked: it is on another machine; kedge dashboard --ask-servers asks it");
  EXPECT_EQ(text_of(bold), "not asked yet");
}

TEST_F(DashboardApiTest, NoPathLeadsToOtherFiles) {
  for (const char* target : {"/../config.yaml", "/..%2fconfig.yaml", "/%2e%2e/%2e%2e/etc/passwd", "/api/../config.yaml", "/api/", "/api",
                             "/api/runs/", "/api/%72uns/..", "//", "/web/app.js", "/index.html", "/app.js/", "/api/runs%00", "/app.js%00"})
    EXPECT_EQ(get(target).status, 404) << target;
  EXPECT_EQ(get("/%zz").status, 400);
  EXPECT_EQ(get("no-slash").status, 400);
  EXPECT_EQ(get("").status, 400);
}

TEST_F(DashboardApiTest, TellsTheRunsTheirChartsAndCurves) {
  const Json runs = json("/api/runs");
  ASSERT_EQ(size_of(runs, "runs"), 2);
  const Json charts = json("/api/charts");
  EXPECT_EQ(charts.at("charts", "").as_array("").front().at("id", ""), Json("reward"));
  const Json series = json("/api/series?run=0&smooth=0.5&points=100");
  const Json& rewards = series.at("series", "").at("train_rollouts/rewards", "");
  EXPECT_EQ(rewards.at("x", "").dump(), "[0, 1, 2, 3, 4]");
  EXPECT_EQ(rewards.at("y", "").dump(), "[0, 1, 2, 3, 4]");
  EXPECT_EQ(size_of(rewards, "s"), 5);
  EXPECT_EQ(json("/api/series?run=0&more=1").at("series", "").find("train_rollouts/rewards"), nullptr);
  EXPECT_NE(json("/api/series?run=0&more=1").at("series", "").find("train/step_time"), nullptr);
}

TEST_F(DashboardApiTest, ArrivingLinesAreThereAtTheNextLook) {
  const Json before = json("/api/runs");
  first_.add_steps(5, 6);
  Json after = json("/api/runs");
  while (after == before) {  // it looks every half second
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    after = json("/api/runs");
  }
  EXPECT_NE(before.at("runs", "").as_array("")[0].at("version", ""), after.at("runs", "").as_array("")[0].at("version", ""));
  EXPECT_EQ(after.at("runs", "").as_array("")[0].at("step", ""), Json(6));
}

TEST_F(DashboardApiTest, TimesAreMeansOverStretches) {
  const Json told = json("/api/timing?run=1&bars=4");
  EXPECT_EQ(told.at("from", "").dump(), "[0, 2, 4, 6]");
  EXPECT_EQ(told.at("to", "").dump(), "[1, 3, 5, 7]");
  const Json::Array& parts = told.at("parts", "").as_array("");
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].at("seconds", "").dump(), "[0.5, 0.5, 0.5, 0.5]");
  EXPECT_EQ(parts[1].at("label", ""), Json("the rest"));
  EXPECT_EQ(parts[1].at("seconds", "").dump(), "[1.5, 1.5, 1.5, 1.5]");
  EXPECT_EQ(parts[0].at("mean", ""), Json(0.5));
}

TEST_F(DashboardApiTest, AnswersPairsAndSamplesAreSearchedAndSorted) {
  EXPECT_EQ(json("/api/answers?run=0").at("step", ""), Json(3));
  const Json worst = json("/api/answers?run=0&step=0&worst=1");
  EXPECT_EQ(worst.at("answers", "").as_array("")[0].at("response", ""), Json("sad"));
  EXPECT_EQ(json("/api/answers?run=0&step=0&search=GLUM").at("found", ""), Json(1));
  const Json pairs = json("/api/pairs?run=0");
  ASSERT_EQ(size_of(pairs, "pairs"), 1);
  EXPECT_EQ(pairs.at("pairs", "").as_array("")[0].at("response", "").dump(), R"(["sad", "happy"])");
  EXPECT_EQ(pairs.at("pairs", "").as_array("")[0].at("step", "").dump(), "[0, 3]");
  EXPECT_EQ(json("/api/pairs?run=0&step=0&other_step=0").at("found", ""), Json(2));
  EXPECT_EQ(json("/api/samples?run=0&search=p").at("found", ""), Json(1));
  EXPECT_EQ(json("/api/records?run=1").at("why", ""), Json("no records: rollouts.keep=none"));
  EXPECT_EQ(json("/api/servers").at("servers", "").as_array("")[0].at("address", ""), Json("localhost:5555"));
}

TEST_F(DashboardApiTest, SettingsThatDifferAreTold) {
  const Json told = json("/api/settings");
  ASSERT_EQ(size_of(told, "rows"), 2);
  EXPECT_EQ(told.at("rows", "").as_array("")[1].dump(), R"({"key": "model.optim.lr", "values": ["0.001", "0.1"]})");
  const Json alone = json("/api/settings?runs=1");
  EXPECT_EQ(alone.at("columns", "").dump(), R"(["default", "second"])");
  EXPECT_THAT(alone.at("rows", "").dump(), HasSubstr("rollouts.keep"));
}

TEST_F(DashboardApiTest, WhatIsAskedWronglyIsNamed) {
  using Fault = std::pair<int, std::string>;
  EXPECT_EQ(fault("/api/series"), (Fault{400, "run: which run?"}));
  EXPECT_EQ(fault("/api/series?run=7"), (Fault{404, "run: no run 7"}));
  EXPECT_EQ(fault("/api/series?run=-1"), (Fault{400, "run: expected a number of at least 0, found \"-1\""}));
  EXPECT_EQ(fault("/api/series?run=first").first, 400);
  EXPECT_EQ(fault("/api/series?run=0&smooth=1").first, 400);
  EXPECT_EQ(fault("/api/series?run=0&smooth=nan").first, 400);
  EXPECT_EQ(fault("/api/series?run=0&points=99999999").first, 400);
  EXPECT_EQ(fault("/api/answers?run=0&sort=beauty"), (Fault{400, "sort: there is no \"beauty\""}));
  EXPECT_EQ(fault("/api/answers?run=0&limit=0").first, 400);
  EXPECT_EQ(fault("/api/answers?run=0&step=9").first, 422);
  EXPECT_EQ(fault("/api/answers?run=1").first, 422);
  EXPECT_EQ(fault("/api/pairs?run=0&step=0").first, 422);
  EXPECT_EQ(fault("/api/settings?runs=0,9"), (Fault{404, "runs: no run 9"}));
  EXPECT_EQ(fault("/api/nothing"), (Fault{404, "no such address"}));
  EXPECT_EQ(fault("/api/runs?a=1&a=2").first, 400);
}

TEST_F(DashboardApiTest, ADamagedRecordIsNamed) {
  write_atomic(first_.folder() / "rollouts" / "step-4.jsonl", "{\"step\": 4");
  const auto [status, text] = fault("/api/answers?run=0&step=4");
  EXPECT_EQ(status, 422);
  EXPECT_THAT(text, HasSubstr("step-4.jsonl"));
}

}  // namespace
}  // namespace kedge::cli
