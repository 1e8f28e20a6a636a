#include "kedge/dist/line_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::chrono::seconds kLong{10};

struct Pair {
  LineListener listener{LineListener::Reach::machine};
  LineSocket one = connect_line("127.0.0.1", listener.port(), kLong);
  LineSocket other = *listener.accept();
};

TEST(LineSocket, LinesArriveInOrder) {
  Pair pair;
  pair.one.send("first");
  pair.one.send("");
  pair.one.send("third one");
  EXPECT_EQ(pair.other.wait_for_line(kLong), "first");
  EXPECT_EQ(pair.other.wait_for_line(kLong), "");
  EXPECT_EQ(pair.other.wait_for_line(kLong), "third one");
  EXPECT_THAT(pair.other.receive(), IsEmpty());
  EXPECT_TRUE(pair.other.is_open());
}

TEST(LineSocket, WithoutALineTheWaitEnds) {
  Pair pair;
  EXPECT_EQ(pair.other.wait_for_line(std::chrono::milliseconds(20)), std::nullopt);
}

TEST(LineSocket, WhatWasSentBeforeTheEndIsReceivedAndThenTheEndIsFound) {
  Pair pair;
  pair.other.send("never read");  // which makes the end of the connection a rude one
  pair.one.send("bye");
  pair.one.close();
  EXPECT_EQ(pair.other.wait_for_line(kLong), "bye");
  EXPECT_EQ(pair.other.wait_for_line(kLong), std::nullopt);
  EXPECT_FALSE(pair.other.is_open());
  pair.other.send("to nobody");
  EXPECT_FALSE(pair.other.has_unsent());
}

TEST(LineSocket, SendingToOneThatDoesNotReadDoesNotWait) {
  Pair pair;
  const std::string line(1000, 'x');
  int count = 0;
  for (; !pair.one.has_unsent() && count < 100000; ++count) pair.one.send(line);
  EXPECT_TRUE(pair.one.has_unsent());
  for (int received = 0; received < count; ++received) {
    ASSERT_EQ(pair.other.wait_for_line(kLong), line);
    pair.one.flush();
  }
  EXPECT_FALSE(pair.one.has_unsent());
}

TEST(LineSocket, AnEndlessLineEndsTheConnection) {
  Pair pair;
  pair.one.send(std::string(30000, 'x'));
  EXPECT_EQ(pair.other.wait_for_line(kLong), std::nullopt);
  EXPECT_THAT(pair.other.receive(), IsEmpty());
  EXPECT_FALSE(pair.other.is_open());
}

TEST(LineSocket, NobodyThereIsAnErrorThatNamesTheAddress) {
  int port = 0;
  {
    const LineListener listener(LineListener::Reach::machine);
    port = listener.port();
  }
  EXPECT_EQ(testing::error_of<Error>([&] { return connect_line("127.0.0.1", port, kLong).is_open(); }),
            str("127.0.0.1 port ", port, ": Connection refused"));
  EXPECT_THAT(testing::error_of<Error>([&] { return connect_line("a.name", port, kLong).is_open(); }), StartsWith("a.name: "));
}

TEST(LineListener, WithTheNetworkItIsReachedAtTheAddressesOfTheMachineToo) {
  LineListener listener(LineListener::Reach::network);
  std::vector<std::string> addresses = own_addresses();
  addresses.emplace_back("127.0.0.1");
  for (const std::string& address : addresses) {
    LineSocket caller = connect_line(address, listener.port(), kLong);
    caller.send(address);
    std::optional<LineSocket> found = listener.accept();
    ASSERT_TRUE(found) << address;
    EXPECT_EQ(found->wait_for_line(kLong), address);
  }
  EXPECT_FALSE(listener.accept());
}

}  // namespace
}  // namespace kedge
