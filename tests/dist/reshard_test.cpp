#include "kedge/dist/reshard.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace kedge {
namespace {

int64_t below(std::mt19937& random, int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint32_t>(limit)); }

// A matrix cut into rectangles.
std::vector<WeightBlock> random_cut(std::mt19937& random, const WeightBlock& whole, int depth) {
  const bool by_rows = random() % 2 == 0;
  const Share& range = by_rows ? whole.rows : whole.columns;
  if (depth == 0 || range.end - range.begin < 2) return {whole};
  const int64_t middle = range.begin + 1 + below(random, range.end - range.begin - 1);
  WeightBlock first = whole, second = whole;
  (by_rows ? first.rows : first.columns).end = middle;
  (by_rows ? second.rows : second.columns).begin = middle;
  std::vector<WeightBlock> all = random_cut(random, first, depth - 1);
  for (const WeightBlock& block : random_cut(random, second, depth - 1)) all.push_back(block);
  return all;
}

struct Layouts {
  BlocksOfRanks have, want;
};

// Every element is with at least one rank; blocks of a rank do not overlap.
Layouts random_layouts(std::mt19937& random) {
  const auto num_ranks = static_cast<size_t>(below(random, 6) + 1);
  Layouts layouts{BlocksOfRanks(num_ranks), BlocksOfRanks(num_ranks)};
  const auto give = [&](BlocksOfRanks& to, const WeightBlock& block, bool at_least_one) {
    std::set<size_t> ranks;
    if (at_least_one) ranks.insert(random() % num_ranks);
    while (random() % 3 == 0) ranks.insert(random() % num_ranks);
    for (const size_t rank : ranks) to[rank].push_back(block);
  };
  const int64_t num_parameters = below(random, 4) + 1;
  for (int64_t parameter = 0; parameter < num_parameters; ++parameter) {
    const WeightBlock whole{parameter, {0, below(random, 12) + 1}, {0, below(random, 9) + 1}};
    for (const WeightBlock& block : random_cut(random, whole, 3)) give(layouts.have, block, true);
    for (const WeightBlock& block : random_cut(random, whole, 3)) give(layouts.want, block, false);
  }
  return layouts;
}

using Elements = std::multiset<std::tuple<int64_t, int64_t, int64_t>>;

void add_elements(const WeightBlock& block, Elements& elements) {
  for (int64_t row = block.rows.begin; row < block.rows.end; ++row)
    for (int64_t column = block.columns.begin; column < block.columns.end; ++column) elements.insert({block.parameter, row, column});
}

bool is_inside(const WeightBlock& block, const std::vector<WeightBlock>& of) {
  return std::any_of(of.begin(), of.end(), [&](const WeightBlock& other) { return other.contains(block); });
}

bool has_all(const Layouts& layouts, size_t rank, const WeightBlock& block) {
  Elements had, wanted;
  for (const WeightBlock& own : layouts.have[rank]) add_elements(own, had);
  add_elements(block, wanted);
  return std::includes(had.begin(), had.end(), wanted.begin(), wanted.end());
}

TEST(Reshard, EveryElementComesOnceFromARankThatHasIt) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 2000; ++trial) {
    const Layouts layouts = random_layouts(random);
    const std::vector<WeightMove> moves = plan_reshard(layouts.have, layouts.want);
    for (size_t rank = 0; rank < layouts.want.size(); ++rank) {
      Elements wanted, got;
      for (const WeightBlock& block : layouts.want[rank]) add_elements(block, wanted);
      for (const WeightMove& move : moves) {
        if (move.to != static_cast<int>(rank)) continue;
        add_elements(move.block, got);
        ASSERT_TRUE(is_inside(move.block, layouts.have[static_cast<size_t>(move.from)]));
        ASSERT_TRUE(is_inside(move.block, layouts.want[rank]));
        ASSERT_TRUE(move.from == move.to || !has_all(layouts, rank, move.block)) << "a rank is sent what it has";
      }
      ASSERT_EQ(got, wanted);
    }
  }
}

TEST(Reshard, RoundsCarryTheSameAndAreLimited) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 500; ++trial) {
    const Layouts layouts = random_layouts(random);
    const auto num_ranks = static_cast<int>(layouts.have.size());
    const std::vector<WeightMove> moves = plan_reshard(layouts.have, layouts.want);
    const int64_t most = below(random, 30) + 9;  // a row has 9 at most
    std::map<std::pair<int, int>, Elements> planned, done;
    for (const WeightMove& move : moves) add_elements(move.block, planned[{move.from, move.to}]);
    for (const std::vector<WeightMove>& round : reshard_rounds(moves, num_ranks, most)) {
      for (const WeightMove& move : round) add_elements(move.block, done[{move.from, move.to}]);
      for (int rank = 0; rank < num_ranks; ++rank) {
        ASSERT_LE(reshard_traffic(round, rank).sent, most);
        ASSERT_LE(reshard_traffic(round, rank).received, most);
      }
    }
    ASSERT_EQ(done, planned);
  }
}

TEST(Reshard, SaysWhatNobodyHas) {
  const WeightBlock first{0, {0, 2}, {0, 4}}, all{0, {0, 3}, {0, 4}};
  try {
    static_cast<void>(plan_reshard({{first}, {}}, {{}, {all}}));
    FAIL() << "planned";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("no rank has all of parameter 0 that rank 1 wants"), std::string::npos) << error.what();
  }
}

// In bytes of the theory: of a matrix cut by rows over 4 ranks, half of the columns each go to two of them.
TEST(Reshard, SendsNoMoreThanIsMissing) {
  BlocksOfRanks have, want;
  for (int64_t rank = 0; rank < 4; ++rank) {
    have.push_back({{0, {rank * 8, rank * 8 + 8}, {0, 32}}});
    want.push_back({{0, {0, 32}, {rank % 2 * 16, rank % 2 * 16 + 16}}});
  }
  const std::vector<WeightMove> moves = plan_reshard(have, want);
  for (int rank = 0; rank < 4; ++rank) {
    const ReshardTraffic traffic = reshard_traffic(moves, rank);
    EXPECT_EQ(traffic.copied, 8 * 16);
    EXPECT_EQ(traffic.received, 24 * 16);
    EXPECT_EQ(traffic.sent, 24 * 16);
  }
}

}  // namespace
}  // namespace kedge
