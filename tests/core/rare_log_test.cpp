#include "kedge/core/rare_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace kedge {
namespace {

TEST(RareLog, CountsEveryTime) {
  const RareLog log;
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 20; ++i) log.note("it happened");
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.count(), 20);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 9);  // 1 to 8, then 16
  EXPECT_NE(lines.find("it happened; 16 so far"), std::string::npos);
}

TEST(RareLog, CountsANumberOnceIfAsked) {
  const RareLog log;
  ::testing::internal::CaptureStderr();
  for (const int row : {3, 5, 3, 3, 5}) log.note_once(row, "row ", row);
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.count(), 2);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
}

}  // namespace
}  // namespace kedge
