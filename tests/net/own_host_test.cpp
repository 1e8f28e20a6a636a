#include "kedge/net/own_host.h"

#include <gtest/gtest.h>

#include "kedge/core/identity.h"

namespace kedge {
namespace {

TEST(OwnHost, IsAnAddressAPlainNameOrOurs) {
  for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1:6006", "192.168.1.7:6006", "[::1]:6006", "[::1]", "reward:5555"})
    EXPECT_TRUE(is_own_host(host)) << host;
  EXPECT_TRUE(is_own_host(host_name() + ".cluster.example:80"));
  for (const char* host :
       {"evil.example", "evil.example:6006", "localhost.evil.example", "", ":80", "127.0.0.1.nip.io:6006", "[::1", "[evil]:80"})
    EXPECT_FALSE(is_own_host(host)) << host;
}

TEST(OwnHost, TheLoopbackIsNoNameThatBeginsLikeIt) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1"}) EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"127.evil.example", "0.0.0.0", "rm01", ""}) EXPECT_FALSE(is_loopback(host)) << host;
}

}  // namespace
}  // namespace kedge
