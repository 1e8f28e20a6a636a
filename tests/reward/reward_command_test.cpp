#include "kedge/reward/reward_command.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <thread>

#include "kedge/core/files.h"

#include "tests/support/rollouts.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A worker whose replies follow what the response asks of it. It counts its starts in a file.
constexpr const char* kWorker = R"(
import json, os, sys, time
open(sys.argv[1], "a").write("s")
def reward(rollout):
    word, _, rest = rollout["response"].partition(" ")
    if word == "say": return float(rest)
    if word == "length": return len(rollout["response"])
    if word == "die": sys.stderr.write("about to die\n"); sys.stderr.flush(); os._exit(3)
    if word == "die_once" and not os.path.exists(rest): open(rest, "w"); os._exit(4)
    if word == "hang": time.sleep(1000)
    if word == "fail": return {"error": rest}
    if word == "parts": return {"reward": 1, "parts": {"a": 0.25}}
    if word == "garbage": print("some text"); sys.stdout.flush()
    if word == "pid": return os.getpid()
    return 0
for line in sys.stdin:
    request = json.loads(line)
    if "rollouts" in request:
        reply = {"id": request["id"], "rewards": [reward(r) for r in request["rollouts"]]}
    else:
        reply = reward(request)
        reply = dict(reply, id=request["id"]) if isinstance(reply, dict) else {"id": request["id"], "reward": reply}
    print(json.dumps(reply), flush=True)
)";

class RewardCommandTest : public ::testing::Test {
 protected:
  RewardCommandTest() { folder_.file("worker.py", kWorker); }

  RewardCommandConfig config() const {
    return {.name = "reward.sources.toy", .command = {"python3", (folder_ / "worker.py").string(), (folder_ / "starts").string()}};
  }
  [[nodiscard]] size_t num_starts() const { return read_text(folder_ / "starts").size(); }

  static Rollouts rollouts(const std::vector<std::string>& responses) {
    Rollouts all;
    for (const std::string& response : responses) all.push_back(testing::shared(testing::rollout(response)));
    return all;
  }
  static std::vector<RowReward> rewards(RewardCommand& command, const std::vector<std::string>& responses) {
    return command.submit(rollouts(responses)).get();
  }

  testing::TempFolder folder_;
};

