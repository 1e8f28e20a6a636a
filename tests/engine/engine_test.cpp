#include "kedge/engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kedge/model/files/model_files.h"
#include "kedge/train/optim/optimizer.h"

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/generation.h"
#include "tests/support/model_logits.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::expect_greedy;
using testing::greedy_request;
using testing::kFamilies;
using testing::long_model;
using testing::model_logits;
using testing::plain_greedy;
using testing::prompts_of;
using testing::rows_of;

std::vector<GenerateRequest> requests_of(const std::vector<std::vector<int32_t>>& prompts, int64_t max_new) {
  std::vector<GenerateRequest> requests;
  for (const auto& prompt : prompts) requests.push_back(greedy_request(prompt, max_new));
  return requests;
}

// The text of every prompt, drawn at temperature 1.
std::vector<std::vector<int32_t>> drawn_texts(const Model& model, const std::vector<std::vector<int32_t>>& prompts,
                                              const SchedulerConfig& scheduler, bool backwards) {
  Engine engine(model, {.memory = "64MiB", .scheduler = scheduler});
  std::vector<GenerateRequest> requests;
  for (size_t i = 0; i < prompts.size(); ++i) {
    GenerateRequest request;
    request.prompt = prompts[i];
    request.max_new = 48;
    request.key = {7, 0, 3, i, 0};
    requests.push_back(std::move(request));
  }
  if (backwards) std::reverse(requests.begin(), requests.end());
  std::vector<std::vector<int32_t>> texts;
  for (const auto& samples : engine.generate(std::move(requests))) texts.push_back(samples[0].tokens);
  if (backwards) std::reverse(texts.begin(), texts.end());
  return texts;
}

TEST(Engine, GreedyTextIsThatOfAPlainLoopInEveryFamily) {
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const auto model = long_model(family, {});
    const auto prompts = prompts_of({1, 2, 5, 63, 64, 65, 100, 130});
    for (const int64_t max_running : {1, 3, 64}) expect_greedy(*model, prompts, 40, {.scheduler = {.max_running = max_running}});
  }
}

TEST(Engine, GreedyTextIsTheSameWhereSequencesMustWait) {
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const auto model = long_model(family, {});
    const int64_t block = 2 * model->config().num_layers * model->config().kv_size() * 64 * 4;
    // Room for five blocks: four sequences of two blocks and more cannot stay together.
    const EngineStats stats = expect_greedy(*model, prompts_of({60, 61, 62, 63}), 80, {.memory = std::to_string(6 * block)});
    EXPECT_GT(stats.num_preempted, 0);
  }
}

TEST(Engine, GreedyTextIsTheSameWherePromptsAreComputedInPieces) {
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const auto model = long_model(family, {});
    for (const int64_t pieces : {1, 7}) expect_greedy(*model, prompts_of({3, 20, 70}), 10, {.scheduler = {.max_batch_tokens = pieces}});
  }
}

TEST(Engine, SamplesOfOnePromptComputeItOnce) {
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const auto model = long_model(family, {});
    for (const int64_t length : {5, 64, 70}) {
      const auto prompts = prompts_of({length});
      GenerateRequest request = greedy_request(prompts[0], 30);
      request.num_samples = 5;
      Engine engine(*model, {.memory = "8MiB"});
      const auto found = engine.generate({request});
      const auto wanted = plain_greedy(*model, prompts[0], 30);
      for (const Completion& sample : found[0]) EXPECT_EQ(sample.tokens, wanted);
      EXPECT_EQ(engine.stats().num_computed, length + 5 * 29);
    }
  }
}

TEST(Engine, ARealModelWritesWhatAPlainLoopWrites) {
  KEDGE_NEEDS_ASSET("models/tinystories-656k");
  const auto model = load_model(testing::asset("models/tinystories-656k"), {});
  const auto prompts = rows_of({1, 4, 9, 17, 33, 65, 2, 3, 5, 120, 64, 12}, model->config().vocab_size);
  for (const int64_t max_running : {1, 3, 64}) expect_greedy(*model, prompts, 64, {.scheduler = {.max_running = max_running}});
}

