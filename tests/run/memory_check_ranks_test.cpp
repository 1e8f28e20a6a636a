// What is free on the 2 or 3 ranks that mpirun has started.
#include <gtest/gtest.h>

#include "kedge/run/memory_check.h"

#include "tests/support/ranks.h"

namespace kedge {
namespace {

using testing::mesh;
using testing::rank;
using testing::size;

TEST(MemoryCheckRanks, TheLeastThatAnyHasFreeIsThereForAll) {
  const MemoryRoom room = least_room(mesh(), 1000 - rank(), 500 + rank());
  EXPECT_EQ(room.device, 1000 - (size() - 1));
  EXPECT_EQ(room.host, 500);
  EXPECT_EQ(room.host_ranks, size());
}

}  // namespace
}  // namespace kedge