TEST_F(RewardCommandTest, GivesEachRowItsReward) {
  RewardCommandConfig some = config();
  some.workers = 3;
  RewardCommand command(some);
  std::vector<std::string> responses;
  for (int i = 0; i < 100; ++i) responses.push_back("say " + std::to_string(i));
  const auto all = rewards(command, responses);
  ASSERT_EQ(all.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(all[static_cast<size_t>(i)].value, i);
  EXPECT_TRUE(rewards(command, {}).empty());
  const auto mixed = rewards(command, {"parts", "fail no judge"});
  EXPECT_EQ(mixed[0].parts.at(0), (std::pair<std::string, double>{"a", 0.25}));
  EXPECT_EQ(mixed[1].error, "no judge");
}

TEST_F(RewardCommandTest, ManyThreadsMaySubmit) {
  RewardCommandConfig some = config();
  some.workers = 2;
  some.batch = 4;
  RewardCommand command(some);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto got = rewards(command, {"say " + std::to_string(t), "say " + std::to_string(i)});
        EXPECT_EQ(got[0].value, t);
        EXPECT_EQ(got[1].value, i);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RewardCommandTest, LongRowsDoNotBlockThePipes) {
  RewardCommand command(config());
  EXPECT_EQ(rewards(command, {"length " + std::string(3'000'000, 'x')})[0].value, 3'000'007);
}

TEST_F(RewardCommandTest, ARowWhoseProcessDiesIsTriedAgain) {
  RewardCommand command(config());
  const auto all = rewards(command, {"say 1", "die_once " + (folder_ / "mark").string(), "say 2"});
  EXPECT_EQ(all[0].value, 1);
  EXPECT_EQ(all[1].error, "");
  EXPECT_EQ(all[2].value, 2);
  EXPECT_EQ(num_starts(), 2U);
}

TEST_F(RewardCommandTest, ARowThatKillsEveryProcessFailsAlone) {
  for (const int64_t batch : {1, 4}) {
    RewardCommandConfig some = config();
    some.batch = batch;
    RewardCommand command(some);
    const auto all = rewards(command, {"say 1", "die", "say 2", "say 3"});
    EXPECT_EQ(all[0].value, 1);
    EXPECT_EQ(all[1].error,
              "reward.sources.toy, worker 1 ended with exit code 3 before it replied; its last output: \"about to die\"; tried 2 times");
    EXPECT_EQ(all[2].value, 2);
    EXPECT_EQ(all[3].value, 3);
  }
}

// Each start of a program that fails as it starts may take seconds.
TEST_F(RewardCommandTest, AProgramThatFailsAsItStartsIsNotStartedForEveryRow) {
  RewardCommandConfig broken = config();
  broken.command = {"/bin/sh", "-c", "printf s >> '" + (folder_ / "starts").string() + "'; echo 'no module named judge' >&2; exit 1", ""};
  broken.retries = 0;
  RewardCommand command(broken);
  const size_t num_calls = 8;
  for (size_t i = 0; i < num_calls; ++i)
    for (const RowReward& reward : rewards(command, {"say 1", "say 2", "say 3", "say 4"}))
      EXPECT_THAT(reward.error, ::testing::HasSubstr("exit code 1 before it replied; its last output: \"no module named judge\""));
  // At first the one of the beginning, and three rows until it is given up; then one for each call.
  EXPECT_LE(num_starts(), 4 + num_calls);
}

// It may have waited for something that is there now.
TEST_F(RewardCommandTest, AProgramThatWasGivenUpIsUsedAgainWhenItWorks) {
  RewardCommandConfig late = config();
  const std::string mark = (folder_ / "ready").string();
  late.command = {"/bin/sh",
                  "-c",
                  "[ -e '" + mark + "' ] || exit 1; exec python3 \"$@\"",
                  "worker",
                  (folder_ / "worker.py").string(),
                  (folder_ / "starts").string()};
  RewardCommand command(late);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(rewards(command, {"say 1", "say 2"})[1].failed());
  folder_.file("ready", "");
  EXPECT_EQ(rewards(command, {"say 1", "say 2"})[1].value, 2);
}

TEST_F(RewardCommandTest, ARowThatTakesTooLongFailsAlone) {
  for (const int64_t batch : {1, 3}) {
    RewardCommandConfig some = config();
    some.batch = batch;
    some.timeout_s = 0.1;
    some.start_timeout_s = 5;  // for Python to start on a busy machine
    RewardCommand command(some);
    const auto all = rewards(command, {"say 1", "hang", "say 2"});
    EXPECT_EQ(all[0].value, 1);
    EXPECT_EQ(all[1].error, "reward.sources.toy, worker 1 gave no reply for prompt 7 within 0.1 s and was killed");
    EXPECT_EQ(all[2].value, 2);
  }
}

TEST_F(RewardCommandTest, OutputThatIsNoReplyIsShown) {
  RewardCommand command(config());
  const auto all = rewards(command, {"garbage", "say 2"});
  EXPECT_THAT(all[0].error, StartsWith("reward.sources.toy, worker 1 wrote \"some text\", which is not a reply: reply:"));
  EXPECT_THAT(all[0].error, HasSubstr("only replies may go to standard output"));
  EXPECT_EQ(all[1].value, 2);
}

TEST_F(RewardCommandTest, WhatAProcessSaysBeforeItIsAskedIsNoReplyEither) {
  RewardCommand command({.name = "toy", .command = {"echo Welcome; sleep 1000"}});
  EXPECT_THAT(rewards(command, {"x"})[0].error, StartsWith("toy, worker 1 wrote \"Welcome\", which is not a reply"));
}

TEST_F(RewardCommandTest, OneWordIsALineForTheShell) {
  RewardCommand command({.name = "toy", .command = {"while read line; do echo 0.5; done"}});
  EXPECT_EQ(rewards(command, {"a", "b"})[1].value, 0.5);
}

TEST_F(RewardCommandTest, ACommandThatCannotRunFailsItsRowsAndSaysWhy) {
  RewardCommand shell({.name = "toy", .command = {"no_such_command_here"}});
  for (const RowReward& row : rewards(shell, std::vector<std::string>(50, "x"))) {
    EXPECT_THAT(row.error, StartsWith("toy, worker 1 ended with exit code 127 before it replied; its last output: "));
    EXPECT_THAT(row.error, HasSubstr("not found"));
  }
  RewardCommand program({.name = "toy", .command = {"/no/such/program", "x"}});
  EXPECT_THAT(rewards(program, {"x"})[0].error,
              StartsWith("toy, worker 1 could not be started; its last output: \"cannot start /no/such/program: No such file"));
}

TEST_F(RewardCommandTest, NothingIsLeftBehind) {
  const auto num_open = [] {
    int64_t count = 0;
    DIR* folder = ::opendir("/proc/self/fd");
    while (::readdir(folder) != nullptr) ++count;
    ::closedir(folder);
    return count;
  };
  const int64_t before = num_open();
  int pid = 0;
  std::future<std::vector<RowReward>> pending;
  {
    RewardCommandConfig some = config();
    some.workers = 2;
    RewardCommand command(some);
    pid = static_cast<int>(rewards(command, {"pid"})[0].value);
    rewards(command, {"die", "garbage"});
    pending = command.submit(rollouts({"hang", "hang", "hang"}));
  }
  for (const RowReward& row : pending.get()) EXPECT_EQ(row.error, "reward.sources.toy: closed before it replied");
  EXPECT_EQ(num_open(), before);
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child, dead or alive
}

}  // namespace
}  // namespace kedge