// Sampled text's log-probabilities, and those of a training batch of the same rows.
void expect_bits_of_training(const Model& model, const SchedulerConfig& scheduler) {
  Engine engine(model, {.memory = "8MiB", .scheduler = scheduler});
  std::vector<GenerateRequest> requests;
  for (const auto& prompt : prompts_of({3, 70, 20})) {
    requests.push_back(greedy_request(prompt, 50));
    requests.back().sampling = {.temperature = 0.8};
    requests.back().num_samples = 2;
  }
  const auto found = engine.generate(requests);
  std::vector<std::vector<int32_t>> rows;
  for (size_t i = 0; i < requests.size(); ++i)
    for (const Completion& sample : found[i]) {
      rows.push_back(requests[i].prompt);
      rows.back().insert(rows.back().end(), sample.tokens.begin(), sample.tokens.end());
    }
  const NoGrad no_grad;
  const PackedBatch batch = pack_rows(rows, at::kCPU);
  const Tensor logprobs = model_logprobs(model, batch, predicted_tokens(batch)).logprobs;
  int64_t end = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    end += static_cast<int64_t>(rows[i].size()) - 1;
    const std::vector<float>& mine = found[i / 2][i % 2].logprobs;
    const auto count = static_cast<int64_t>(mine.size());
    EXPECT_EQ(testing::largest_difference(at::tensor(mine), logprobs.narrow(0, end - count, count)), 0);
  }
}

// The policy's log-probabilities need no pass of their own: a training batch of the same rows gives the engine's bits, where the products
// are our own. Elsewhere sums come in another order; logits of bf16 have 8 bits and are of the order of one.
TEST(Engine, SampledLogprobsHaveTheBitsOfATrainingBatch) {
  for (const char* family : kFamilies)
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      SCOPED_TRACE(family);
      const auto model = long_model(family, {.dtype = dtype});
      expect_bits_of_training(*model, {});
      LoraConfig lora;
      lora.adapter_dim = 4;
      lora.alpha = 6;
      lora.target_modules = {"all"};
      model->add_adapters(lora, true);
      testing::scatter_weights(model->adapters()->parameters(), 50, 0.2);
      expect_bits_of_training(*model, {});
      expect_bits_of_training(*model, {.max_batch_tokens = 7});
    }
}

TEST(Engine, SampledTextDependsOnNoBatchAndNoOrder) {
  KEDGE_NEEDS_ASSET("models/tinystories-656k");
  const auto model = load_model(testing::asset("models/tinystories-656k"), {});
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 64; ++i) lengths.push_back(1 + i * 7 % 40);
  const auto prompts = rows_of(lengths, model->config().vocab_size);
  const auto alone = drawn_texts(*model, prompts, {.max_running = 1}, false);
  EXPECT_EQ(drawn_texts(*model, prompts, {.max_running = 7}, false), alone);
  EXPECT_EQ(drawn_texts(*model, prompts, {.max_running = 64}, false), alone);
  EXPECT_EQ(drawn_texts(*model, prompts, {.max_running = 64}, true), alone);
  EXPECT_EQ(drawn_texts(*model, prompts, {.max_batch_tokens = 5, .max_running = 64}, false), alone);
}

TEST(Engine, SamplesOfAPromptDifferAndRepeat) {
  const auto model = long_model(testing::kTinyLlama, {});
  GenerateRequest request;
  request.prompt = {1, 2, 3};
  request.num_samples = 4;
  request.max_new = 20;
  request.key.seed = 11;
  Engine engine(*model, {.memory = "8MiB"});
  const auto first = engine.generate({request, request});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(first[0][i].tokens, first[1][i].tokens);
    for (size_t j = 0; j < i; ++j) EXPECT_NE(first[0][i].tokens, first[0][j].tokens);
  }
  request.key.sample = 2;  // the third sample alone
  request.num_samples = 1;
  EXPECT_EQ(engine.generate({request})[0][0].tokens, first[0][2].tokens);
  request.key.round = 1;
  EXPECT_NE(engine.generate({request})[0][0].tokens, first[0][2].tokens);
}

