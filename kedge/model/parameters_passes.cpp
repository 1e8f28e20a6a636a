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

void Parameters::finish_gradients() {
  if (options_.shards.num_ranks() == 1) return;
  const auto sum_of = [&](size_t bucket) { return own_slice(own_sums_, {}, bucket); };
  for (size_t b = 0; b < gradient_buckets_.size(); ++b) {
    if (!reduces_each_pass()) exchange_.reduce(b, gradient_buckets_[b], sum_of(b));
    if (options_.shards.kind == Sharding::none) exchange_.gather(b, sum_of(b), gradient_buckets_[b]);
  }
}

void Parameters::open_layer(size_t layer) const {
  if (cuts_weights_ && num_holders_ == 0) gather_value(layer_buckets_[layer]);
}

void Parameters::close_layer(size_t layer) const {
  if (cuts_weights_ && num_holders_ == 0) give_memory_back(value_buckets_[layer_buckets_[layer]]);
}

// Passes with all weights at hand concern nobody else.
void Parameters::end_forward() const {
  if (num_holders_ == 0) ++num_forward_;
}

void Parameters::hold_whole() const {
  if (++num_holders_ > 1 || !cuts_weights_) return;
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
  exchange_.reduce(bucket, gradient_buckets_[bucket], own_slice(own_sums_, {}, bucket));
  cuts_gradients_ ? give_memory_back(gradient_buckets_[bucket]) : static_cast<void>(gradient_buckets_[bucket].zero_());
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
  open_layer(layer);
  if (cuts_gradients_) open_gradient(layer_buckets_[layer]);
}

void Parameters::end_layer_backward(size_t layer) const {
  if (options_.trainable) reduce_gradient(layer_buckets_[layer]);
  close_layer(layer);
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
