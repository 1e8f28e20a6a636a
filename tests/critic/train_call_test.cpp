#include "kedge/critic/train_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(TrainCall, ReadsBack) {
  const CriticBatch batch{
      .num_rows = 2, .width = 3, .tokens = {1, 2, 3, 4, 5, 6}, .returns = {.5, 1, 2, 3}, .previous = {0, 1, 0, 1}, .mask = {1, 1, 0, 1}};
  const TrainCall call{"key \"1\"\n", "settings", "start", batch};
  const TrainCall read = read_train_call(to_bytes(call));
  EXPECT_EQ(read.key, call.key);
  EXPECT_EQ(read.settings, call.settings);
  EXPECT_EQ(read.start, call.start);
  EXPECT_EQ(read.batch, call.batch);
}

TEST(TrainCall, OneThatIsCutOffIsAnError) {
  const CriticBatch batch{.num_rows = 1, .width = 2, .tokens = {1, 2}, .returns = {1}, .previous = {1}, .mask = {1}};
  const std::string bytes = to_bytes({"key", "settings", "start", batch});
  EXPECT_THAT(error_of([&] { return read_train_call(bytes.substr(0, bytes.size() - 1)); }), HasSubstr("27 bytes for 1 rows of 2 tokens"));
  EXPECT_THAT(error_of([&] { return read_train_call("{}"); }), HasSubstr("no header"));
}

}  // namespace
}  // namespace kedge