// Those of the prompt and those drawn since, each once; of the likeliest token alone, so that a plain loop can follow.
TEST(Engine, ThePenaltyFallsOnAllTokensSoFar) {
  const auto model = long_model(testing::kTinyLlama, {});
  const std::vector<int32_t> prompt = prompts_of({5})[0];
  GenerateRequest request;
  request.prompt = prompt;
  request.max_new = 20;
  request.sampling.top_k = 1;
  request.sampling.repetition_penalty = 1.5;
  Engine engine(*model, {.memory = "64MiB"});
  std::vector<GenerateRequest> requests;
  requests.push_back(std::move(request));
  const std::vector<int32_t> found = engine.generate(std::move(requests))[0][0].tokens;
  std::vector<int32_t> row = prompt, wanted;
  const NoGrad no_grad;
  for (int i = 0; i < 20; ++i) {
    const Tensor logits = model_logits(*model, pack_rows({&row, 1}, at::kCPU)).select(0, -1).clone();
    for (const int32_t id : std::set<int32_t>(row.begin(), row.end())) logits[id].div_(1.5);
    wanted.push_back(static_cast<int32_t>(logits.argmax().item<int64_t>()));
    row.push_back(wanted.back());
  }
  EXPECT_EQ(found, wanted);
  EXPECT_NE(found, plain_greedy(*model, prompt, 20));
}

TEST(Engine, AnEndTokenEndsAndTheLeastLengthHoldsItBack) {
  const auto model = long_model(testing::kTinyLlama, {});
  const auto text = plain_greedy(*model, {4, 5, 6}, 30);
  GenerateRequest request = greedy_request({4, 5, 6}, 30);
  request.end_ids = {text[6]};
  const auto first = static_cast<size_t>(std::find(text.begin(), text.end(), text[6]) - text.begin());
  Engine engine(*model, {.memory = "8MiB"});
  const Completion ended = engine.generate({request})[0][0];
  EXPECT_EQ(ended.finish, Finish::end);
  EXPECT_EQ(ended.tokens, std::vector<int32_t>(text.begin(), text.begin() + static_cast<int64_t>(first) + 1));
  request.min_new = static_cast<int64_t>(first) + 3;
  const Completion later = engine.generate({request})[0][0];
  EXPECT_GT(later.tokens.size(), first + 3);
  for (size_t i = 0; i < first + 3; ++i) EXPECT_NE(later.tokens[i], text[6]);
  // Only the first of the end tokens is held back, or as many as are EOS.
  request.end_ids = {30, text[6]};
  EXPECT_EQ(engine.generate({request})[0][0].tokens, ended.tokens);
  request.num_eos = 2;
  EXPECT_EQ(engine.generate({request})[0][0].tokens, later.tokens);
}

TEST(Engine, AnEndThatIsNoTokenIsAskedForAfterEachToken) {
  const auto model = long_model(testing::kTinyLlama, {});
  const auto text = plain_greedy(*model, {4, 5, 6}, 30);
  GenerateRequest request = greedy_request({4, 5, 6}, 30);
  size_t asked = 0;
  request.ends = [&](std::span<const int32_t> response) {
    EXPECT_EQ(response.size(), ++asked);
    return response.size() == 9;
  };
  Engine engine(*model, {.memory = "8MiB"});
  const Completion ended = engine.generate({request})[0][0];
  EXPECT_EQ(ended.finish, Finish::end);
  EXPECT_EQ(ended.tokens, std::vector<int32_t>(text.begin(), text.begin() + 9));
}

