// Of the 2 or 3 ranks that mpirun has started.
#include "kedge/reward/rank_rows.h"

#include <gtest/gtest.h>

#include <array>

#include <ATen/ops/equal.h>

#include "tests/support/ranks.h"

namespace kedge {
namespace {

using testing::world;

// What is computed of a row, or of each of its tokens, is a function of it alone.
Tensor sums(std::span<const TokenIds> rows) {
  std::vector<float> all;
  for (const TokenIds& row : rows) {
    float sum = 0;
    for (const TokenId id : row) sum += static_cast<float>(id);
    all.insert(all.end(), {sum, -sum});
  }
  return at::tensor(all).view({std::ssize(rows), 2});
}
Tensor squares(std::span<const TokenIds> rows) {
  std::vector<float> all;
  for (const TokenIds& row : rows)
    for (const TokenId id : row) all.push_back(static_cast<float>(id * id));
  return at::tensor(all);
}

TEST(RankRows, RowsReadBack) {
  const std::vector<TokenIds> rows = {{1, 2, 3}, {70000}, {4, 5}};
  EXPECT_EQ(read_rows(rows_to_bytes(rows)), rows);
  EXPECT_EQ(read_rows(rows_to_bytes({})), std::vector<TokenIds>());
  const std::string bytes = rows_to_bytes(rows);
  for (const size_t size : {size_t{3}, size_t{20}, bytes.size() - 1})
    EXPECT_ANY_THROW(static_cast<void>(read_rows(std::string_view(bytes).substr(0, size)))) << size;
}

TEST(RankRows, EveryRankGetsAllResultsInTheOrderOfRows) {
  std::vector<TokenIds> rows;
  for (int i = 0; i < 11; ++i) {
    EXPECT_TRUE(at::equal(compute_shared(world(), rows, RowResult::of_row, sums), sums(rows))) << i;
    EXPECT_TRUE(at::equal(compute_shared(world(), rows, RowResult::of_token, squares), squares(rows))) << i;
    rows.emplace_back(static_cast<size_t>(1 + i * 7 % 5), static_cast<TokenId>(i + 1));
  }
}

TEST(RankRows, RanksComputeDifferentRowsOfAboutAsManyTokens) {
  const std::vector<TokenIds> rows = {TokenIds(12, 1), TokenIds(4, 2), TokenIds(4, 3), TokenIds(4, 4), TokenIds(12, 5), TokenIds(12, 6)};
  double num_tokens = 0;
  static_cast<void>(compute_shared(world(), rows, RowResult::of_token, [&](std::span<const TokenIds> own) {
    for (const TokenIds& row : own) num_tokens += static_cast<double>(row.size());
    return squares(own);
  }));
  std::array<double, 2> sum_and_most = {num_tokens, num_tokens};
  world().all_reduce(std::span(sum_and_most).first(1), Reduce::sum);
  world().all_reduce(std::span(sum_and_most).last(1), Reduce::max);
  EXPECT_EQ(sum_and_most[0], 48) << "each row once";
  EXPECT_EQ(sum_and_most[1], world().size() == 2 ? 24 : 16);
}

}  // namespace
}  // namespace kedge
