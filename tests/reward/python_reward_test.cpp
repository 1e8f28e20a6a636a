// examples/python_reward run for real.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/reward/reward_command.h"

#include "tests/support/assets.h"
#include "tests/support/rollouts.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::HasSubstr;

struct Asked {
  std::string response, row;
};

std::vector<RowReward> rewards(const std::string& function, int64_t batch, const std::vector<Asked>& asked,
                               const std::vector<std::string>& more_arguments = {}) {
  const std::filesystem::path example = testing::source_folder() / "examples" / "python_reward";
  const std::string named = function.find('/') == std::string::npos ? (example / function).string() : function;
  std::vector<std::string> words = {"python3", (example / "reward_worker.py").string(), named};
  words.insert(words.end(), more_arguments.begin(), more_arguments.end());
  RewardCommand command({.name = "python", .command = std::move(words), .batch = batch});
  Rollouts rollouts;
  for (const Asked& one : asked) rollouts.push_back(testing::shared(testing::rollout(one.response, one.row)));
  return command.submit(std::move(rollouts)).get();
}

TEST(PythonReward, TheExampleRewardsTextAndMessages) {
  std::string long_answer = "Paris";
  for (int i = 0; i < 199; ++i) long_answer += " and";
  for (const int64_t batch : {1, 4}) {
    const auto got = rewards("my_reward.py:reward", batch,
                             {{"It is Paris.", R"({"text": "Q", "answer": "Paris"})"},
                              {"It is 4", R"({"messages": [{"role": "user", "content": "2 + 2?"}], "answer": 4})"},
                              {long_answer, R"({"text": "Q", "answer": "Paris"})"},
                              {"Rome", R"({"text": "Q", "answer": "Paris"})"},
                              {"Rome", R"({"text": "Q", "answer": null})"}});
    EXPECT_EQ(got[0].value, 1);
    EXPECT_EQ(got[1].value, 1);
    EXPECT_EQ(got[2].value, 0.5);  // a hundred words too many
    EXPECT_EQ(got[3].value, 0);
    EXPECT_EQ(got[3].error, "");
    EXPECT_EQ(got[4].error, "the command gave no reward (null)");
  }
}

TEST(PythonReward, AFunctionGetsWhatTrlWouldGiveIt) {
  const testing::TempFolder folder;
  const auto file = folder.file("check.py",
                                "def check(prompts, completions, completion_ids, label, **kwargs):\n"
                                "    print('printed')\n"
                                "    assert prompts == ['Q', [{'role': 'user', 'content': 'Hi'}]], prompts\n"
                                "    assert completions == ['a', [{'role': 'assistant', 'content': 'b'}]], completions\n"
                                "    assert completion_ids == [[11, 12], [11, 12]], completion_ids\n"
                                "    assert label == [3, None], label\n"
                                "    assert sorted(kwargs) == ['text'], kwargs\n"
                                "    return [1, 2.5]\n"
                                "def few(completions, label):\n"
                                "    return [len(completion) for completion in completions]\n"
                                "async def later(completions, **kwargs):\n"
                                "    return [float('nan') if c == 'a' else 7 for c in completions]\n"
                                "def logs(completions, log_metric, log_extra):\n"
                                "    log_extra('answers', completions)\n"
                                "    log_metric('accuracy', 0.25)\n"
                                "    return [1.0] * len(completions)\n"
                                "def asked(prompts, completions):\n"
                                "    assert (prompts, completions) == (['Q'], ['a']), (prompts, completions)\n"
                                "    return [3]\n"
                                "def broken(prompts, completions, **kwargs):\n"
                                "    return [1 / 0]\n");
  const std::vector<Asked> asked = {{"a", R"({"text": "Q", "label": 3})"}, {"b", R"({"prompt": [{"role": "user", "content": "Hi"}]})"}};
  const auto got = rewards(file.string() + ":check", 2, asked);
  EXPECT_EQ(got[0].error, "");
  EXPECT_EQ(got[0].value, 1);
  EXPECT_EQ(got[1].value, 2.5);
  EXPECT_EQ(rewards(file.string() + ":few", 2, asked)[0].value, 1);
  EXPECT_EQ(rewards(file.string() + ":later", 2, asked)[0].error, "the reward function gave nan");
  EXPECT_EQ(rewards(file.string() + ":later", 1, {{"c", "{}"}})[0].value, 7);
  EXPECT_EQ(rewards(file.string() + ":logs", 2, asked)[1].parts, (std::vector<std::pair<std::string, double>>{{"accuracy", 0.25}}));
  // The prompt is what kedge asks with, whatever else the row has.
  EXPECT_EQ(rewards(file.string() + ":asked", 1, {{"a", R"({"prompt": "Q", "messages": [{"role": "user", "content": "Hi"}]})"}})[0].value,
            3);
  EXPECT_EQ(rewards(file.string() + ":broken", 2, asked)[1].error, "ZeroDivisionError: division by zero");
}

