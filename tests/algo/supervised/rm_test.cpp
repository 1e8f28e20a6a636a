#include "kedge/algo/supervised/rm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect_error.h"
#include "tests/support/tiny_training.h"

namespace kedge {
namespace {

using testing::byte_model;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TempFolder;

struct Toy {
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer = make_byte_tokenizer();

  explicit Toy(int64_t num_labels = 1) : model(byte_model({HeadKind::score, num_labels, false})) {}
  SupervisedTask task(const RmModelConfig& config) { return make_rm_task(config, {model, *tokenizer, testing::kByteVocabulary, "none"}); }
  // The reward of a text alone.
  std::vector<double> rewards(const std::string& text, Pooling pooling = Pooling::last) const {
    const Tensor scores = row_scores(*model, pack_rows(std::vector<TokenIds>{tokenizer->encode(text)}, at::kCPU), pooling);
    std::vector<double> numbers;
    for (int64_t i = 0; i < scores.size(1); ++i) numbers.push_back(scores[0][i].item<double>());
    return numbers;
  }
};

RmModelConfig config_for(const Path& train, const Path& validation) {
  RmModelConfig config;
  config.data.data_prefix = Json(Json::Object{{"train", Json::Array{train.string()}},
                                              {"validation", Json::Array{validation.string()}},
                                              {"test", Json::Array{validation.string()}}});
  config.data.seq_length = 64;
  return config;
}

std::vector<double> numbers_of(const Tensor& sums) { return {sums.data_ptr<double>(), sums.data_ptr<double>() + sums.numel()}; }

TEST(RewardModel, LearnsFromPairs) {
  const TempFolder temp;
  Toy toy;
  const SupervisedTask task =
      toy.task(config_for(temp.file("train.jsonl", testing::pair_rows(8)), temp.file("val.jsonl", testing::pair_rows(5))));
  EXPECT_EQ(task.train.size, 8);
  ASSERT_EQ(task.validation.size(), 1U);
  const RowsResult found = task.train.compute(std::vector<int64_t>{0, 2}, {});
  const double good[2] = {toy.rewards("q0 good")[0], toy.rewards("q2 good!!")[0]};
  const double bad[2] = {toy.rewards("q0 bad")[0], toy.rewards("q2 bad")[0]};
  const auto loss = [](double distance) { return std::log1p(std::exp(-distance)); };
  const double wanted = (loss(good[0] - bad[0]) + loss(good[1] - bad[1])) / 2;
  // fp32 rewards of about 1, in another batch.
  EXPECT_NEAR(found.loss.item<double>(), wanted, 1e-6);
  const Metrics metrics = task.metrics_of(numbers_of(found.sums));
  EXPECT_NEAR(*metrics.find("loss"), wanted, 1e-6);
  EXPECT_EQ(*metrics.find("acc"), (good[0] > bad[0] ? 0.5 : 0) + (good[1] > bad[1] ? 0.5 : 0));
  EXPECT_EQ(*metrics.find("weights"), 2);
  EXPECT_NEAR(*metrics.find("rewards_chosen_mean"), (good[0] + good[1]) / 2, 1e-6);
  EXPECT_NEAR(*metrics.find("rewards_margin"), (good[0] + good[1] - bad[0] - bad[1]) / 2, 1e-6);
}

// Four rewards 1, 3, 0, 2 of two pairs in the right order: mean 1.5, sample variance 5 / 3.
TEST(RewardModel, NumbersOfARanking) {
  const Metrics metrics = ranking_metrics(std::vector<double>{0.5, 2, 2, 4, 2, 14});
  EXPECT_EQ(*metrics.find("loss"), 0.25);
  EXPECT_EQ(*metrics.find("acc"), 1);
  EXPECT_EQ(*metrics.find("rewards_chosen_mean"), 2);
  EXPECT_EQ(*metrics.find("rewards_rejected_mean"), 1);
  EXPECT_EQ(*metrics.find("rewards_all_mean"), 1.5);
  EXPECT_NEAR(*metrics.find("rewards_all_std"), std::sqrt(5.0 / 3.0), 1e-12);
}

TEST(RewardModel, ValidationHasSamplesToLookAt) {
  const TempFolder temp;
  Toy toy;
  const SupervisedTask task =
      toy.task(config_for(temp.file("train.jsonl", testing::pair_rows(8)), temp.file("val.jsonl", testing::pair_rows(5))));
  const auto tables = task.samples();
  ASSERT_EQ(tables[0].rows.size(), 2U);
  const Sample& sample = tables[0].rows[1];
  EXPECT_EQ(sample.prompt, "q1 ");
  EXPECT_EQ(sample.response, "good!");
  EXPECT_NEAR(*sample.reward, toy.rewards("q1 good!")[0], 1e-6);
  EXPECT_EQ(Json(sample.extra).at("rejected", ""), Json("bad"));
}

constexpr const char* kLabelled = R"({"text": "one", "label": [1, -100, 3, 0, 2]}
{"text": "other", "label": [2, 2, 2, 2, 2]}
)";

RmModelConfig regression_config(const TempFolder& temp) {
  const Path file = temp.file("labels.jsonl", kLabelled);
  RmModelConfig config = config_for(file, file);
  config.reward_model_type = RewardModelType::regression;
  config.regression.num_attributes = 5;
  return config;
}

TEST(RewardModel, LearnsAttributesThatAreNotMasked) {
  const TempFolder temp;
  Toy toy(5);
  const RowsResult found = toy.task(regression_config(temp)).train.compute(std::vector<int64_t>{0}, {});
  const std::vector<double> y = toy.rewards("one");
  const auto square = [](double x) { return x * x; };
  EXPECT_NEAR(found.loss.item<double>(), (square(y[0] - 1) + square(y[2] - 3) + square(y[3]) + square(y[4] - 2)) / 4, 1e-5);
}

TEST(RewardModel, LearnsPairsWithAStrengthFromAttributeFour) {
  const TempFolder temp;
  Toy toy(5);
  RmModelConfig config = regression_config(temp);
  config.regression.loss_func = PreferenceLoss::margin_bt;
  config.use_avg_pool = true;
  const RowsResult found = toy.task(config).train.compute(std::vector<int64_t>{0, 1}, {});
  const double distance = toy.rewards("other", Pooling::mean)[4] - toy.rewards("one", Pooling::mean)[4];  // 1: B is better
  EXPECT_NEAR(found.loss.item<double>(), std::log1p(std::exp(1 - distance)), 1e-6);
}

TEST(RewardModel, RowsWithoutLabelsTeachNothing) {
  const TempFolder temp;
  Toy toy(1);
  const Path file = temp.file("labels.jsonl", R"({"text": "as long as one", "label": [1]}
{"text": "and longer than that", "label": [2]}
{"text": "one", "label": [3]}
{"text": "no", "label": [-100]}
)");
  RmModelConfig config = config_for(file, file);
  config.reward_model_type = RewardModelType::regression;
  config.data.seq_length = 8;  // the first two are too long, and the third stands in for them
  const SupervisedTask task = toy.task(config);
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{0}, {0, 1}, {3}, {1, 3}}) {
    const RowsResult found = task.train.compute(rows, {});
    EXPECT_FALSE(found.loss.defined());
    EXPECT_FALSE(task.metrics_of(numbers_of(found.sums)).find("loss"));
  }
  const double error = toy.rewards("one")[0] - 3;
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{2}, {1, 2}, {2, 3}})
    EXPECT_NEAR(task.train.compute(rows, {}).loss.item<double>(), error * error, 1e-5);
  EXPECT_EQ(measure_data(task.train, 1).largest_rows, (std::vector<int64_t>{2}));  // the one with a backward pass
}

