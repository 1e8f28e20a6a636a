#pragma once
// Which rows make which batch. The order is a function of (rows, seed, batch size) alone: the number of ranks only decides who
// takes which part of a batch. Independent of what a row is.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/json.h"

namespace kedge {

struct SamplerOptions {
  int64_t num_rows = 0;
  int64_t batch_size = 1;  // rows of a global batch
  bool shuffle = true;     // a new order each epoch, permutation(num_rows, seed + epoch); false: the file's
  uint64_t seed = 1234;
  bool drop_last = true;  // false (only without shuffle): an incomplete last batch is filled with kNoRow
};

// Batches without end, epoch after epoch. An epoch has floor(num_rows / batch_size) batches and no row twice.
class Sampler {
 public:
  static constexpr int64_t kNoRow = -1;

  // `data` names the rows in errors. UsageError for fewer rows than a batch.
  Sampler(const SamplerOptions& options, std::string_view data);

  // The rows of the next global batch.
  [[nodiscard]] std::vector<int64_t> next();

  [[nodiscard]] int64_t batches_per_epoch() const;
  [[nodiscard]] int64_t consumed_samples() const { return consumed_samples_; }  // rows handed out, over all epochs
  [[nodiscard]] int64_t epoch() const { return epoch_; }                        // of the next batch

  // To the position of an uninterrupted run after that many rows; UsageError unless they are full batches.
  void seek(int64_t consumed_samples);

  // The position. With another batch size it continues at the row where the old one stopped; another number of rows, seed or order is
  // a UsageError, because rows would come twice.
  [[nodiscard]] Json state() const;
  void restore(const Json& state);

 private:
  void start_epoch(int64_t epoch);
  void skip_finished_epoch();

  SamplerOptions options_;
  std::string data_;
  int64_t epoch_ = 0;
  int64_t offset_ = 0;  // rows of this epoch handed out
  int64_t consumed_samples_ = 0;
  std::vector<int64_t> order_;  // of this epoch; empty where it is the file's
};

// Sequential batches from row 0 for validation: every full batch once, in order.
[[nodiscard]] std::vector<std::vector<int64_t>> validation_batches(const SamplerOptions& options, std::string_view data);

}  // namespace kedge