TEST(PythonReward, AFunctionOfVerlIsCalledForEachResponse) {
  const testing::TempFolder folder;
  const auto file = folder.file("score.py",
                                "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
                                "    if data_source is None:\n"
                                "        assert extra_info == {}, extra_info\n"  // as verl has it
                                "        return {'score': 0.5, 'acc': True, 'note': 'text', 'pred': 3}\n"
                                "    assert data_source == 'openai/gsm8k', data_source\n"
                                "    assert extra_info == {'index': 4}, extra_info\n"
                                "    return solution_str == ground_truth\n"
                                "def fewer(solution_str, ground_truth):\n"
                                "    return float(len(solution_str)) if ground_truth else float('inf')\n");
  const std::string verl_row =
      R"({"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "Q"}], "reward_model": {"style": "rule", "ground_truth": "72"}, "extra_info": {"index": 4}})";
  for (const int64_t batch : {1, 4}) {
    const auto got = rewards(file.string() + ":compute_score", batch, {{"72", verl_row}, {"71", verl_row}, {"3", R"({"answer": 3})"}});
    EXPECT_EQ(got[0].error, "");
    EXPECT_EQ(got[0].value, 1);
    EXPECT_EQ(got[1].value, 0);
    EXPECT_EQ(got[2].value, 0.5);
    EXPECT_EQ(got[2].parts, (std::vector<std::pair<std::string, double>>{{"acc", 1}, {"pred", 3}}));
  }
  EXPECT_EQ(rewards(file.string() + ":fewer", 1, {{"four", verl_row}})[0].value, 4);
  EXPECT_EQ(rewards(file.string() + ":fewer", 1, {{"four", "{}"}})[0].error, "the reward function gave inf");
}

TEST(PythonReward, AFunctionOfOpenRlhfGetsQueriesAndLabels) {
  const testing::TempFolder folder;
  const auto file = folder.file(
      "score.py",
      "class Tensor(list):\n"
      "    def tolist(self): return list(self)\n"
      "def reward_func(queries, prompts, labels):\n"
      "    assert queries == ['Qa', 'Qb'] and prompts == ['Q', 'Q'], (queries, prompts)\n"
      "    assert labels == ['7', 8], labels\n"
      "    return Tensor([[1.5], [2.5]])\n"
      "def with_logs(q, p, l):\n"
      "    return {'rewards': Tensor([1, 2]), 'scores': Tensor([0, 1]), 'extra_logs': {'length': Tensor([3, 4]), 'all': Tensor([5])}}\n"
      "def few(queries, prompts, labels):\n"
      "    return [1.0]\n");
  const std::vector<Asked> asked = {{"a", R"({"label": "7", "answer": 0})"}, {"b", R"({"answer": 8})"}};
  const auto plain = rewards(file.string() + ":reward_func", 2, asked);
  EXPECT_EQ(plain[0].error, "");
  EXPECT_EQ(plain[0].value, 1.5);
  EXPECT_EQ(plain[1].value, 2.5);
  const auto logged = rewards(file.string() + ":with_logs", 2, asked, {"openrlhf"});
  EXPECT_EQ(logged[1].value, 2);
  EXPECT_EQ(logged[1].parts, (std::vector<std::pair<std::string, double>>{{"length", 4}}));
  EXPECT_EQ(rewards(file.string() + ":few", 2, asked)[0].error, "ValueError: 1 rewards for 2 completions");
  EXPECT_THAT(rewards(file.string() + ":few", 1, asked, {"prl"})[0].error,
              HasSubstr("prl: no such signature; there are trl, verl, openrlhf"));
}

TEST(PythonReward, SaysWhichFunctionIsNotThere) {
  EXPECT_THAT(rewards("my_reward.py:rewards", 1, {{"a", "{}"}})[0].error, HasSubstr("my_reward.py has no function rewards"));
}

}  // namespace
}  // namespace kedge
