#include "cli/text/row_progress.h"

#include <gtest/gtest.h>

namespace kedge::cli {
namespace {

TEST(RowProgress, TheSummaryCountsRowsTokensAndTheirRate) {
  RowProgress progress;
  EXPECT_EQ(progress.summary(), "0 rows, 0 tokens");
  progress.add(1, 1, 0.5);
  EXPECT_EQ(progress.summary(), "1 row, 1 token, 2 tokens/s");
  progress.add(0, 8, 1);
  progress.add(2, 0, 0);
  EXPECT_EQ(progress.summary(), "3 rows, 9 tokens, 6 tokens/s");
}

}  // namespace
}  // namespace kedge::cli
