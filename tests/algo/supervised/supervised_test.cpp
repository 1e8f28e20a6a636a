#include "kedge/algo/supervised/supervised.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/algo/supervised/sft.h"
#include "kedge/core/autograd.h"
#include "kedge/core/random.h"

#include "tests/support/expect_error.h"
#include "tests/support/largest_allocation.h"
#include "tests/support/tiny_training.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::same_bits;
using testing::TempFolder;

// A trainer over a tiny network and prompt-response rows.
struct SupervisedToy {
  TempFolder temp;
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer = make_byte_tokenizer();
  SupervisedConfig config;
  OptimConfig optim;
  SupervisedBatches batches{4, 2, true, 7, false};

  explicit SupervisedToy(std::unique_ptr<Model> network = testing::byte_model()) : model(std::move(network)) {
    config.max_epochs = 2;
    optim.lr = 0.01;
    optim.sched = {.name = ScheduleKind::constant, .warmup_steps = 3};
  }
  SupervisedTask task() {
    SftModelConfig sft;
    sft.data.train_ds.file_path = temp.file("train.jsonl", testing::sft_rows(22)).string();
    sft.data.validation_ds.file_path = temp.file("val.jsonl", testing::sft_rows(7)).string();
    sft.data.validation_ds.global_batch_size = batches.global_size;
    sft.data.validation_ds.micro_batch_size = batches.micro_size;
    return make_sft_task(sft, {model, *tokenizer, testing::kByteVocabulary, "none"});
  }
  SupervisedTrainer trainer() {
    SupervisedTask made = task();
    const SupervisedPlan plan = plan_supervised(config, made, batches, 1, "trainer.sft");
    return SupervisedTrainer({*model, Group::single(), std::move(made), config, optim, batches, plan, false, {}, "base"});
  }
};

Metrics without_times(const Metrics& metrics) {
  Metrics kept;
  for (const auto& [name, value] : metrics)
    if (!name.starts_with("timers/")) kept.set(name, value);
  return kept;
}
std::string shown(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : without_times(metrics)) text += name + "=" + shortest(value) + " ";
  return text;
}

// Every row of the second batch is left out, for example because it is too long.
TEST(Supervised, ABatchWithoutALossChangesNothing) {
  SupervisedToy toy;
  toy.optim.weight_decay = 0.1;
  SupervisedTask made = toy.task();
  bool learns = true;
  made.train.compute = [&, inner = made.train.compute](std::span<const int64_t> rows, const PassOptions& pass) {
    RowsResult result = inner(rows, pass);
    if (!learns) result.loss = Tensor();
    return result;
  };
  const SupervisedPlan plan = plan_supervised(toy.config, made, toy.batches, 1, "trainer.sft");
  SupervisedTrainer trainer({*toy.model, Group::single(), std::move(made), toy.config, toy.optim, toy.batches, plan, false, {}, "base"});
  for (int i = 0; i < 2; ++i) static_cast<void>(trainer.train_step());
  const Tensor before = toy.model->parameters().flat_master().clone();
  learns = false;
  static_cast<void>(trainer.train_step());
  EXPECT_TRUE(same_bits(toy.model->parameters().flat_master(), before));
  learns = true;
  static_cast<void>(trainer.train_step());
  EXPECT_FALSE(same_bits(toy.model->parameters().flat_master(), before));
}

// What all weights need is there after the first step. No plan has room for something as large that comes and goes.
TEST(Supervised, NothingInAStepIsAsLargeAsTheWeights) {
  SupervisedToy toy(testing::tiny_model(testing::kWideByteLlama));
  SupervisedTrainer trainer = toy.trainer();
  static_cast<void>(trainer.train_step());
  const testing::LargestAllocation memory;
  static_cast<void>(trainer.train_step());
  EXPECT_LT(memory.bytes(), toy.model->parameters().flat_master().nbytes() / 4);
}

TEST(Supervised, PlansWholeBatches) {
  SupervisedToy toy;
  const SupervisedTask task = toy.task();
  const SupervisedPlan plan = plan_supervised(toy.config, task, toy.batches, 1, "trainer.sft");
  EXPECT_EQ(plan.steps.steps_per_epoch, 5);
  EXPECT_EQ(plan.steps.max_steps, 10);
  EXPECT_TRUE(plan.intervals.has_validation);
  toy.config.limit_train_batches = 3;
  toy.config.val_check_interval = 0.5;
  toy.config.limit_val_batches = 0;
  const SupervisedPlan limited = plan_supervised(toy.config, task, toy.batches, 2, "trainer.sft");
  EXPECT_EQ(limited.steps.max_steps, 6);
  EXPECT_EQ(limited.intervals.validate, 1);
  EXPECT_FALSE(limited.intervals.has_validation);
  toy.config.max_steps = 50;
  EXPECT_EQ(plan_supervised(toy.config, task, toy.batches, 2, "trainer.sft").steps.max_steps, 6);
  toy.batches.goes_on = true;
  EXPECT_EQ(plan_supervised(toy.config, task, toy.batches, 2, "trainer.sft").steps.max_steps, 50);
  toy.config.val_check_interval = 0.1;
  toy.config.limit_val_batches = 0.5;
  EXPECT_EQ(error_of([&] { return plan_supervised(toy.config, task, toy.batches, 2, "trainer.sft").intervals.validate; }),
            "trainer.sft.limit_val_batches: 0.5 leaves no batch of validation, which has 1; 0 switches validation off");
  toy.config.limit_val_batches = 1;
  EXPECT_EQ(plan_supervised(toy.config, task, toy.batches, 2, "trainer.sft").intervals.validate, 1);
}

