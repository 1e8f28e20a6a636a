// The engine on a GPU beside plain loops of whole passes there. Skipped where there is none.
#include <gtest/gtest.h>

#include <cmath>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/engine/engine.h"

#include "tests/support/generation.h"
#include "tests/support/ragged_requests.h"

namespace kedge {
namespace {

using testing::expect_greedy;
using testing::expect_same;
using testing::greedy_request;
using testing::Heard;
using testing::kFamilies;
using testing::long_model;
using testing::prompts_of;
using testing::ragged_requests;

class EngineOnTheGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  }
  static StorageOptions fp32() { return {.device = at::Device(at::kCUDA, 0)}; }
};

// Rows do not see each other, but products of other numbers of rows may sum in another order.
constexpr double kLogprobError = 1e-4;

// With every step launched after the tokens of the one before were read, and before.
struct Both {
  Heard after, ahead;
};
Both listen_to_both(const Model& model, EngineConfig config, const std::vector<GenerateRequest>& requests) {
  Both both;
  for (const bool ahead : {false, true}) {
    config.step_ahead = ahead;
    Engine engine(model, config);
    (ahead ? both.ahead : both.after) = testing::listen(engine, requests);
  }
  expect_same(both.ahead, both.after, kLogprobError);
  return both;
}

TEST_F(EngineOnTheGpu, GreedyTextIsThatOfAPlainLoopInEveryFamily) {
  for (const char* family : kFamilies)
    for (const bool use_graphs : {true, false}) {
      SCOPED_TRACE(family);
      const auto model = long_model(family, fp32());
      const auto prompts = prompts_of({1, 2, 5, 63, 64, 65, 100, 130});
      for (const int64_t max_running : {1, 3, 64})
        expect_greedy(*model, prompts, 40, {.scheduler = {.max_running = max_running}, .use_graphs = use_graphs});
    }
}

TEST_F(EngineOnTheGpu, GreedyTextIsTheSameWhereSequencesWaitOrPromptsComeInPieces) {
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const auto model = long_model(family, fp32());
    const int64_t block = 2 * model->config().num_layers * model->config().kv_size() * 64 * 4;
    EXPECT_GT(expect_greedy(*model, prompts_of({60, 61, 62, 63}), 80, {.memory = std::to_string(6 * block)}).num_preempted, 0);
    for (const int64_t pieces : {1, 7}) expect_greedy(*model, prompts_of({3, 20, 70}), 10, {.scheduler = {.max_batch_tokens = pieces}});
  }
}

TEST_F(EngineOnTheGpu, SamplesOfOnePromptAreThatOfAPlainLoop) {
  const auto model = long_model(testing::kTinyLlama, fp32());
  for (const int64_t length : {5, 64, 70}) {
    const auto prompts = prompts_of({length});
    GenerateRequest request = greedy_request(prompts[0], 30);
    request.num_samples = 5;
    Engine engine(*model, {.memory = "8MiB"});
    const auto wanted = testing::plain_greedy(*model, prompts[0], 30);
    const auto found = engine.generate({request});
    for (const Completion& sample : found[0]) EXPECT_EQ(sample.tokens, wanted);
  }
}

TEST_F(EngineOnTheGpu, AdaptersAreAddedAndSwitchedOff) {
  const auto model = long_model(testing::kTinyLlama, fp32());
  Engine engine(*model, {.memory = "8MiB"});
  const auto text = [&] { return engine.generate({greedy_request({3, 4, 5}, 30)})[0][0].tokens; };
  const auto base = text();
  LoraConfig lora;
  lora.adapter_dim = 4;
  lora.target_modules = {"all"};
  model->add_adapters(lora, false);
  model->adapters()->initialise(3);
  testing::scatter_weights(model->adapters()->parameters(), 50, 0.2);
  const auto adapted = text();
  EXPECT_NE(adapted, base);
  EXPECT_EQ(text(), adapted);  // replayed
  {
    const AdaptersOff off(model->adapters());
    EXPECT_EQ(text(), base);
  }
  testing::scatter_weights(model->adapters()->parameters(), 90, 0.2);  // as an optimizer does: in place
  EXPECT_NE(text(), adapted);
}

TEST_F(EngineOnTheGpu, AStepAheadSamplesTheSameInEveryFamily) {
  for (const char* family : kFamilies)
    for (const bool use_graphs : {true, false}) {
      SCOPED_TRACE(family);
      const auto model = long_model(family, fp32());
      const Both both = listen_to_both(*model, {.memory = "64MiB", .use_graphs = use_graphs}, ragged_requests(60));
      EXPECT_GT(both.ahead.stats.num_computed, both.after.stats.num_computed) << "nothing was computed ahead";
    }
}

