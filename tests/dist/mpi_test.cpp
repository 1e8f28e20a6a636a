// Run by mpirun.
#include "kedge/dist/mpi.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/expect_error.h"

namespace kedge::mpi {
namespace {

const World& world() {
  static const World instance;
  return instance;
}

// Of another length for every pair, and none for the first rank's own.
std::string letter(int from, int to) {
  std::string text;
  for (int i = 0; i < from * 10 + to; ++i) text += str(from, ">", to, " ");
  return text;
}

TEST(Mpi, GathersInRankOrder) {
  const std::string mine = str("rank ", world().rank());
  std::string all(mine.size() * static_cast<size_t>(world().size()), '?');
  world().all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::string expected;
  for (int rank = 0; rank < world().size(); ++rank) expected += str("rank ", rank);
  EXPECT_EQ(all, expected);
}

TEST(Mpi, ALongBroadcastTravelsInManyMessages) {
  const std::string expected = "twenty-three letters, ok";
  std::string text = world().rank() == 1 ? expected : std::string(expected.size(), '?');
  world().broadcast(std::as_writable_bytes(std::span(text)), 1, 5);
  EXPECT_EQ(text, expected);
}

TEST(Mpi, ExchangeDeliversEveryPairsOwnBytesInMessagesOfAnyLength) {
  for (const size_t message_bytes : {size_t{7}, kMaxMessageBytes}) {
    std::vector<std::string> sent;
    std::vector<std::string> received;
    for (int rank = 0; rank < world().size(); ++rank) {
      sent.push_back(letter(world().rank(), rank));
      received.emplace_back(letter(rank, world().rank()).size(), '?');
    }
    std::vector<ConstBytes> to;
    std::vector<Bytes> from;
    for (const std::string& text : sent) to.push_back(std::as_bytes(std::span(text)));
    for (std::string& text : received) from.push_back(std::as_writable_bytes(std::span(text)));
    world().exchange(to, from, message_bytes);
    for (int rank = 0; rank < world().size(); ++rank) EXPECT_EQ(received[static_cast<size_t>(rank)], letter(rank, world().rank()));
  }
}

TEST(Mpi, StartsOnceInAProcess) {
  world();
  EXPECT_EQ(testing::error_of<Bug>([] { return World().rank(); }), "MPI is started twice in one process");
}

TEST(Mpi, SaysWhichItIs) {
  EXPECT_TRUE(is_built());
  EXPECT_FALSE(library_version().empty());
}

}  // namespace
}  // namespace kedge::mpi
