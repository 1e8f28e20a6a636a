#include "kedge/model/model.h"

#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/model/kernels/ops.h"
#include "kedge/model/logprob_head.h"

namespace kedge {
namespace {

std::vector<std::vector<ParameterPart>> parts_of_ranks(const ModelConfig& config, const HeadOptions& head, const StorageOptions& storage) {
  std::vector<std::vector<ParameterPart>> parts;
  const int size = storage.tensor.size();
  for (int rank = 0; rank < size && size > 1; ++rank) parts.push_back(parameter_parts(config, head, {rank, size, storage.divides_tokens}));
  return parts;
}

}  // namespace

Model::Model(ModelConfig config, const HeadOptions& head, const StorageOptions& storage)
    : config_(std::move(config)),
      own_shape_(split_config(config_, {storage.tensor.rank(), storage.tensor.size()})),
      head_(head),
      places_(make_parameters(config_, head)),
      parameters_(places_.specs, storage, parts_of_ranks(config_, head, storage)),
      decoder_(std::make_unique<Decoder>(own_shape_, places_, parameters_, nullptr)) {}

void Model::initialise_head(uint64_t seed) {
  ensure(places_.score >= 0, "a language model has no score head");
  parameters_.initialise(places_.score, seed, config_.init_range);
  if (places_.score_bias >= 0) parameters_.initialise(places_.score_bias, seed, config_.init_range);
  parameters_.publish();
}

void Model::add_adapters(const LoraConfig& lora, bool trainable, const std::string& where) {
  add_adapters(lora, select_slices(lora, linear_slices(config_, places_), config_.num_layers, where), trainable);
}

void Model::add_adapters(const LoraConfig& lora, std::vector<LinearSlice> slices, bool trainable) {
  ensure(!adapters_ && !parameters_.options().trainable, "adapters are added to a frozen network, once");
  StorageOptions storage = parameters_.options();
  storage.trainable = trainable;
  storage.shards.kind = Sharding::none;  // they are small
  const ScoreView head = places_.score < 0 ? ScoreView{} : ScoreView::of(parameters_, places_.score, places_.score_bias);
  adapters_ = std::make_unique<Adapters>(lora, std::move(slices), storage, head, SplitBase{&config_, &head_});
  decoder_ = std::make_unique<Decoder>(own_shape_, places_, parameters_, adapters_.get());
}

void Model::merge_adapters() {
  ensure(adapters_ != nullptr, "no adapters to merge");
  const NoGrad no_grad;
  for (size_t i = 0; i < adapters_->slices().size(); ++i) {
    const AdapterView& view = adapters_->view(i);
    const Tensor &a = adapters_->parameters().master(Adapters::a_of(i)), &b = adapters_->parameters().master(Adapters::b_of(i));
    const Tensor weight = parameters_.master(adapters_->slices()[i].parameter).narrow(0, view.row, view.rows);
    const Tensor delta = product(b.to(at::kFloat), a.to(at::kFloat)) * adapters_->config().scale();
    weight.copy_(weight.to(at::kFloat) + delta);  // one rounding, where weights are not fp32
  }
  if (places_.score >= 0) parameters_.master(places_.score).copy_(adapters_->parameters().master(adapters_->score()));
  if (places_.score_bias >= 0) parameters_.master(places_.score_bias).copy_(adapters_->parameters().master(adapters_->score_bias()));
  adapters_.reset();
  parameters_.publish();
  decoder_ = std::make_unique<Decoder>(own_shape_, places_, parameters_, nullptr);
}

void Model::complete_pass() const {
  parameters_.complete_pass();
  if (adapters_) adapters_->parameters().complete_pass();
}

HeadView Model::language_head() const {
  ensure(places_.head >= 0, "a score model has no language head");
  if (at::GradMode::is_enabled()) parameters_.open_head_gradient();
  HeadView view{.weight = parameters_.value(places_.head),
                .weight_gradient = parameters_.gradient(places_.head),
                .kept_logits = parameters_.options().kept_logits};
  if (parameters_.is_split()) {
    const ParameterPart::Rows& own = parameters_.part(places_.head).rows[0];
    const TensorRanks& ranks = parameters_.options().tensor;
    view.vocabulary = {{own.whole, own.whole + own.count}, &ranks, (config_.vocab_size + ranks.size() - 1) / ranks.size()};
  }
  return view;
}

ScoreView Model::score_head() const {
  ensure(places_.score >= 0, "a language model has no score head");
  if (at::GradMode::is_enabled()) parameters_.open_head_gradient();
  if (adapters_ == nullptr || !adapters_->enabled()) return ScoreView::of(parameters_, places_.score, places_.score_bias);
  return ScoreView::of(adapters_->parameters(), adapters_->score(), adapters_->score_bias());
}

TokenLogprobs model_logprobs(const Model& model, const PackedBatch& batch, const PredictedTokens& predicted, const LogprobOptions& logprobs,
                             const PassOptions& pass) {
  return token_logprobs(model.hidden(batch, pass), model.language_head(), predicted, logprobs);
}

}  // namespace kedge