// Rows of 1 to 5 question bytes, ": " or " ", "answer" and a number, of which the last token is not put in.
TEST(Supervised, TheLargestMicroBatchIsMadeOfTheLongestRows) {
  SupervisedToy toy;
  const SupervisedTask task = toy.task();
  std::vector<int64_t> tokens;
  double all = 0;
  for (int64_t row = 0; row < 22; ++row) {
    tokens.push_back(task.train.compute(std::vector<int64_t>{row}, {}).num_tokens);
    all += static_cast<double>(tokens.back());
  }
  std::sort(tokens.begin(), tokens.end(), std::greater<>());
  const DataSize size = measure_data(task.train, 3);
  EXPECT_EQ(size.largest_micro.tokens, tokens[0] + tokens[1] + tokens[2]);
  EXPECT_EQ(size.largest_micro.rows, 3);
  EXPECT_EQ(size.largest_micro.longest, tokens[0]);
  EXPECT_EQ(size.tokens_per_epoch, all);
  ASSERT_EQ(size.largest_rows.size(), 3);
  EXPECT_EQ(task.train.compute(size.largest_rows, {}).num_tokens, size.largest_micro.tokens);
  EXPECT_EQ(measure_data(task.train, 3, 5).num_looked_at, 5);
}

TEST(Supervised, PlansThatCannotBe) {
  SupervisedToy toy;
  const SupervisedTask task = toy.task();
  const auto error = [&](const auto& change, int num_ranks = 1) {
    SupervisedConfig config = toy.config;
    SupervisedBatches batches = toy.batches;
    change(config, batches);
    return error_of([&] { return plan_supervised(config, task, batches, num_ranks, "trainer.sft"); });
  };
  EXPECT_EQ(error([](auto&, auto&) {}, 3), "global_batch_size: 4 rows do not divide into micro-batches of 2 on 3 ranks");
  EXPECT_THAT(error([](auto&, auto& batches) { batches.global_size = 24; }), HasSubstr("22 rows are fewer than one batch of 24"));
  EXPECT_THAT(error([](auto&, auto& batches) { batches.shuffle = false; }), HasSubstr("trainer.sft.max_epochs: 2 epochs in the order"));
  EXPECT_THAT(error([](auto& config, auto&) { config.limit_train_batches = 0; }), HasSubstr("leaves no batch"));
  EXPECT_THAT(error([](auto& config, auto&) { config.save_interval = 150; }), HasSubstr("trainer.sft.save_interval: 150"));
}

// Rows are counted, so a run of 10 steps of 4 rows, at step 3, has 28 of 40 rows left: 3 steps of 8 rows.
TEST(Supervised, AnotherBatchSizeGoesOnWithTheRowsThatAreLeft) {
  SupervisedPlan plan;
  plan.steps = plan_steps(2, 1, 2, -1);  // 22 rows by 8
  Checkpoint checkpoint;
  checkpoint.meta.counters = {{"step", 3}, {"consumed_samples", 12}};
  SupervisedConfig config;
  config.max_epochs = 2;
  EXPECT_EQ(continue_plan(plan, config, checkpoint, 8).steps.max_steps, 3 + 20 / 8);
  config.max_steps = 4;
  EXPECT_EQ(continue_plan(plan, config, checkpoint, 8).steps.max_steps, 4);
  checkpoint.meta.counters["consumed_samples"] = 24;
  EXPECT_EQ(continue_plan(plan, config, checkpoint, 8).steps.max_steps, plan.steps.max_steps);  // the size did not change
}

// The gradient of a step is the mean of its micro-batches': the first update of plain gradient descent, by hand.
TEST(Supervised, AStepAveragesItsMicroBatches) {
  SupervisedToy toy, by_hand;
  toy.config.gradient_clip_val = std::nullopt;
  SupervisedTrainer trainer = toy.trainer();
  const Metrics metrics = trainer.train_step().metrics;
  const std::vector<int64_t> order = permutation(22, 7);
  const SupervisedTask task = by_hand.task();
  double loss = 0;
  for (const size_t begin : {0, 2}) {
    const RowsResult part = task.train.compute(std::span(order).subspan(begin, 2), {});
    backward(part.loss * 0.5);
    loss += part.loss.item<double>() / 2;
  }
  EXPECT_NEAR(*metrics.find("train/loss"), loss, 1e-7);
  EXPECT_TRUE(same_bits(toy.model->parameters().flat_gradient(), by_hand.model->parameters().flat_gradient()));
  EXPECT_EQ(*metrics.find("train/consumed_samples"), 4);
  EXPECT_NEAR(*metrics.find("train/lr"), 0.01 / 4, 1e-12);  // the first of a warm-up of three
}

