#include "kedge/core/memory_budget.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

TEST(MemoryBudget, BytesOrAShare) {
  EXPECT_EQ(memory_budget("0.5", 1000, "memory"), 500);
  EXPECT_EQ(memory_budget("1", 1000, "memory"), 1000);
  EXPECT_EQ(memory_budget("2", 1000, "memory"), 2);
  EXPECT_EQ(memory_budget("1B", 1000, "memory"), 1);
  EXPECT_EQ(memory_budget("4GiB", 1000, "memory"), int64_t{4} << 30U);
  EXPECT_EQ(memory_budget("1.5 MiB", 1000, "memory"), 1536 * 1024);
  EXPECT_EQ(memory_budget("3KB", 1000, "memory"), 3000);
}

TEST(MemoryBudget, WhatIsNoAmountIsSaid) {
  for (const char* text : {"", "much", "0", "-1", "4Gi", "4GiBs", "nan", "inf", "1e300", "0.1B", "GiB"})
    EXPECT_EQ(testing::error_of([&] { return memory_budget(text, 1000, "memory"); }),
              str("memory: \"", text,
                  "\" is not an amount of memory; expected bytes such as 4GiB, or a fraction of the free memory such as 0.5"));
}

}  // namespace
}  // namespace kedge
