#include "kedge/algo/supervised/sft.h"

#include <algorithm>
#include <utility>

#include "kedge/algo/supervised/sft_samples.h"
#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/data/sets/chat_dataset.h"
#include "kedge/data/sets/data_config.h"
#include "kedge/data/sets/packing.h"
#include "kedge/data/sets/sft_dataset.h"
#include "kedge/text/chat/model_chat.h"

namespace kedge {
namespace {

// Rows to go through the network, and the tokens among them that are trained on.
struct SftRows {
  std::vector<TokenIds> inputs;
  std::vector<int64_t> places, targets;
  int64_t num_tokens = 0;

  // Every token but the last goes in.
  void add(const MaskedTokens& row) {
    if (row.ids.size() < 2) return;
    for (size_t i = 1; i < row.ids.size(); ++i)
      if (row.mask[i] != 0) predict(static_cast<int64_t>(i) - 1, row.ids[i]);
    push({row.ids.begin(), row.ids.end() - 1});
  }
  // The sequences of a pack do not attend to each other.
  void add(const PackInput& pack) {
    for (size_t i = 0; i < pack.tokens.size(); ++i)
      if (pack.loss_mask[i] != 0) predict(static_cast<int64_t>(i), pack.labels[i]);
    for (size_t i = 1; i < pack.cumulative_lengths.size(); ++i)
      push({pack.tokens.begin() + pack.cumulative_lengths[i - 1], pack.tokens.begin() + pack.cumulative_lengths[i]});
  }

 private:
  void predict(int64_t place, TokenId target) {
    places.push_back(num_tokens + place);
    targets.push_back(target);
  }
  void push(TokenIds input) {
    num_tokens += static_cast<int64_t>(input.size());
    inputs.push_back(std::move(input));
  }
};

// The sums of a step: of the micro-batches' losses, of how many there were, of tokens trained on.
constexpr size_t kNumSums = 3;

Metrics metrics_of(std::span<const double> sums) { return {{"loss", sums[0] / sums[1]}, {"tokens", sums[2]}}; }

RowsResult compute(const Model& model, const SftRows& rows, const PassOptions& pass) {
  RowsResult result;
  const auto numbers = at::TensorOptions().dtype(at::kDouble).device(model.device());
  if (rows.places.empty()) {
    result.sums = at::zeros({static_cast<int64_t>(kNumSums)}, numbers);
    return result;
  }
  const PackedBatch batch = pack_rows(rows.inputs, model.device());
  const PredictedTokens predicted = {at::tensor(rows.places).to(model.device()), at::tensor(rows.targets).to(model.device())};
  result.loss = -model_logprobs(model, batch, predicted, {}, pass).logprobs.mean(at::kDouble);
  const NoGrad no_grad;
  result.sums =
      at::cat({result.loss.detach().view({1}), at::tensor({1.0, static_cast<double>(rows.places.size())}, at::kDouble).to(model.device())});
  result.num_tokens = rows.num_tokens;
  return result;
}

template <typename Dataset>
SupervisedData data_of(std::string name, std::shared_ptr<const Dataset> rows, bool drop_last, const std::unique_ptr<Model>& model) {
  const auto run = [rows, &model](std::span<const int64_t> indices, const PassOptions& pass) {
    SftRows batch;
    for (const int64_t index : indices) batch.add(rows->get(index));
    return compute(*model, batch, pass);
  };
  const auto size_of = [rows](int64_t index) {
    SftRows one;
    one.add(rows->get(index));
    RowSize size{one.num_tokens, static_cast<int64_t>(one.inputs.size()), 0};
    for (const TokenIds& input : one.inputs) size.longest = std::max(size.longest, static_cast<int64_t>(input.size()));
    return size;
  };
  return {std::move(name), rows->size(), drop_last, 0, 0, run, size_of};
}

// What the data sets need besides their files.
struct Readers {
  const SftModelConfig& config;
  const TaskModel& model;
  TextEncoder encoder;
  ChatRenderer chat;
};

// Also where the prompts of samples are read from; packs have none.
struct SftSplit {
  SupervisedData data;
  std::function<MaskedTokens(int64_t)> row;
};

SftSplit open_split(const SftFilesConfig& files, const std::string& name, const std::string& key, const Readers& readers) {
  Rows rows = open_sft_data(files, key);
  if (files.packed_sequence) {
    check(!readers.config.data.chat, key, ".packed_sequence: packs hold tokens, not conversations; data.chat must be false");
    return {data_of(name,
                    std::make_shared<const PackedDataset>(std::move(rows), files.max_seq_length, readers.config.encoder_seq_length,
                                                          readers.model.vocab_size),
                    files.drop_last, readers.model.weights),
            {}};
  }
  const auto of = [&]<typename Dataset>(std::shared_ptr<const Dataset> set) {
    return SftSplit{data_of(name, set, files.drop_last, readers.model.weights), [set](int64_t index) { return set->get(index); }};
  };
  if (readers.config.data.chat)
    return of(
        std::make_shared<const ChatDataset>(std::move(rows), readers.encoder, readers.config.data, files.max_seq_length, readers.chat));
  check_bos(files.add_bos, readers.model.tokenizer, readers.model.folder, key);
  return of(std::make_shared<const SftDataset>(std::move(rows), readers.encoder, files));
}

}  // namespace

SupervisedTask make_sft_task(const SftModelConfig& config, const TaskModel& model) {
  const Readers readers{config, model, encoder_of(model.tokenizer, model.vocab_size), chat_of_model(model.folder)};
  SupervisedTask task;
  task.num_sums = kNumSums;
  task.metrics_of = metrics_of;
  check(config.data.train_ds.drop_last,
        "model.data.train_ds.drop_last: false is not supported; an incomplete batch would weigh its rows more");
  task.train = open_split(config.data.train_ds, "model.data.train_ds", "model.data.train_ds", readers).data;
  if (config.data.validation_ds.file_path.is_null()) return task;
  SftSplit validation = open_split(config.data.validation_ds, "validation", "model.data.validation_ds", readers);
  if (config.num_samples > 0 && validation.row) {
    const auto samples =
        std::make_shared<SftSamples>(model.weights, model.tokenizer, SftSamplesOptions{config.num_samples, config.sample_tokens});
    for (int64_t i = 0; i < std::min(config.num_samples, validation.data.size); ++i) samples->add(validation.row(i));
    task.samples = [samples] { return samples->draw(); };
  }
  validation.data.global_size = config.data.validation_ds.global_batch_size;
  validation.data.micro_size = config.data.validation_ds.micro_batch_size;
  task.validation.push_back(std::move(validation.data));
  return task;
}

}  // namespace kedge