TEST(Engine, EveryRowHasItsOwnCapAndTheContextIsOneToo) {
  const auto model = long_model(testing::kTinyGpt2, {});  // 256 positions
  Engine engine(*model, {.memory = "8MiB"});
  const auto found = engine.generate({greedy_request({1}, 3), greedy_request({1, 2}, 9), greedy_request(prompts_of({250})[0], 100)});
  EXPECT_EQ(found[0][0].tokens.size(), 3U);
  EXPECT_EQ(found[1][0].tokens.size(), 9U);
  EXPECT_EQ(found[2][0].tokens.size(), 6U);
  EXPECT_EQ(found[2][0].finish, Finish::length);
}

TEST(Engine, PaddingOfTheVocabularyIsNeverDrawn) {
  const auto model = long_model(testing::kTinyLlama, {});
  GenerateRequest request;
  request.prompt = {1};
  request.max_new = 200;
  request.vocab_size = 10;
  Engine engine(*model, {.memory = "8MiB"});
  const Completion found = engine.generate({request})[0][0];
  for (const int32_t id : found.tokens) EXPECT_LT(id, 10);
}

TEST(Engine, RequestsThatCannotBeServedAreNamedAndOthersGoOn) {
  const auto model = long_model(testing::kTinyLlama, {});
  const int64_t block = 2 * model->config().num_layers * model->config().kv_size() * 64 * 4;
  Engine engine(*model, {.memory = std::to_string(3 * block)});  // two blocks and the spare one
  const auto refused = [&](std::vector<int32_t> prompt, int64_t max_new, const std::string& words) {
    GenerateRequest request = greedy_request(std::move(prompt), max_new);
    request.where = "prompts.jsonl line 3";
    EXPECT_EQ(error_of([&] { return engine.submit(request); }).substr(0, words.size()), words);
  };
  static_cast<void>(engine.submit(greedy_request({1, 2}, 4)));
  refused({}, 4, "prompts.jsonl line 3: the prompt is empty");
  refused({1, 31}, 4, "prompts.jsonl line 3: id 31 is outside the model's vocabulary of 31");
  refused({1, -1}, 4, "prompts.jsonl line 3: id -1 is outside");
  refused(prompts_of({256})[0], 4,
          "prompts.jsonl line 3: a prompt of 256 tokens leaves no room for a response in the model's context of 256");
  refused({1}, 0, "prompts.jsonl line 3: a response of at most 0 tokens");
  refused({1}, 200, "prompts.jsonl line 3: 201 tokens need 4 blocks of the KV cache, which has 2");
  std::vector<Completion> ended;
  while (engine.step({{}, [&](Completion completion) { ended.push_back(std::move(completion)); }})) {
  }
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].tokens, plain_greedy(*model, {1, 2}, 4));
}

TEST(Engine, LogitsThatAreNoNumbersEndTheirRequestAlone) {
  const auto model = long_model(testing::kTinyLlama, {});
  {
    const NoGrad no_grad;  // whoever reads token 7 gets no numbers
    model->parameters().value(model->places().embedding).select(0, 7).fill_(std::nanf(""));
  }
  Engine engine(*model, {.memory = "8MiB"});
  GenerateRequest bad = greedy_request({1, 7, 2}, 5);
  bad.where = "line 2";
  GenerateRequest good = greedy_request({1, 3, 2}, 5);
  const auto found = engine.generate({good, bad, good});
  EXPECT_EQ(found[1][0].finish, Finish::failed);
  EXPECT_NE(found[1][0].error.find("line 2: after 0 tokens the logits are not finite"), std::string::npos) << found[1][0].error;
  EXPECT_EQ(found[0][0].finish, Finish::length);
  EXPECT_EQ(found[0][0].tokens, found[2][0].tokens);
  // Its blocks are used again: nothing of it may be left.
  EXPECT_EQ(engine.generate({good})[0][0].tokens, found[0][0].tokens);
}

