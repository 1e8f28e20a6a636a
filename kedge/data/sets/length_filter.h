#pragma once
// What happens to an example that is too long: another replaces it, it is left out at load, or it is cut. Counted and logged.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/rare_log.h"

namespace kedge {

// Safe to use from several threads.
class Replacements {
 public:
  // `what` names the examples in messages: "prompts of at most 512 tokens".
  explicit Replacements(std::string what) : what_(std::move(what)) {}

  // The first of index, index + 1, ... (round the end) that `read` returns; it returns nothing for one that is too long.
  // UsageError when all are.
  template <typename Example>
  Example find(int64_t index, int64_t size, const std::function<std::optional<Example>(int64_t)>& read,
               const std::function<std::string(int64_t)>& where) const {
    for (int64_t step = 0; step < size; ++step) {
      const int64_t source = (index + step) % size;
      std::optional<Example> example = read(source);
      if (!example) continue;
      if (step > 0) log_.note(where(index), " is too long (expected ", what_, "); ", where(source), " replaces it");
      return std::move(*example);
    }
    throw UsageError(str(where(0), ": no row fits; expected ", what_));
  }

  [[nodiscard]] int64_t count() const { return log_.count(); }

 private:
  std::string what_;
  RareLog log_;
};

// Examples that were cut; those with nothing left of their answer are counted separately.
struct Truncations {
  RareLog truncated, answers_lost;
};

// The rows that stay in a data set: all, until some are left out.
class KeptRows {
 public:
  explicit KeptRows(int64_t size) : size_(size) {}

  // Asks `keep` for every row, from several threads.
  void filter(const std::function<bool(int64_t)>& keep);
  [[nodiscard]] int64_t size() const { return rows_ ? static_cast<int64_t>(rows_->size()) : size_; }
  [[nodiscard]] int64_t num_dropped() const { return size_ - size(); }
  [[nodiscard]] int64_t operator[](int64_t index) const { return rows_ ? (*rows_)[static_cast<size_t>(index)] : index; }

 private:
  int64_t size_;
  std::optional<std::vector<int64_t>> rows_;
};

}  // namespace kedge
