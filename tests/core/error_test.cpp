#include "kedge/core/error.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

TEST(Error, TextIsMadeOfItsParts) { EXPECT_EQ(str("found ", 3, " rows of ", 2.5), "found 3 rows of 2.5"); }

TEST(Error, CheckIsTheUsersAndEnsureIsOurs) {
  EXPECT_EQ(error_of<UsageError>([] { check(false, "file.jsonl:", 3, ": no \"prompt\" field"); }), "file.jsonl:3: no \"prompt\" field");
  EXPECT_EQ(error_of<Bug>([] { ensure(false, "impossible"); }), "impossible");
  check(true, "fine");
  ensure(true, "fine");
}

}  // namespace
}  // namespace kedge
