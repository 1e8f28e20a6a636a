#include "kedge/algo/online/minibatches.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/dist/partition.h"

namespace kedge {
namespace {

using Numbers = std::span<const int64_t>;

int64_t at(Numbers by_row, int64_t row) {
  ensure(row >= 0 && row < std::ssize(by_row), "row ", row, " of ", by_row.size());
  return by_row[static_cast<size_t>(row)];
}

int64_t sum_over(Numbers rows, Numbers by_row) {
  int64_t sum = 0;
  for (const int64_t row : rows) sum += at(by_row, row);
  return sum;
}

Numbers part(Numbers rows, int64_t begin, int64_t size) { return rows.subspan(static_cast<size_t>(begin), static_cast<size_t>(size)); }

void check_sizes(int64_t num_rows, const BatchSizes& sizes, int num_ranks) {
  ensure(sizes.global_size >= 1 && sizes.micro_size >= 1 && num_ranks >= 1, "a batch without rows");
  check(sizes.global_size % (sizes.micro_size * num_ranks) == 0, "global_batch_size: ", sizes.global_size,
        " rows do not divide into micro-batches of ", sizes.micro_size, " on each of ", num_ranks, num_ranks == 1 ? " rank" : " ranks");
  check(num_rows % sizes.global_size == 0, "global_batch_size: the ", num_rows, " rows of a step do not divide into batches of ",
        sizes.global_size);
}

// Rows that stay together, and their tokens.
struct Unit {
  std::vector<int64_t> rows = {};
  int64_t tokens = 0;
};

// Puts rows into units. `lengths` and `groups` must outlive it.
class Units {
 public:
  Units(Numbers lengths, const RowGroups& groups) : lengths_(lengths), groups_(groups) {}

  // In the order in which the first row of each comes.
  [[nodiscard]] std::vector<Unit> of(Numbers rows) const {
    std::vector<Unit> units;
    std::map<int64_t, size_t> places;
    for (const int64_t row : rows) {
      const bool is_new = groups_.groups.empty() || places.emplace(at(groups_.groups, row), units.size()).second;
      Unit& unit = is_new ? units.emplace_back() : units[places.at(at(groups_.groups, row))];
      add(unit, row);
    }
    for (Unit& unit : units) std::sort(unit.rows.begin(), unit.rows.end());
    return units;
  }

  // Each in `count` parts, if it has so many rows.
  [[nodiscard]] std::vector<Unit> divided(std::span<const Unit> units, int64_t count) const {
    std::vector<Unit> parts;
    for (const Unit& unit : units) {
      const auto num_parts = static_cast<int>(std::min(count, std::ssize(unit.rows)));
      for (int i = 0; i < num_parts; ++i) {
        const Share share = share_of(std::ssize(unit.rows), i, num_parts);
        Unit& next = parts.emplace_back();
        for (const int64_t row : part(unit.rows, share.begin, share.end - share.begin)) add(next, row);
      }
    }
    return parts;
  }

  // In parts of at most so many tokens, at least one row.
  [[nodiscard]] std::vector<Unit> within(std::span<const Unit> units, int64_t tokens) const {
    std::vector<Unit> parts;
    for (const Unit& unit : units) {
      parts.emplace_back();
      for (const int64_t row : unit.rows) {
        if (!parts.back().rows.empty() && parts.back().tokens + added(parts.back(), row) > tokens) parts.emplace_back();
        add(parts.back(), row);
      }
    }
    return parts;
  }

  [[nodiscard]] bool may_divide() const { return groups_.may_divide; }
  [[nodiscard]] bool shares() const { return !groups_.shared.empty(); }

 private:
  [[nodiscard]] int64_t added(const Unit& unit, int64_t row) const {
    return at(lengths_, row) - (shares() && !unit.rows.empty() ? at(groups_.shared, row) : 0);
  }
  void add(Unit& unit, int64_t row) const {
    unit.tokens += added(unit, row);
    unit.rows.push_back(row);
  }

