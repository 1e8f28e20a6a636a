#include "kedge/algo/supervised/sft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "kedge/core/autograd.h"
#include "kedge/data/sets/packing.h"
#include "kedge/data/sets/sft_dataset.h"

#include "tests/support/expect_error.h"
#include "tests/support/tiny_training.h"

namespace kedge {
namespace {

using testing::byte_model;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TempFolder;

SftModelConfig config_for(const Path& train) {
  SftModelConfig config;
  config.data.train_ds.file_path = train.string();
  config.data.train_ds.max_seq_length = config.data.validation_ds.max_seq_length = 64;
  config.data.train_ds.prompt_template = config.data.validation_ds.prompt_template = "{input}: {output}";
  return config;
}

struct SftToy {
  std::unique_ptr<Model> model = byte_model();
  std::unique_ptr<Tokenizer> tokenizer = make_byte_tokenizer();

  SupervisedTask task(const SftModelConfig& config) { return make_sft_task(config, {model, *tokenizer, testing::kByteVocabulary, "none"}); }
};

// The loss of a row worked out from its ids: "qq:" is read, " answer 1" and the end are learnt.
TEST(Sft, TheLossIsTheMeanOverTheTokensOfAnswers) {
  const TempFolder temp;
  SftToy toy;
  const SupervisedTask task = toy.task(config_for(temp.file("train.jsonl", testing::sft_rows(3))));
  EXPECT_EQ(task.train.size, 3);
  TokenIds ids = toy.tokenizer->encode("qq: answer 1");
  const size_t prompt = 3;
  ids.push_back(*toy.tokenizer->special().eos);
  const PackedBatch batch = pack_rows(std::vector<TokenIds>{ids}, at::kCPU);
  const Tensor logprobs = model_logprobs(*toy.model, batch, predicted_tokens(batch)).logprobs;
  const Tensor wanted = -logprobs.slice(0, prompt - 1).mean();
  const RowsResult found = task.train.compute(std::vector<int64_t>{1}, {});
  // The last token, which is not put in here, is in the batch above; sums of one row may differ by their order.
  EXPECT_NEAR(found.loss.item<double>(), wanted.item<double>(), 1e-6);
  EXPECT_EQ(found.num_tokens, static_cast<int64_t>(ids.size()) - 1);
  const Metrics metrics = task.metrics_of(std::vector<double>{found.sums[0].item<double>(), 1, found.sums[2].item<double>()});
  EXPECT_NEAR(*metrics.find("loss"), wanted.item<double>(), 1e-6);
  EXPECT_EQ(*metrics.find("tokens"), static_cast<double>(ids.size() - prompt));
}

// A micro-batch's loss weighs its tokens alike; the step's is the mean of its micro-batches'.
TEST(Sft, MicroBatchesWeighAlike) {
  const TempFolder temp;
  SftToy toy;
  const SupervisedTask task = toy.task(config_for(temp.file("train.jsonl", testing::sft_rows(20))));
  const auto sums = [&](const std::vector<int64_t>& rows) { return task.train.compute(rows, {}).sums; };
  const Tensor one = sums({9}), other = sums({10}), both = sums({9, 10});
  const double tokens_one = one[2].item<double>(), tokens_other = other[2].item<double>();
  EXPECT_NE(tokens_one, tokens_other);
  EXPECT_NEAR(both[0].item<double>(),
              (one[0].item<double>() * tokens_one + other[0].item<double>() * tokens_other) / (tokens_one + tokens_other), 1e-6);
  const Tensor sum = one + other;
  EXPECT_NEAR(*task.metrics_of(std::vector<double>{sum[0].item<double>(), sum[1].item<double>(), sum[2].item<double>()}).find("loss"),
              (one[0].item<double>() + other[0].item<double>()) / 2, 1e-12);
}

// spec/models-data-ops.md 21.4
TEST(Sft, PackedAndUnpackedRowsGiveTheSameLossAndGradient) {
  const TempFolder temp;
  SftToy toy;
  const SftModelConfig plain = config_for(temp.file("train.jsonl", testing::sft_rows(6)));
  const SftDataset rows(open_sft_data(plain.data.train_ds, "train"), encoder_of(*toy.tokenizer), plain.data.train_ds);
  const PackingReport report = write_packs(
      rows.size(), [&](int64_t index) { return rows.get(index); }, {.pack_size = 48}, temp / "packs.jsonl");
  SftModelConfig packed = config_for(temp / "packs.jsonl");
  packed.data.train_ds.packed_sequence = true;
  const SupervisedTask one = toy.task(plain), other = toy.task(packed);
  ASSERT_EQ(other.train.size, report.num_packs);
  ASSERT_LT(report.num_packs, 6);
  const auto gradient = [&](const SupervisedTask& task) {
    std::vector<int64_t> all(static_cast<size_t>(task.train.size));
    std::iota(all.begin(), all.end(), 0);
    toy.model->parameters().flat_gradient().zero_();
    const RowsResult result = task.train.compute(all, {});
    backward(result.loss);
    return std::pair(result.loss.item<double>(), toy.model->parameters().flat_gradient().clone());
  };
  const auto [loss, slope] = gradient(one);
  const auto [packed_loss, packed_slope] = gradient(other);
  // The order of rows, and with it that of the sums, is another one.
  EXPECT_NEAR(loss, packed_loss, 1e-6);
  EXPECT_LT((slope - packed_slope).abs().max().item<double>(), 1e-6 * slope.abs().max().item<double>() * 10);
}

TEST(Sft, ConversationsAreTrainedOnWhatTheAssistantSays) {
  const TempFolder temp;
  SftToy toy;
  SftModelConfig config = config_for(temp.file(
      "chat.jsonl", R"({"system": "", "mask": "User", "conversations": [{"from": "User", "value": "hi"}, {"from": "Bot", "value": "yo"}]})"
                    "\n"));
  config.data.chat = true;
  const RowsResult result = toy.task(config).train.compute(std::vector<int64_t>{0}, {});
  EXPECT_EQ(result.sums[2].item<double>(), 4);  // y, o, the end of the turn, the start of the next
}

TEST(Sft, ARowWithoutAnAnswerTeachesNothing) {
  const TempFolder temp;
  SftToy toy;
  SftModelConfig config = config_for(temp.file("train.jsonl", R"({"input": "long enough", "output": ""})"
                                                              "\n"));
  config.data.train_ds.add_eos = false;
  config.data.train_ds.prompt_template = "{input}{output}";
  const RowsResult result = toy.task(config).train.compute(std::vector<int64_t>{0}, {});
  EXPECT_FALSE(result.loss.defined());
  EXPECT_EQ(result.sums.sum().item<double>(), 0);
}

TEST(Sft, PacksAreNoConversations) {
  const TempFolder temp;
  SftToy toy;
  SftModelConfig config = config_for(temp.file("train.jsonl", testing::sft_rows(2)));
  config.data.chat = config.data.train_ds.packed_sequence = true;
  EXPECT_THAT(error_of([&] { return toy.task(config); }), HasSubstr("model.data.train_ds.packed_sequence"));
}

TEST(Sft, ValidationHasSamplesToLookAt) {
  const TempFolder temp;
  SftToy toy;
  SftModelConfig config = config_for(temp.file("train.jsonl", testing::sft_rows(8)));
  config.data.validation_ds.file_path = temp.file("val.jsonl", testing::sft_rows(3)).string();
  config.num_samples = 2;
  config.sample_tokens = 5;
  const SupervisedTask task = toy.task(config);
  ASSERT_EQ(task.validation.size(), 1U);
  EXPECT_EQ(task.validation[0].name, "validation");
  const auto tables = task.samples();
  ASSERT_EQ(tables.size(), 1U);
  ASSERT_EQ(tables[0].rows.size(), 2U);
  EXPECT_EQ(tables[0].rows[1].prompt, "qq:");
}

}  // namespace
}  // namespace kedge
