#include "kedge/algo/supervised/supervised.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/random.h"
#include "kedge/data/files/rows.h"
#include "kedge/dist/partition.h"
#include "kedge/train/checkpoint/model_state.h"

namespace kedge {
namespace {

constexpr const char* kCounter = "trainer.step";  // of updates, in a checkpoint

// The rows of this rank, micro-batch by micro-batch; places without a row are left out.
std::vector<std::vector<int64_t>> micro_batches(const std::vector<int64_t>& batch, int64_t micro_size, const Group& group) {
  const Share share = share_of(static_cast<int64_t>(batch.size()), group.rank(), group.size());
  std::vector<std::vector<int64_t>> micros;
  for (int64_t begin = share.begin; begin < share.end; begin += micro_size) {
    std::vector<int64_t> rows;
    for (int64_t i = begin; i < std::min(share.end, begin + micro_size); ++i)
      if (batch[static_cast<size_t>(i)] != Sampler::kNoRow) rows.push_back(batch[static_cast<size_t>(i)]);
    if (!rows.empty()) micros.push_back(std::move(rows));
  }
  return micros;
}

// All of a validation.
BatchList all_batches(const SupervisedData& data, int64_t training_size) {
  const int64_t batch_size = data.global_size > 0 ? data.global_size : training_size;
  // A set smaller than a batch is one incomplete batch rather than none.
  const bool drop_last = data.drop_last && data.size >= batch_size;
  return validation_batches({.num_rows = data.size, .batch_size = batch_size, .drop_last = drop_last}, data.name);
}

Sampler new_sampler(const SupervisedParts& parts) {
  const SupervisedBatches& batches = parts.batches;
  return {{.num_rows = parts.task.train.size, .batch_size = batches.global_size, .shuffle = batches.shuffle, .seed = batches.seed},
          parts.task.train.name};
}

}  // namespace

// The metrics of a step or a validation: accumulated on the device, read once, summed over the ranks.
struct SupervisedTrainer::Sums {
  Tensor values;
  int64_t num_losses = 0, num_tokens = 0;

