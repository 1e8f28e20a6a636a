// Buckets gathered and summed by the ranks that mpirun has started.
#include "kedge/dist/shard_exchange.h"

#include <gtest/gtest.h>

#include <memory>

#include <ATen/ops/equal.h>

#include "kedge/dist/counting_transport.h"

#include "tests/support/ranks.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;
using testing::world;

// A bucket of several leaves, one smaller than a leaf, and one of more than a piece in all.
const std::vector<int64_t> kEnds = {10'000, 10'128, 12'000'000};

// What a rank has before a sum.
Tensor values_of(int rank, int64_t size) { return normals({size}, static_cast<uint64_t>(100 + rank)); }

TEST(ShardExchange, GathersWhatTheRanksOwn) {
  const ShardExchange exchange({.kind = Sharding::all, .shard = world()}, {kEnds, world().size()});
  for (size_t b = 0; b < kEnds.size(); ++b) {
    const Share bucket = exchange.layout().bucket(b), part = exchange.own_part(b);
    const Tensor all = values_of(0, length(bucket)), whole = at::zeros({length(bucket)});
    exchange.gather(b, all.narrow(0, part.begin - bucket.begin, length(part)), whole);
    EXPECT_TRUE(at::equal(whole, all));
  }
}

TEST(ShardExchange, SumsInTheOrderOfTheRanks) {
  const ShardExchange exchange({.kind = Sharding::all, .shard = world()}, {kEnds, world().size()});
  for (size_t b = 0; b < kEnds.size(); ++b) {
    const Share bucket = exchange.layout().bucket(b), part = exchange.own_part(b);
    Tensor sum = values_of(0, length(bucket));
    for (int rank = 1; rank < world().size(); ++rank) sum = sum + values_of(rank, length(bucket));
    const Tensor own = at::ones({length(part)});
    exchange.reduce(b, values_of(world().rank(), length(bucket)), own);
    EXPECT_TRUE(at::equal(own, sum.narrow(0, part.begin - bucket.begin, length(part)) + 1));
  }
}

// On a CPU the fast order is the ranks' too; parts are of different lengths all the same.
TEST(ShardExchange, FastSumsAreOfTheSameElements) {
  const ShardOptions options{.kind = Sharding::all, .shard = world(), .collectives = Collectives::fast};
  const ShardExchange exchange(options, {kEnds, world().size()});
  for (size_t b = 0; b < kEnds.size(); ++b) {
    const Share bucket = exchange.layout().bucket(b), part = exchange.own_part(b);
    Tensor sum = values_of(0, length(bucket));
    for (int rank = 1; rank < world().size(); ++rank) sum = sum + values_of(rank, length(bucket));
    const Tensor own = at::zeros({length(part)});
    exchange.reduce(b, values_of(world().rank(), length(bucket)), own);
    EXPECT_TRUE(at::equal(own, sum.narrow(0, part.begin - bucket.begin, length(part))));
  }
}

TEST(ShardExchange, ReplicasAreSummedGroupByGroup) {
  const Group all = world().split(0);
  const auto counting = std::make_shared<CountingTransport>(std::shared_ptr<Transport>(std::shared_ptr<void>(), &all.transport(false)));
  const ShardOptions options{
      .kind = Sharding::all, .shard = world().split(world().rank()), .replicas = all.with_transport(nullptr, counting)};
  ASSERT_EQ(options.shard.size(), 1);
  ASSERT_EQ(options.replicas.size(), world().size());
  const ShardExchange exchange(options, {{5000}, 1});
  Tensor sum = values_of(0, 5000);
  for (int rank = 1; rank < world().size(); ++rank) sum = sum + values_of(rank, 5000);
  const Tensor own = at::zeros({5000});
  exchange.reduce(0, values_of(world().rank(), 5000), own);
  EXPECT_TRUE(at::equal(own, sum));
  const int64_t slice = length(share_of(5000, world().rank(), world().size()));
  EXPECT_EQ(counting->traffic().bytes_sent, (5000 - slice + slice * (world().size() - 1)) * 4);
}

TEST(Group, SplitsIntoGroupsThatWorkAlone) {
  const Group mine = world().split(world().rank() % 2);
  EXPECT_EQ(mine.rank(), world().rank() / 2);
  EXPECT_EQ(mine.size(), (world().size() + (world().rank() % 2 == 0 ? 1 : 0)) / 2);
  const Tensor sum = at::full({3}, world().rank(), at::kLong);
  mine.all_reduce(sum, Reduce::sum);
  int64_t wanted = 0;
  for (int rank = world().rank() % 2; rank < world().size(); rank += 2) wanted += rank;
  EXPECT_EQ(sum[0].item<int64_t>(), wanted);
  EXPECT_EQ(static_cast<int>(mine.all_gather("x").size()), mine.size());
}

}  // namespace
}  // namespace kedge
