#include "kedge/net/local_token.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "kedge/net/http_server.h"

namespace kedge {
namespace {

// A port of our own, so that tests that run beside this one have others.
class LocalTokenTest : public ::testing::Test {
 protected:
  HttpServer server_{{}, [](const HttpRequest&, const HttpReply& reply) { reply.send({}); }};
  int64_t port_ = server_.port();
};

TEST_F(LocalTokenTest, IsFoundOnThisMachineAndGoesWithItsServer) {
  {
    const LocalToken token(port_, "word");
    struct stat facts {};
    ASSERT_EQ(stat(token.file().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0600U);
    for (const char* host : {"localhost", "127.0.0.1", "::1"}) EXPECT_EQ(find_local_token(host, port_), "word") << host;
    EXPECT_EQ(find_local_token("rm.example", port_), std::nullopt);
    EXPECT_EQ(find_local_token("127.evil.example", port_), std::nullopt);
  }
  EXPECT_EQ(find_local_token("localhost", port_), std::nullopt);
}

TEST_F(LocalTokenTest, TheNewestServerOfAPortCounts) {
  auto old = std::make_unique<LocalToken>(port_, "old");
  const LocalToken next(port_, "new");
  old.reset();
  EXPECT_EQ(find_local_token("localhost", port_), "new");
}

TEST_F(LocalTokenTest, OneThatOthersMayReadIsNotTaken) {
  const LocalToken token(port_, "word");
  ASSERT_EQ(chmod(token.file().c_str(), 0644), 0);
  EXPECT_EQ(find_local_token("localhost", port_), std::nullopt);
}

TEST_F(LocalTokenTest, APortOfThisUserIsOurs) { EXPECT_TRUE(is_port_ours(port_)); }

}  // namespace
}  // namespace kedge
