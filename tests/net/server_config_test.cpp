#include "kedge/net/server_config.h"

#include <gtest/gtest.h>

#include "kedge/config/config.h"

namespace kedge {
namespace {

TEST(ServerConfig, ListensToThisMachineAloneUnlessTold) {
  ServerConfig config;
  EXPECT_EQ(config.ip, "127.0.0.1");
  EXPECT_FALSE(config.insecure);
  (void)load_section(describe(config), ConfigText{"test", ""}, {"host=0.0.0.0", "port=5555", "max_body=1GiB"});
  EXPECT_EQ(config.ip, "0.0.0.0");
  EXPECT_EQ(config.port, 5555);
  EXPECT_EQ(config.max_body.bytes, 1 << 30);
}

}  // namespace
}  // namespace kedge
