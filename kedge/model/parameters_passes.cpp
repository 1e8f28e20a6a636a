// What passes through the network do with sharded parameters: the parts of Parameters that gather weights and sum gradients.
#include "kedge/core/error.h"
#include "kedge/model/bucket_memory.h"
#include "kedge/model/parameters.h"

namespace kedge {

bool Parameters::reduces_each_pass() const {
  // In rank order a sum over passes and ranks has one order only if every pass is summed over the ranks.
  return options_.trainable && options_.shards.num_ranks() > 1 && (cuts_gradients_ || options_.shards.collectives == Collectives::ordered);
}

void Parameters::zero_gradients() {
  if (flat_gradient_.defined()) flat_gradient_.zero_();
  if (own_sums_.defined()) own_sums_.zero_();
}

// Of elements that several tensor ranks have. Those of a pass, or of an update, whichever is summed over other ranks next.
void Parameters::sum_summands(size_t bucket) const {
  if (!is_split()) return;
  // Without the ranks' PeerSums: passes use those meanwhile on another stream, and their calls need one order on all ranks.
  const TensorRanks ranks(options_.tensor.group());
  Share run;
  int sharers = 1;
  const auto sum_run = [&] { ranks.sum_(gradient_buckets_[bucket].narrow(0, run.begin, length(run)), sharers); };
  for (const auto& [parameter, begin] : places_in(bucket)) {
    const ParameterPart& own = part(parameter);
    const ParameterSpec& spec = specs_[static_cast<size_t>(parameter)];
    const int64_t width = spec.size() / spec.shape[0];
    for (const ParameterPart::Rows& range : own.rows) {
      if (!own.has_summands || range.sharers == 1) continue;
      const int64_t first = range.own * width, last = first + range.count * width;
      // With the gap after the parameter, which is zero: neighbours, such as all norms of a network, are one sum.
      const Share elements{begin + first, begin + (last == spec.size() ? flat_size({spec}) : last)};
      if (range.sharers == sharers && elements.begin == run.end) {
        run.end = elements.end;
        continue;
      }
      sum_run();
      run = elements, sharers = range.sharers;
    }
  }
  sum_run();
}

void Parameters::finish_gradients() {
  for (size_t b = 0; b < gradient_buckets_.size() && !reduces_each_pass(); ++b) sum_summands(b);
  if (options_.shards.num_ranks() == 1) return;
  const auto sum_of = [&](size_t bucket) { return own_slice(own_sums_, {}, bucket); };
  for (size_t b = 0; b < gradient_buckets_.size(); ++b) {
    if (!reduces_each_pass()) exchange_.reduce(b, gradient_buckets_[b], sum_of(b));
    if (options_.shards.kind == Sharding::none) exchange_.gather(b, sum_of(b), gradient_buckets_[b]);
  }
}

// The layer's weights are there for what is queued from here on. Memory for those of the next one is taken now: whoever had it before has
// been queued already, so the transfer into it may begin at this moment.
void Parameters::fetch_layer(size_t layer, std::optional<size_t> next) const {
  if (!cuts_weights_ || num_holders_ > 0) return;
  const size_t bucket = layer_buckets_[layer];
  if (fetched_ && fetched_->bucket == bucket) {
    side_.wait(fetched_->moment);
  } else {
    gather_value(bucket);
  }
  fetched_.reset();
  if (!next) return;
  take_memory(value_buckets_[layer_buckets_[*next]]);
  next_ = {layer_buckets_[*next], side_.now()};
}

void Parameters::open_layer(size_t layer) const {
  fetch_layer(layer, layer + 1 < layer_buckets_.size() ? std::optional(layer + 1) : std::nullopt);
}

// The transfer is started here, after the layer was queued, because some transports make the host wait for it.
void Parameters::close_layer(size_t layer) const {
  if (!cuts_weights_ || num_holders_ > 0) return;
  if (next_) fetched_ = {next_->bucket, side_.run(next_->moment, [&] { gather_value(next_->bucket); })};
  next_.reset();
  give_memory_back(value_buckets_[layer_buckets_[layer]]);
}

// Passes with all weights at hand concern nobody else.
void Parameters::end_forward() const {
  if (num_holders_ == 0) ++num_forward_;
}

void Parameters::hold_whole() const {
  if (++num_holders_ > 1 || !cuts_weights_) return;
  ++placement_;
  for (const size_t bucket : layer_buckets_) gather_value(bucket);
}

void Parameters::let_go() const {
  if (--num_holders_ > 0 || !cuts_weights_) return;
  for (const size_t bucket : layer_buckets_) give_memory_back(value_buckets_[bucket]);
}

void Parameters::open_gradient(size_t bucket) const {
  if (!cuts_gradients_ || has_memory(gradient_buckets_[bucket])) return;
  take_memory(gradient_buckets_[bucket]);
  gradient_buckets_[bucket].zero_();
}

void Parameters::reduce_gradient(size_t bucket) const {
  if (!reduces_each_pass()) return;
  open_gradient(bucket);  // where this rank had none
  start_waiting_sum();
  waiting_ = {bucket, side_.now()};
}

// Gradients are summed when those of the next layer are queued, for the same reason.
void Parameters::start_waiting_sum() const {
  if (!waiting_) return;
  const size_t bucket = waiting_->bucket;
  const auto sum = [&] {
    sum_summands(bucket);
    exchange_.reduce(bucket, gradient_buckets_[bucket], own_slice(own_sums_, {}, bucket));
    if (!cuts_gradients_) gradient_buckets_[bucket].zero_();
  };
  const SideStream::Moment end = side_.run(waiting_->moment, sum);
  waiting_.reset();
  finish_sum();
  summing_ = {bucket, end};
}

void Parameters::finish_sum() const {
  if (!summing_) return;
  side_.wait(summing_->moment);
  if (cuts_gradients_) give_memory_back(gradient_buckets_[summing_->bucket]);
  summing_.reset();
}

// The head has the bucket after the last layer's, if it is not the embedding, in the bucket before the first layer's.
void Parameters::open_head_gradient() const {
  if (!cuts_gradients_ || layer_buckets_.empty()) return;
  const size_t after = layer_buckets_.back() + 1;
  const bool is_separate = after < gradient_buckets_.size() && exchange_.layout().bucket(after).begin < num_decaying_;
  open_gradient(is_separate ? after : 0);
  open_gradient(gradient_buckets_.size() - 1);  // a score head's bias does not decay
}

void Parameters::begin_backward() const {
  if (!options_.trainable) return;
  if (cuts_gradients_) open_gradient(gradient_buckets_.size() - 1);
  if (layer_buckets_.empty()) return;
  const size_t after = layer_buckets_.back() + 1;
  if (after < gradient_buckets_.size() && exchange_.layout().bucket(after).begin < num_decaying_) reduce_gradient(after);
}

void Parameters::begin_layer_backward(size_t layer) const {
  fetch_layer(layer, layer > 0 ? std::optional(layer - 1) : std::nullopt);
  if (!cuts_gradients_) return;
  finish_sum();
  open_gradient(layer_buckets_[layer]);
}

void Parameters::end_layer_backward(size_t layer) const {
  close_layer(layer);
  if (options_.trainable) reduce_gradient(layer_buckets_[layer]);
}

void Parameters::open_embedding_gradient() const {
  if (cuts_gradients_) open_gradient(0);
}

// What is left: the embedding, and what does not decay. Without layers, everything.
void Parameters::end_backward() const {
  ++num_backward_;
  if (!options_.trainable) return;
  for (size_t b = 0; b < gradient_buckets_.size(); ++b) {
    const bool decays = exchange_.layout().bucket(b).begin < num_decaying_;
    const bool is_done = !layer_buckets_.empty() && decays && b >= layer_buckets_.front();
    if (!is_done) reduce_gradient(b);
  }
  start_waiting_sum();
  finish_sum();
}

void Parameters::complete_pass() const {
  if (cuts_weights_ && num_forward_ == 0)
    for (size_t layer = 0; layer < layer_buckets_.size(); ++layer) {
      open_layer(layer);
      close_layer(layer);
    }
  if ((cuts_weights_ || reduces_each_pass()) && num_backward_ == 0) {
    begin_backward();
    for (size_t layer = layer_buckets_.size(); layer-- > 0;) {
      begin_layer_backward(layer);
      end_layer_backward(layer);
    }
    end_backward();
  }
  num_forward_ = num_backward_ = 0;
}

}  // namespace kedge