TEST(Supervised, TheLossFalls) {
  SupervisedToy toy;
  SupervisedTrainer trainer = toy.trainer();
  const double before = *trainer.validate().metrics.find("validation/loss");
  for (int i = 0; i < 10; ++i) static_cast<void>(trainer.train_step());
  EXPECT_LT(*trainer.validate().metrics.find("validation/loss"), 0.7 * before);
}

// Seven rows make one batch of four and, where the last is not dropped, one of three.
TEST(Supervised, ValidationKeepsAnIncompleteBatchWhereAsked) {
  SupervisedToy toy;
  SupervisedTask task = toy.task();
  const double whole_batches = *toy.trainer().validate().metrics.find("validation/tokens");
  task.validation[0].drop_last = false;
  const SupervisedPlan plan = plan_supervised(toy.config, task, toy.batches, 1, "trainer.sft");
  SupervisedTrainer trainer({*toy.model, Group::single(), task, toy.config, toy.optim, toy.batches, plan, false, {}, ""});
  const auto tokens = [&](int64_t rows) {
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row) sum += task.validation[0].compute(std::vector<int64_t>{row}, {}).sums[2].item<double>();
    return sum;
  };
  EXPECT_EQ(whole_batches, tokens(4));
  EXPECT_EQ(*trainer.validate().metrics.find("validation/tokens"), tokens(7));
}

// The loss of a validation is the mean over its own micro-batches, whatever those of training are.
TEST(Supervised, ValidationHasBatchesOfItsOwn) {
  SupervisedToy toy;
  SupervisedTask task = toy.task();
  task.validation[0].global_size = 7;
  task.validation[0].micro_size = 7;
  const SupervisedPlan plan = plan_supervised(toy.config, task, toy.batches, 1, "trainer.sft");
  SupervisedTrainer trainer({*toy.model, Group::single(), task, toy.config, toy.optim, toy.batches, plan, false, {}, ""});
  const RowsResult all = task.validation[0].compute(std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}, {});
  EXPECT_EQ(*trainer.validate().metrics.find("validation/loss"), all.sums[0].item<double>());
}

TEST(Supervised, ASetSmallerThanABatchIsValidatedAllTheSame) {
  SupervisedToy toy;
  toy.batches = {8, 2, true, 7, false};
  EXPECT_GT(*toy.trainer().validate().metrics.find("validation/tokens"), 0);
}

void expect_exact_resume(const std::function<std::unique_ptr<Model>()>& network) {
  SupervisedToy whole(network()), first(network()), second(network());
  SupervisedTrainer unbroken = whole.trainer(), before = first.trainer(), after = second.trainer();
  for (int i = 0; i < 7; ++i) static_cast<void>(unbroken.train_step());
  for (int i = 0; i < 4; ++i) static_cast<void>(before.train_step());
  StateSnapshot state;
  const FolderWriter write = before.save(state);
  static_cast<void>(before.train_step());  // what is written is as it was
  write(first.temp / "model");
  state.write(first.temp / "state");
  after.load(StateFiles(first.temp / "state"));
  for (int i = 4; i < 7; ++i) static_cast<void>(after.train_step());
  EXPECT_TRUE(same_bits(second.model->trained().flat_master(), whole.model->trained().flat_master()));
  EXPECT_TRUE(same_bits(second.model->trained().flat(), whole.model->trained().flat()));
  EXPECT_EQ(shown(after.train_step().metrics), shown(unbroken.train_step().metrics));
  EXPECT_EQ(after.counters(), unbroken.counters());
}

TEST(Supervised, AResumedRunIsTheUnbrokenOneBitForBit) {
  expect_exact_resume([] { return testing::byte_model(); });
  expect_exact_resume([] { return testing::byte_model({}, {.dtype = at::kBFloat16, .trainable = true}); });
}

// Where there is no memory for a copy, what is written is the very same.
TEST(Supervised, SavesWithoutACopyHoldTheSame) {
  SupervisedToy toy;
  SupervisedTrainer trainer = toy.trainer();
  static_cast<void>(trainer.train_step());
  StateSnapshot copied, shared(false);
  trainer.save(copied)(toy.temp / "copied/model");
  trainer.save(shared)(toy.temp / "shared/model");
  copied.write(toy.temp / "copied/state");
  shared.write(toy.temp / "shared/state");
  for (const char* file : {"model/model.safetensors", "model/config.json", "state/state.safetensors", "state/state.json"})
    EXPECT_EQ(read_text(toy.temp / "copied" / file), read_text(toy.temp / "shared" / file)) << file;
}

// Dropout's draws are a function of the place in the run.
TEST(Supervised, SoIsOneWithAdaptersAndDropout) {
  expect_exact_resume([] {
    auto model = testing::byte_model({}, {.trainable = false});
    LoraConfig lora;
    lora.adapter_dim = 2;
    lora.adapter_dropout = 0.3;
    model->add_adapters(lora, true);
    model->adapters()->initialise(3);
    return model;
  });
}

}  // namespace
}  // namespace kedge
