#include "kedge/core/identity.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(Identity, OfAMachineStaysTheSame) {
  EXPECT_EQ(host_name(), host_name());
  EXPECT_EQ(boot_id(), boot_id());
  EXPECT_EQ(boot_id().find('\n'), std::string::npos);
}

TEST(Identity, RandomNamesAreHexAndDiffer) {
  EXPECT_EQ(random_hex(0), "");
  const std::string name = random_hex(16);
  EXPECT_EQ(name.size(), 32U);
  EXPECT_EQ(name.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(random_hex(16), name);
}

}  // namespace
}  // namespace kedge
