#include "kedge/data/files/sampler.h"

#include <algorithm>
#include <numeric>

#include "kedge/core/error.h"
#include "kedge/core/random.h"

namespace kedge {

Sampler::Sampler(const SamplerOptions& options, std::string_view data) : options_(options), data_(data) {
  check(options_.batch_size > 0, data_, ": a batch of ", options_.batch_size, " rows");
  check(options_.drop_last || !options_.shuffle, data_,
        ": drop_last=False is not supported for training; the last batch would be incomplete");
  check(options_.num_rows > 0 && (!options_.drop_last || options_.num_rows >= options_.batch_size), data_, ": ", options_.num_rows,
        " rows are fewer than one batch of ", options_.batch_size);
  start_epoch(0);
}

int64_t Sampler::batches_per_epoch() const {
  const int64_t filled = options_.drop_last ? 0 : options_.batch_size - 1;
  return (options_.num_rows + filled) / options_.batch_size;
}

void Sampler::start_epoch(int64_t epoch) {
  epoch_ = epoch;
  offset_ = 0;
  if (options_.shuffle) order_ = permutation(options_.num_rows, options_.seed + static_cast<uint64_t>(epoch));
}

void Sampler::skip_finished_epoch() {
  const int64_t left = options_.num_rows - offset_;
  if (left <= 0 || (options_.drop_last && left < options_.batch_size)) start_epoch(epoch_ + 1);
}

std::vector<int64_t> Sampler::next() {
  std::vector<int64_t> rows(static_cast<size_t>(options_.batch_size), kNoRow);
  const int64_t count = std::min(options_.batch_size, options_.num_rows - offset_);
  for (int64_t i = 0; i < count; ++i)
    rows[static_cast<size_t>(i)] = options_.shuffle ? order_[static_cast<size_t>(offset_ + i)] : offset_ + i;
  offset_ += count;
  consumed_samples_ += count;
  skip_finished_epoch();
  return rows;
}

void Sampler::seek(int64_t consumed_samples) {
  const int64_t rows_per_epoch = options_.drop_last ? batches_per_epoch() * options_.batch_size : options_.num_rows;
  const int64_t offset = consumed_samples % rows_per_epoch;
  check(consumed_samples >= 0 && offset % options_.batch_size == 0, data_, ": cannot resume after ", consumed_samples,
        " rows; expected full batches of ", options_.batch_size);
  start_epoch(consumed_samples / rows_per_epoch);
  offset_ = offset;
  consumed_samples_ = consumed_samples;
}

Json Sampler::state() const {
  Json state;
  state.set("num_rows", options_.num_rows);
  state.set("shuffle", options_.shuffle);
  state.set("seed", static_cast<int64_t>(options_.seed));
  state.set("epoch", epoch_);
  state.set("offset", offset_);
  state.set("consumed_samples", consumed_samples_);
  return state;
}

void Sampler::restore(const Json& state) {
  const auto number = [&](const char* key) { return state.at(key, "sampler state").as_integer(str("sampler state: ", key)); };
  check(number("num_rows") == options_.num_rows, data_, ": has ", options_.num_rows, " rows, but the resumed run had ", number("num_rows"));
  check(state.at("shuffle", "sampler state").as_bool("sampler state: shuffle") == options_.shuffle, data_,
        ": the order of rows changed between random and the file's since the checkpoint");
  check(!options_.shuffle || number("seed") == static_cast<int64_t>(options_.seed), data_, ": the seed is ", options_.seed,
        ", but the resumed run had ", number("seed"));
  const int64_t offset = number("offset");
  check(number("epoch") >= 0 && offset >= 0 && offset <= options_.num_rows && number("consumed_samples") >= 0,
        "sampler state: a position outside of ", data_);
  start_epoch(number("epoch"));
  offset_ = offset;
  consumed_samples_ = number("consumed_samples");
  skip_finished_epoch();
}

std::vector<std::vector<int64_t>> validation_batches(const SamplerOptions& options, std::string_view data) {
  SamplerOptions sequential = options;
  sequential.shuffle = false;
  Sampler sampler(sequential, data);
  std::vector<std::vector<int64_t>> batches;
  for (int64_t i = 0; i < sampler.batches_per_epoch(); ++i) batches.push_back(sampler.next());
  return batches;
}

}  // namespace kedge