  void add(const RowsResult& result) {
    const NoGrad no_grad;
    values = values.defined() ? values + result.sums : result.sums;
    num_losses += result.loss.defined() ? 1 : 0;
    num_tokens += result.num_tokens;
  }
  // Also, last, how many micro-batches had a loss, and tokens.
  std::vector<double> over(const Group& group, size_t size) {
    std::vector<double> all(size + 2, 0.0);
    if (values.defined()) {
      const Tensor host = values.to(at::kCPU).contiguous();
      std::copy_n(host.const_data_ptr<double>(), host.numel(), all.begin());
    }
    all[size] = static_cast<double>(num_losses);
    all.back() = static_cast<double>(num_tokens);
    group.all_reduce(std::span<double>(all), Reduce::sum);
    return all;
  }
};

DataSize measure_data(const SupervisedData& data, int64_t micro_size, int64_t at_most) {
  const int64_t count = std::min(data.size, at_most);
  struct Looked {
    RowSize size;
    int64_t row = 0;
  };
  std::vector<Looked> looked(static_cast<size_t>(count));
  for_each_example(count, [&](int64_t i) {
    const int64_t row = i * data.size / count;
    looked[static_cast<size_t>(i)] = {data.size_of(row), row};
  });
  check(count == 0 || std::any_of(looked.begin(), looked.end(), [](const Looked& one) { return one.size.trains; }),
        "model.data.data_prefix: ", data.name, ": each of the ", count,
        " rows has more tokens than model.data.seq_length allows or no label, so there is nothing to learn");
  DataSize all;
  all.num_looked_at = count;
  for (const Looked& one : looked) all.tokens_per_epoch += static_cast<double>(one.size.tokens);
  all.tokens_per_epoch *= static_cast<double>(data.size) / static_cast<double>(std::max<int64_t>(count, 1));
  // A stand-in is as large as the row it comes from, but only that one may have a loss.
  std::stable_sort(looked.begin(), looked.end(), [](const Looked& a, const Looked& b) {
    return std::pair(a.size.tokens, a.size.trains) > std::pair(b.size.tokens, b.size.trains);
  });
  all.largest_micro.rows = 0;
  for (int64_t i = 0; i < std::min(count, micro_size); ++i) {
    const Looked& one = looked[static_cast<size_t>(i)];
    all.largest_micro.tokens += one.size.tokens;
    all.largest_micro.rows += one.size.rows;
    all.largest_micro.longest = std::max(all.largest_micro.longest, one.size.longest);
    all.largest_rows.push_back(one.row);
  }
  return all;
}

SupervisedPlan plan_supervised(const SupervisedConfig& config, const SupervisedTask& task, const SupervisedBatches& batches, int num_ranks,
                               const std::string& section) {
  check(batches.global_size % (batches.micro_size * num_ranks) == 0, "global_batch_size: ", batches.global_size,
        " rows do not divide into micro-batches of ", batches.micro_size, " on ", num_ranks, num_ranks == 1 ? " rank" : " ranks");
  check(task.train.size >= batches.global_size, task.train.name, ": ", task.train.size, " rows are fewer than one batch of ",
        batches.global_size);
  check(config.max_epochs == 1 || batches.shuffle, section, ".max_epochs: ", config.max_epochs,
        " epochs in the order of the file would repeat it; shuffle the training data");
  SupervisedPlan plan{.steps = {}, .intervals = {}, .section = section};
  const int64_t per_epoch =
      limited_batches(config.limit_train_batches, task.train.size / batches.global_size, section + ".limit_train_batches");
  check(per_epoch > 0, section, ".limit_train_batches: ", config.limit_train_batches.dump(), " leaves no batch");
  plan.steps = plan_steps(per_epoch, 1, config.max_epochs, config.max_steps);
  if (batches.goes_on && config.max_steps >= 0) plan.steps.max_steps = config.max_steps;
  plan.intervals.max_steps = plan.steps.max_steps;
  plan.intervals.validate = interval_steps(config.val_check_interval, per_epoch, section + ".val_check_interval");
  plan.intervals.save = interval_steps(config.save_interval, per_epoch, section + ".save_interval");
  plan.intervals.has_validation =
      !task.validation.empty() && !(config.limit_val_batches == Json(0) || config.limit_val_batches == Json(0.0));
  if (plan.intervals.has_validation && plan.intervals.validate > 0)
    for (const SupervisedData& data : task.validation) {
      const auto num_batches = std::ssize(all_batches(data, batches.global_size));
      check(limited_batches(config.limit_val_batches, num_batches, section + ".limit_val_batches") > 0, section,
            ".limit_val_batches: ", config.limit_val_batches.dump(), " leaves no batch of ", data.name, ", which has ", num_batches,
            "; 0 switches validation off");
    }
  check_intervals(plan.intervals, section);
  return plan;
}

SupervisedPlan continue_plan(SupervisedPlan plan, const SupervisedConfig& config, const Checkpoint& checkpoint, int64_t global_size) {
  plan.steps = continue_steps(plan.steps, position_of(checkpoint), global_size, config.max_epochs, config.max_steps);
  plan.intervals.max_steps = plan.steps.max_steps;
  return plan;
}

SupervisedTrainer::SupervisedTrainer(SupervisedParts parts)
    : parts_(std::move(parts)),
      learner_({parts_.optim, parts_.config, parts_.plan.steps.max_steps, kCounter}, parts_.model.trained(), parts_.group),
      sampler_(new_sampler(parts_)) {
  if (parts_.group.rank() != 0 || parts_.model.parameters().options().tensor.rank() != 0) return;
  const OptimConfig& optim = parts_.optim;
  const StepPlan& steps = parts_.plan.steps;
  for (const auto& hint : {fewer_steps_hint(steps, parts_.config.max_epochs, parts_.config.max_steps, parts_.plan.section),
                           low_rate_hint(learner_.schedule(), optim.sched, optim.lr, steps.max_steps, "model.optim.sched")})
    if (hint) log_warn(*hint);
}

// A function of the position in the run only, so that it is the same on any number of ranks and after a resume.
DropoutSeed SupervisedTrainer::dropout_seed(size_t micro) const {
  const Adapters* adapters = parts_.model.adapters();
  if (adapters == nullptr || adapters->config().adapter_dropout == 0) return std::nullopt;
  const int64_t first = share_of(parts_.batches.global_size, parts_.group.rank(), parts_.group.size()).begin / parts_.batches.micro_size;
  return Random::stream_of({parts_.batches.seed, static_cast<uint64_t>(learner_.num_updates()), static_cast<uint64_t>(first) + micro});
}

void SupervisedTrainer::begin() { begin_at(learner_.num_updates()); }

void SupervisedTrainer::begin_at(int64_t step) {
  if (!parts_.task.begin) return;
  phase_ = "log-probs";
  TaskStart start{parts_.model, parts_.group, parts_.place, parts_.batches.micro_size};
  start.step = std::min(step, parts_.plan.steps.max_steps);
  Sampler before = new_sampler(parts_), ahead = sampler_;
  for (int64_t i = 0; i < parts_.plan.steps.max_steps; ++i) start.train.push_back(i < step ? before.next() : ahead.next());
  for (const SupervisedData& data : parts_.task.validation)
    start.validation.push_back(parts_.plan.intervals.has_validation ? batches_of(data) : BatchList());
  parts_.task.begin(start);
}

void SupervisedTrainer::rehearse() {
  if (parts_.largest_rows.empty()) return;
  phase_ = "update";
  PassOptions pass;
  pass.checkpoint = parts_.checkpoint_activations;
  pass.dropout_seed = dropout_seed(0);
  const SupervisedData& train = parts_.task.train;
  const Tensor loss = train.rehearse ? train.rehearse(parts_.largest_rows, pass) : train.compute(parts_.largest_rows, pass).loss;
  if (loss.defined()) backward(loss);
  parts_.model.complete_pass();
  learner_.zero_gradients();
}

StepReport SupervisedTrainer::train_step() {
  phase_ = "update";
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<int64_t> batch = sampler_.next();
  const auto micros = micro_batches(batch, parts_.batches.micro_size, parts_.group);
  const auto num_micros = static_cast<double>(parts_.batches.global_size / parts_.batches.micro_size);
  const double share = parts_.task.losses_add_up ? 1.0 : 1.0 / num_micros;
  if (parts_.task.train.begin_batch) parts_.task.train.begin_batch({batch, micros, parts_.group});
  const int64_t num_passes = learner_.num_passes(std::ssize(micros));
  learner_.zero_gradients();
  Sums sums;
  for (size_t i = 0; i < micros.size(); ++i) {
    PassOptions pass;
    pass.checkpoint = parts_.checkpoint_activations;
    pass.dropout_seed = dropout_seed(i);
    const RowsResult result = parts_.task.train.compute(micros[i], pass);
    if (result.loss.defined()) backward(result.loss * share);
    parts_.model.complete_pass();
    sums.add(result);
  }
  for (int64_t pass = std::ssize(micros); pass < num_passes; ++pass) parts_.model.complete_pass();
  const std::vector<double> all = sums.over(parts_.group, parts_.task.num_sums);
  // Without a row to learn from, momentum and decay alone would move the weights.
  const LearnerUpdate update = learner_.update(all[parts_.task.num_sums] > 0);
  num_tokens_ += static_cast<int64_t>(all.back());
  Metrics metrics = parts_.task.metrics_of(std::span(all).first(parts_.task.num_sums)).with_prefix("train/");
  metrics.set("train/lr", update.lr);
  metrics.set("train/grad_norm", update.grad_norm);
  metrics.set("train/consumed_samples", static_cast<double>(sampler_.consumed_samples()));
  if (update.num_skipped > 0) metrics.set("train/skipped_updates", static_cast<double>(update.num_skipped));
  metrics.set("timers/tokens_per_s", all.back() / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return {.metrics = std::move(metrics)};
}

BatchList SupervisedTrainer::batches_of(const SupervisedData& data) const {
  BatchList batches = all_batches(data, parts_.batches.global_size);
  batches.resize(static_cast<size_t>(limited_batches(parts_.config.limit_val_batches, std::ssize(batches), "limit_val_batches")));
  return batches;
}

StepReport SupervisedTrainer::validate() {
  const NoGrad no_grad;
  const WholeWeights whole(parts_.model.parameters());
  phase_ = "validate";
  StepReport report;
  for (const SupervisedData& data : parts_.task.validation) {
    const int64_t micro_size = data.micro_size > 0 ? data.micro_size : parts_.batches.micro_size;
    Sums sums;
    for (const std::vector<int64_t>& batch : batches_of(data)) {
      const auto micros = micro_batches(batch, micro_size, parts_.group);
      if (data.begin_batch) data.begin_batch({batch, micros, parts_.group});
      for (const auto& rows : micros) sums.add(data.compute(rows, {}));
    }
    const std::vector<double> all = sums.over(parts_.group, parts_.task.num_sums);
    report.metrics.merge(parts_.task.metrics_of(std::span(all).first(parts_.task.num_sums)).with_prefix(data.name + "/"));
  }
  if (parts_.task.samples && parts_.group.rank() == 0) report.samples = parts_.task.samples();
  return report;
}

Counters SupervisedTrainer::counters() const {
  return {{"consumed_samples", sampler_.consumed_samples()}, {"consumed_tokens", num_tokens_}};
}

FolderWriter SupervisedTrainer::save(StateSnapshot& state) const {
  learner_.save(state);
  state.set("sampler", sampler_.state());
  state.set("trainer.tokens", num_tokens_);
  return save_model_state(parts_.model, state, {parts_.save, parts_.base});
}

FolderWriter SupervisedTrainer::model_writer() const { return kedge::model_writer(parts_.model, {parts_.save, parts_.base}); }

void SupervisedTrainer::load(const StateFiles& state) {
  sampler_.restore(state.at("sampler"));
  begin_at(state.at(kCounter).as_integer(kCounter));  // the model still has the weights it started with
  load_model_state(parts_.model, state);
  learner_.load(state);
  num_tokens_ = state.at("trainer.tokens").as_integer("trainer.tokens");
}

}  // namespace kedge