  Numbers lengths_;
  const RowGroups& groups_;
};

std::vector<int64_t> sizes_of(std::span<const Unit> units) {
  std::vector<int64_t> sizes;
  for (const Unit& unit : units) sizes.push_back(unit.tokens);
  return sizes;
}

// Divided so often that the rank with the most tokens has as few as possible.
std::vector<Unit> balanced(const Units& by, std::vector<Unit> whole, int num_ranks) {
  if (num_ranks == 1 || !by.may_divide()) return whole;
  int64_t most_rows = 1;
  for (const Unit& unit : whole) most_rows = std::max(most_rows, std::ssize(unit.rows));
  std::vector<Unit> best = whole;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t count = 1; count <= most_rows; ++count) {
    std::vector<Unit> units = by.divided(whole, count);
    const std::vector<int64_t> sizes = sizes_of(units);
    int64_t most = 0;
    for (int rank = 0; rank < num_ranks; ++rank) most = std::max(most, sum_over(share_by_size(sizes, rank, num_ranks), sizes));
    if (most < least) least = most, best = std::move(units);
  }
  return best;
}

// A rank's, about as many tokens as any other's, in their order.
std::vector<Unit> units_of_rank(std::vector<Unit> units, int rank, int num_ranks) {
  std::vector<Unit> own;
  for (const int64_t place : share_by_size(sizes_of(units), rank, num_ranks)) own.push_back(std::move(units[static_cast<size_t>(place)]));
  return own;
}

std::vector<Pass> passes_of(const Units& by, std::vector<Unit> units, int64_t tokens_per_pass) {
  if (by.may_divide()) units = by.within(units, tokens_per_pass);
  std::vector<Pass> passes;
  int64_t tokens = 0;  // of the last pass
  for (const Unit& unit : units) {
    if (passes.empty() || tokens + unit.tokens > tokens_per_pass) {
      passes.push_back({.shares_prompts = by.shares()});
      tokens = 0;
    }
    passes.back().rows.insert(passes.back().rows.end(), unit.rows.begin(), unit.rows.end());
    tokens += unit.tokens;
  }
  return passes;
}

double one_over(int64_t count) { return count == 0 ? 0 : 1 / static_cast<double>(count); }

std::vector<double> reference_weights(Numbers rows, Numbers counts, int64_t micro_size) {
  const int64_t num_micro = std::ssize(rows) / micro_size;
  std::vector<double> weights;
  for (int64_t begin = 0; begin < std::ssize(rows); begin += micro_size) {
    const double weight = one_over(sum_over(part(rows, begin, micro_size), counts) * num_micro);
    weights.insert(weights.end(), static_cast<size_t>(micro_size), weight);
  }
  return weights;
}

std::vector<double> equal_weights(Numbers rows, Numbers counts) {
  std::vector<double> weights(rows.size(), one_over(sum_over(rows, counts)));
  return weights;
}

int64_t num_counted(Numbers rows, Numbers counts) {
  return std::count_if(rows.begin(), rows.end(), [&](int64_t row) { return at(counts, row) > 0; });
}

std::vector<double> sequence_weights(Numbers rows, Numbers counts) {
  const int64_t num_rows = num_counted(rows, counts);
  std::vector<double> weights;
  for (const int64_t row : rows) weights.push_back(one_over(at(counts, row) * num_rows));
  return weights;
}

std::vector<double> weights_by(LossNorm norm, Numbers rows, Numbers counts, int64_t micro_size, int64_t max_length) {
  switch (norm) {
    case LossNorm::reference:
      return reference_weights(rows, counts, micro_size);
    case LossNorm::tokens:
      return equal_weights(rows, counts);
    case LossNorm::sequences:
      return sequence_weights(rows, counts);
    case LossNorm::sum:
      return std::vector<double>(rows.size(), one_over(num_counted(rows, counts)));
    case LossNorm::constant:
      ensure(max_length > 0, "a constant without the length of an answer");
      return std::vector<double>(rows.size(), one_over(std::ssize(rows) * max_length));
  }
  throw Bug("no such norm");
}

}  // namespace

std::vector<Pass> plan_passes(std::span<const int64_t> rows, std::span<const int64_t> lengths, int64_t tokens_per_pass,
                              const RowGroups& groups) {
  const Units units(lengths, groups);
  return passes_of(units, units.of(rows), tokens_per_pass);
}

std::vector<Minibatch> plan_minibatches(std::span<const int64_t> order, std::span<const int64_t> lengths, const BatchSizes& sizes, int rank,
                                        int num_ranks, const RowGroups& groups) {
  check_sizes(std::ssize(order), sizes, num_ranks);
  ensure(rank >= 0 && rank < num_ranks, "rank ", rank, " of ", num_ranks);
  const Units units(lengths, groups);
  std::vector<Minibatch> plan;
  for (int64_t begin = 0; begin < std::ssize(order); begin += sizes.global_size) {
    const Numbers all = part(order, begin, sizes.global_size);
    std::vector<Unit> own = units_of_rank(balanced(units, units.of(all), num_ranks), rank, num_ranks);
    plan.push_back({.rows = {all.begin(), all.end()}, .passes = passes_of(units, std::move(own), sizes.tokens_per_pass)});
  }
  return plan;
}

std::vector<double> token_weights(const Minibatch& minibatch, std::span<const int64_t> counts, int64_t micro_size, LossNorm norm,
                                  int64_t max_length) {
  const Numbers rows = minibatch.rows;
  ensure(micro_size >= 1 && std::ssize(rows) % micro_size == 0, rows.size(), " rows in micro-batches of ", micro_size);
  std::vector<double> weights = weights_by(norm, rows, counts, micro_size, max_length);
  for (size_t i = 0; i < rows.size(); ++i)
    if (at(counts, rows[i]) == 0) weights[i] = 0;
  return weights;
}

}  // namespace kedge