TEST(Engine, ListenersHearEveryTokenAndMaySubmit) {
  const auto model = long_model(testing::kTinyLlama, {});
  Engine engine(*model, {.memory = "8MiB"});
  std::vector<int32_t> heard;
  std::vector<Completion> ended;
  static_cast<void>(engine.submit(greedy_request({1, 2}, 5)));
  EngineEvents events;
  events.token = [&](int64_t request, int64_t, int32_t token) {
    if (request == 0) heard.push_back(token);
  };
  events.end = [&](Completion completion) {
    if (completion.request < 3) static_cast<void>(engine.submit(greedy_request({3}, 2)));
    ended.push_back(std::move(completion));
  };
  while (engine.step(events)) {
  }
  EXPECT_TRUE(engine.idle());
  ASSERT_EQ(ended.size(), 4U);
  EXPECT_EQ(heard, ended[0].tokens);
  EXPECT_EQ(ended[3].request, 3);
}

TEST(Engine, MemoryIsGivenBackAndTakenAgain) {
  const auto model = long_model(testing::kTinyLlama, {});
  Engine engine(*model, {.memory = "1MiB", .release_in_training = true});
  EXPECT_EQ(engine.memory_bytes(), 0);
  const auto before = engine.generate({greedy_request({1, 2}, 5)});
  EXPECT_GT(engine.memory_bytes(), 0);
  EXPECT_LE(engine.memory_bytes(), 1 << 20);
  engine.release_for_training();
  EXPECT_EQ(engine.memory_bytes(), 0);
  EXPECT_EQ(engine.generate({greedy_request({1, 2}, 5)})[0][0].tokens, before[0][0].tokens);
  EXPECT_EQ(engine.stats().num_drawn, 10);
  EXPECT_EQ(error_of([&] { return std::make_unique<Engine>(*model, EngineConfig{.memory = "much"}); }),
            "memory: \"much\" is not an amount of memory; expected bytes such as 4GiB, or a fraction of the free memory such as 0.5");
  Engine small(*model, {.memory = "100"});
  EXPECT_NE(error_of([&] { return small.submit(greedy_request({1}, 5)); }).find("memory: 100 B of "), std::string::npos);
}

TEST(Engine, AnOptimizersStepIsSeenAtOnce) {
  const auto model = long_model(testing::kTinyLlama, {.trainable = true});
  Engine engine(*model, {.memory = "8MiB"});
  const auto prompts = prompts_of({10, 20});
  const auto before = engine.generate(requests_of(prompts, 20));
  Optimizer optimizer({}, model->trained());
  optimizer.zero_gradients();
  const PackedBatch batch = pack_rows(prompts, at::kCPU);
  backward(model_logprobs(*model, batch, predicted_tokens(batch)).logprobs.sum());
  optimizer.step(0.05, 1);
  const auto after = engine.generate(requests_of(prompts, 20));
  EXPECT_NE(after[0][0].tokens, before[0][0].tokens);
  EXPECT_EQ(after[0][0].tokens, plain_greedy(*model, prompts[0], 20));
}

TEST(Engine, AdaptersDecodeAsTheMergedModelDoesAndOffAsTheBase) {
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const auto model = long_model(family, {});
    Engine engine(*model, {.memory = "8MiB"});
    const auto prompts = prompts_of({10, 70});
    const auto base = engine.generate(requests_of(prompts, 20));
    LoraConfig lora;
    lora.adapter_dim = 4;
    lora.target_modules = {"all"};
    model->add_adapters(lora, true);
    model->adapters()->initialise(3);
    EXPECT_EQ(engine.generate(requests_of(prompts, 20))[1][0].tokens, base[1][0].tokens);  // nothing is added yet
    testing::scatter_weights(model->adapters()->parameters(), 50, 0.2);
    const auto adapted = engine.generate(requests_of(prompts, 20));
    EXPECT_NE(adapted[1][0].tokens, base[1][0].tokens);
    {
      const AdaptersOff off(model->adapters());
      EXPECT_EQ(engine.generate(requests_of(prompts, 20))[1][0].tokens, base[1][0].tokens);
    }
    model->merge_adapters();
    const auto merged = engine.generate(requests_of(prompts, 20));
    for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(merged[i][0].tokens, adapted[i][0].tokens);
  }
}

}  // namespace
}  // namespace kedge
