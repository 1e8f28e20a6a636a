#include "cli/text/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge::cli {
namespace {

using kedge::testing::error_of;
using kedge::testing::TempFolder;
using ::testing::ElementsAre;

std::vector<std::string> json_lines_of(const std::string& file) {
  std::vector<std::string> lines;
  for_each_json_line(
      file, [&](const Json& value, const std::string& where) { lines.push_back(where.substr(where.rfind('/') + 1) + " " + value.dump()); });
  return lines;
}

TEST(JsonLines, EveryLineComesWithItsPlace) {
  const TempFolder folder;
  EXPECT_THAT(json_lines_of(folder.file("a.jsonl", "{\"a\": 1}\r\n\n[2]")), ElementsAre("a.jsonl:1 {\"a\": 1}", "a.jsonl:3 [2]"));
}

TEST(JsonLines, LinesComeOneAtATime) {
  const TempFolder folder;
  JsonLines lines(folder.file("a.jsonl", "[1]\n\n{").string());
  EXPECT_EQ(lines.next()->value.dump(), "[1]");
  EXPECT_THAT(error_of([&] { return lines.next(); }), ::testing::HasSubstr("a.jsonl:3:")) << "what is behind is not read before";
  JsonLines none(folder.file("b.jsonl", "\n").string());
  EXPECT_FALSE(none.next());
  EXPECT_FALSE(none.next());
}

TEST(JsonLines, ABrokenLineIsNamed) {
  const TempFolder folder;
  const std::string path = folder.file("a.jsonl", "{}\n{\n").string();
  EXPECT_EQ(error_of([&] { return json_lines_of(path); }).find(path + ":2:2: not valid JSON"), 0U);
  const std::string missing = (folder / "none").string();
  EXPECT_EQ(error_of([&] { return json_lines_of(missing); }), missing + ": cannot be read: No such file or directory");
  EXPECT_EQ(error_of([&] { return json_lines_of(folder.path().string()); }),
            folder.path().string() + ": is a folder; expected a file of JSON lines");
}

TEST(JsonLines, AFloatHasTheDigitsItNeeds) {
  EXPECT_EQ(short_number(0.1F).dump(), "0.1");
  EXPECT_EQ(short_number(-8.682995F).dump(), "-8.682995");
  EXPECT_EQ(short_number(0).dump(), "0.0");
  EXPECT_EQ(static_cast<float>(short_number(1e-40F).as_number("")), 1e-40F);
  EXPECT_EQ(short_number(std::numeric_limits<float>::infinity()).dump(), "null");
  EXPECT_EQ(short_number(std::numeric_limits<float>::quiet_NaN()).dump(), "null");
}

TEST(JsonLines, AnAnswerIsOneLine) {
  ::testing::internal::CaptureStdout();
  print_json_line(Json::parse(R"({"a": "x\ny"})"));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "{\"a\": \"x\\ny\"}\n");
}

}  // namespace
}  // namespace kedge::cli