TEST_F(EngineOnTheGpu, AStepAheadSamplesTheSameWhereSomeWait) {
  const auto model = long_model(testing::kTinyLlama, fp32());
  const int64_t block = 2 * model->config().num_layers * model->config().kv_size() * 64 * 4;
  for (const bool use_graphs : {true, false}) {
    for (const SchedulerConfig& scheduler : {SchedulerConfig{.max_running = 3}, {.max_batch_tokens = 7}, {.max_batch_tokens = 1}})
      listen_to_both(*model, {.memory = "64MiB", .scheduler = scheduler, .use_graphs = use_graphs}, ragged_requests(30));
    const EngineConfig small = {.memory = std::to_string(6 * block), .use_graphs = use_graphs};
    EXPECT_GT(listen_to_both(*model, small, ragged_requests(30)).ahead.stats.num_preempted, 0);
  }
}

// A third of the ids end a response: nearly every step holds rows past their end, and most engines stop with a step in vain.
TEST_F(EngineOnTheGpu, AStepAheadSurvivesManyEnds) {
  const auto model = long_model(testing::kTinyLlama, fp32());
  const auto requests = testing::short_requests(300);
  for (const int64_t max_running : {5, 64, 256})
    EXPECT_GT(testing::count_ended(listen_to_both(*model, {.memory = "64MiB", .scheduler = {.max_running = max_running}}, requests).ahead,
                                   Finish::end),
              300);
}

TEST_F(EngineOnTheGpu, AStepAheadReportsFailuresAsTheyAre) {
  const auto model = long_model(testing::kTinyLlama, fp32());
  {
    const NoGrad no_grad;  // whoever reads token 7 gets no numbers
    model->parameters().value(model->places().embedding).select(0, 7).fill_(std::nanf(""));
  }
  const Both both = listen_to_both(*model, {.memory = "64MiB"}, ragged_requests(60));
  EXPECT_GT(testing::count_ended(both.ahead, Finish::failed), 10);
}

TEST_F(EngineOnTheGpu, AStepUnderWayDoesNotOutliveItsEngine) {
  const auto model = long_model(testing::kTinyLlama, fp32());
  const auto requests = ragged_requests(20);
  Heard first;
  for (int i = 0; i < 3; ++i) {
    Engine abandoned(*model, {.memory = "8MiB"});
    for (const GenerateRequest& request : requests) static_cast<void>(abandoned.submit(request));
    for (int step = 0; step < 3 + i; ++step) abandoned.step({{}, [](const Completion&) {}});
    Engine engine(*model, {.memory = "8MiB"});
    const Heard heard = testing::listen(engine, requests);
    engine.release();
    expect_same(testing::listen(engine, requests), heard, kLogprobError);
    if (i > 0) expect_same(heard, first, kLogprobError);
    first = heard;
  }
}

// A model with heads of 64, 96 and 128 channels in bf16: the log-probabilities of what was drawn, beside those of a training pass. Both
// round to 8 bits at the same places but for the attention's weights; with logits of the order of one that is some hundredths.
TEST_F(EngineOnTheGpu, Bf16LogprobsAreCloseToThoseOfTraining) {
  for (const int64_t dim : {64, 96, 128}) {
    ModelConfig config =
        testing::tiny_config(kedge::str(R"({"model_type": "llama", "vocab_size": 1000, "hidden_size": 256, "head_dim": )", dim,
                                        R"(, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
      "num_key_value_heads": 2, "max_position_embeddings": 4096})")
                                 .c_str());
    Model model(config, {}, {.dtype = at::kBFloat16, .device = at::Device(at::kCUDA, 0)});
    model.initialise(5);
    Engine engine(model, {.memory = "1GiB"});
    std::vector<GenerateRequest> requests;
    for (const int64_t length : {5, 64, 700, 130, 1900}) {
      GenerateRequest request;
      request.prompt = testing::rows_of({length}, 1000)[0];
      request.max_new = 100;
      request.num_samples = 3;
      request.sampling.temperature = request.logprob_temperature = length == 64 ? 0.6 : 1;
      requests.push_back(request);
    }
    const auto found = engine.generate(requests);
    double worst = 0, sum = 0;
    int64_t count = 0;
    for (size_t i = 0; i < requests.size(); ++i)
      for (const Completion& sample : found[i]) {
        std::vector<int32_t> row = requests[i].prompt;
        row.insert(row.end(), sample.tokens.begin(), sample.tokens.end());
        const NoGrad no_grad;
        const PackedBatch batch = pack_rows({&row, 1}, model.device());
        const Tensor logprobs =
            model_logprobs(model, batch, predicted_tokens(batch), {.temperature = requests[i].logprob_temperature}).logprobs.cpu();
        for (size_t j = 0; j < sample.tokens.size(); ++j, ++count) {
          const double difference =
              std::abs(logprobs[static_cast<int64_t>(requests[i].prompt.size() + j) - 1].item<double>() - sample.logprobs[j]);
          worst = std::max(worst, difference);
          sum += difference;
        }
      }
    std::cout << "bf16, heads of " << dim << ": engine and training log-probabilities differ by " << sum / static_cast<double>(count)
              << " on average, " << worst << " at most\n";
    EXPECT_LT(worst, 0.1);
  }
}

}  // namespace
}  // namespace kedge
