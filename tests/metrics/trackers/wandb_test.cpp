#include "kedge/metrics/trackers/wandb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "kedge/core/error.h"
#include "kedge/core/json.h"

#include "tests/support/expect_error.h"
#include "tests/support/scoped_variable.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::ScopedVariable;

// A wandb package of a few lines, in the place of the real one, that is online and keeps rows in a file as W&B does: none twice. The real
// one is asked in tests/cli/trackers_test.py.
constexpr const char* kPackage = R"python(
import json, os
class Settings:
    def __init__(self, **kwargs): self.mode = "online"
class Run:
    def __init__(self, init):
        self.path = os.path.join(init["dir"], "cloud.jsonl")
        self.dir, self.settings = init["dir"], Settings()
        rows = [json.loads(line) for line in open(self.path)] if os.path.exists(self.path) else []
        self.step = rows[-1]["step"] + 1 if rows else 0
        self.waiting = []
    def define_metric(self, *args, **kwargs): pass
    def log(self, data, step):
        if data.get("die") == 1: os.abort()
        if step >= self.step: self.waiting.append({"step": step, "data": data})
    def finish(self, exit_code):
        with open(self.path, "a") as file:
            for row in self.waiting: file.write(json.dumps(row) + "\n")
            file.flush()
        open(self.path + ".exit", "w").write(str(exit_code))
def init(**init):
    print("wandb: hello")
    if init.get("project") == "none": raise RuntimeError("no such project")
    open(os.path.join(init["dir"], "init.json"), "w").write(json.dumps({k: v for k, v in init.items() if k != "settings"}))
    return Run(init)
)python";

class Wandb : public ::testing::Test {
 protected:
  Wandb() {
    std::filesystem::create_directories(folder_ / "lib/wandb/proto");
    folder_.file("lib/wandb/__init__.py", kPackage);
    folder_.file("lib/wandb/proto/__init__.py", "");
    folder_.file("lib/wandb/proto/wandb_internal_pb2.py", "");
    std::filesystem::create_directories(folder_ / "run");
    folder_.file("run/config.yaml", "model: {seed: 3}\n");
  }
  [[nodiscard]] std::string cloud() const { return read_text(folder_ / "run/cloud.jsonl"); }

  testing::TempFolder folder_;
  ScopedVariable path_{"PYTHONPATH", (folder_ / "lib").string()};
  Json memory_;
  const std::function<void()> no_save_ = [] {};
};

std::vector<TrackerRow> row(int64_t number, double value) {
  return {{.number = number, .step = number / 2, .time_ms = 1500, .numbers = {{"loss", value}, {"bad", std::nan("")}}}};
}

TEST_F(Wandb, FeedsRowsAndTellsTheEnd) {
  WandbConfig config;
  config.project = "p";
  config.prefix = "x";
  WandbLink link(config, folder_ / "run");
  EXPECT_EQ(link.connect(memory_, no_save_), -1);
  link.send(row(0, 0.5));
  link.send(row(1, 0.25));
  link.finish(RunOutcome::failed);
  EXPECT_EQ(link.last_kept(), 1);
  EXPECT_EQ(cloud(),
            "{\"step\": 0, \"data\": {\"x-loss\": 0.5, \"x-bad\": NaN, \"trainer/global_step\": 0, \"_timestamp\": 1.5}}\n"
            "{\"step\": 1, \"data\": {\"x-loss\": 0.25, \"x-bad\": NaN, \"trainer/global_step\": 0, \"_timestamp\": 1.5}}\n");
  EXPECT_EQ(read_text(folder_ / "run/cloud.jsonl.exit"), "1");
  const Json init = Json::parse(read_text(folder_ / "run/init.json"));
  EXPECT_EQ(init.at("name", "").as_text(""), "run");
  EXPECT_EQ(init.at("id", "").as_text(""), memory_.at("id", "").as_text(""));
  EXPECT_EQ(init.at("config", "").dump(), R"({"model": {"seed": 3}})");
}

TEST_F(Wandb, TheNextProcessSaysWhatIsThere) {
  {
    WandbLink link({}, folder_ / "run");
    static_cast<void>(link.connect(memory_, no_save_));
    link.send(row(0, 0.5));
    link.finish(RunOutcome::finished);
  }
  WandbLink link({}, folder_ / "run");
  EXPECT_EQ(link.connect(memory_, no_save_), 0);
  EXPECT_EQ(link.last_kept(), 0);
}

TEST_F(Wandb, AProcessThatDiesIsAnErrorAndTheNextOneGoesOn) {
  WandbLink link({}, folder_ / "run");
  static_cast<void>(link.connect(memory_, no_save_));
  const std::vector<TrackerRow> deadly{{.number = 0, .numbers = {{"die", 1}}}};
  const std::string error = error_of<Error>([&] {
    link.send(deadly);
    while (true) {
      static_cast<void>(link.last_kept());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return 0;
  });
  EXPECT_NE(error.find("signal 6"), std::string::npos) << error;
  EXPECT_EQ(link.connect(memory_, no_save_), -1);
  link.send(row(0, 0.5));
  link.finish(RunOutcome::finished);
  EXPECT_EQ(link.last_kept(), 0);
}

TEST_F(Wandb, WhatWandbRefusesIsTold) {
  WandbConfig config;
  config.project = "none";
  WandbLink link(config, folder_ / "run");
  EXPECT_EQ(error_of<Error>([&] { return link.connect(memory_, no_save_); }), "RuntimeError: no such project");
}

TEST_F(Wandb, ALinkThatIsGivenUpStopsWaiting) {
  WandbLink link({}, folder_ / "run");
  link.abort(true);
  EXPECT_EQ(error_of<Error>([&] { return link.connect(memory_, no_save_); }), "given up");
}

WandbConfig of_python(const char* python) {
  WandbConfig config;
  config.python = python;
  return config;
}

TEST_F(Wandb, APythonWithoutThePackageIsTheUsersError) {
  check_wandb({});
  const ScopedVariable python("KEDGE_PYTHON", "/no/python");
  EXPECT_EQ(wandb_python({}), "/no/python");
  EXPECT_EQ(wandb_python(of_python("mine")), "mine");
  EXPECT_NE(error_of([] { check_wandb({}); }).find("cannot start /no/python"), std::string::npos);
  folder_.file("lib/wandb/__init__.py", "raise ImportError('broken')");
  const std::string error = error_of([] { check_wandb(of_python("python3")); });
  EXPECT_NE(error.find("python3 cannot load the wandb package (ImportError: broken). Install it: python3 -m pip install wandb"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace kedge