TEST(RewardModel, APairWithAStrengthIsLeftOutIfOneSideIsTooLong) {
  const TempFolder temp;
  Toy toy(5);
  RmModelConfig config = regression_config(temp);
  config.regression.loss_func = PreferenceLoss::margin_bt;
  config.data.seq_length = 3;
  const SupervisedTask task = toy.task(config);
  EXPECT_FALSE(task.train.compute(std::vector<int64_t>{0, 1}, {}).loss.defined());
}

TEST(RewardModel, AFileWithoutLabelsIsRefused) {
  const TempFolder temp;
  Toy toy(1);
  const Path file = temp.file("labels.jsonl", "{\"text\": \"one\", \"label\": [-100]}\n");
  RmModelConfig config = config_for(file, file);
  config.reward_model_type = RewardModelType::regression;
  EXPECT_THAT(error_of([&] { return measure_data(toy.task(config).train, 1).num_looked_at; }), HasSubstr("no label"));
}

TEST(RewardModel, SettingsThatContradictThemselves) {
  const auto error = [](const auto& change) {
    RmConfig config;
    change(config);
    return error_of([&] { check_rm_config(config); });
  };
  EXPECT_THAT(error([](RmConfig& c) { c.model.regression.num_attributes = 9; }), HasSubstr("model.regression.num_attributes"));
  EXPECT_THAT(error([](RmConfig& c) { c.model.regression.loss_func = PreferenceLoss::scaled_bt; }),
              HasSubstr("model.regression.loss_func"));
  const auto scaled = [](RmConfig& c) {
    c.model.reward_model_type = RewardModelType::regression;
    c.model.regression.loss_func = PreferenceLoss::scaled_bt;
    c.model.regression.num_attributes = 9;
    c.trainer.loop.train_random_sampler = false;
  };
  RmConfig fine;
  scaled(fine);
  EXPECT_NO_THROW(check_rm_config(fine));
  EXPECT_THAT(error([&](RmConfig& c) { scaled(c), c.model.micro_batch_size = 4; }), HasSubstr("model.micro_batch_size"));
  EXPECT_THAT(error([&](RmConfig& c) { scaled(c), c.model.regression.num_attributes = 3; }), HasSubstr("attribute 4"));
  EXPECT_THAT(error([&](RmConfig& c) { scaled(c), c.trainer.loop.train_random_sampler = true; }), HasSubstr("train_random_sampler"));
  EXPECT_THAT(error([&](RmConfig& c) { scaled(c), c.model.data.drop_over_long = true; }), HasSubstr("model.data.drop_over_long"));
}

}  // namespace
}  // namespace kedge
