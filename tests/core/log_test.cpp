#include "kedge/core/log.h"

#include <gtest/gtest.h>

#include "kedge/core/files.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

TEST(Log, ALineHasTimeLevelAndRank) {
  EXPECT_EQ(format_log_line(LogLevel::info, "hello", "12:00:00", {}), "12:00:00 hello");
  EXPECT_EQ(format_log_line(LogLevel::warn, "hello", "12:00:00", {.rank = 2, .num_ranks = 4}), "12:00:00 warning [rank 2] hello");
}

TEST(Log, TextOfOthersDoesNotSteerTheTerminal) {
  EXPECT_EQ(format_log_line(LogLevel::info, "HTTP 500: \x1b[2J\x1b]0;x\x07 no\nmore", "12:00:00", {}),
            "12:00:00 HTTP 500: [2J]0;x no\nmore");
}

std::string lines_written(const LogSetup& setup) {
  ::testing::internal::CaptureStderr();
  set_up_log(setup);
  log_debug("d", 1);
  log_info("i", 2);
  log_warn("w", 3);
  log_warn_of_job("j", 4);
  set_up_log({});
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, WritesFromItsLevelUpwards) {
  const std::string quiet = lines_written({.level = LogLevel::warn});
  EXPECT_EQ(quiet.find("i2"), std::string::npos);
  EXPECT_NE(quiet.find("warning w3\n"), std::string::npos);
  EXPECT_NE(lines_written({.level = LogLevel::debug}).find("debug d1\n"), std::string::npos);
}

TEST(Log, OtherRanksOnlyWarn) {
  const std::string text = lines_written({.level = LogLevel::debug, .rank = 1, .num_ranks = 2});
  EXPECT_EQ(text.find("i2"), std::string::npos);
  EXPECT_NE(text.find("warning [rank 1] w3\n"), std::string::npos);
}

TEST(Log, WhatEveryRankFindsIsSaidByTheFirst) {
  EXPECT_NE(lines_written({.rank = 0, .num_ranks = 2}).find("warning [rank 0] j4\n"), std::string::npos);
  EXPECT_EQ(lines_written({.rank = 1, .num_ranks = 2}).find("j4"), std::string::npos);
}

TEST(Log, NoColourOutsideATerminal) { EXPECT_EQ(lines_written({}).find('\x1b'), std::string::npos); }

TEST(Log, LinesAreAddedToAFileWithTheirDate) {
  const testing::TempFolder folder;
  const std::string path = folder.file("log.txt", "before\n").string();
  ::testing::internal::CaptureStderr();
  set_log_file(path);
  log_info("inside");
  set_log_file("");
  log_info("outside");
  static_cast<void>(::testing::internal::GetCapturedStderr());
  const std::string text = read_text(path);
  EXPECT_TRUE(text.starts_with("before\n2")) << text;
  EXPECT_TRUE(text.ends_with(" inside\n")) << text;
  EXPECT_EQ(testing::error_of<Error>([&] { set_log_file((folder / "no/such/folder.txt").string()); }),
            (folder / "no/such/folder.txt").string() + ": cannot be opened for the log");
}

TEST(Log, AQuietScreenKeepsTheFileWhole) {
  const testing::TempFolder folder;
  const std::string path = (folder / "log.txt").string();
  set_log_file(path);
  set_screen_level(LogLevel::warn);
  const std::string screen = lines_written({});
  set_screen_level(LogLevel::debug);
  set_log_file("");
  EXPECT_EQ(screen.find("i2"), std::string::npos);
  EXPECT_NE(screen.find("warning w3\n"), std::string::npos);
  EXPECT_NE(read_text(path).find("i2\n"), std::string::npos);
}

TEST(Log, ParsesLevelNames) {
  EXPECT_EQ(parse_log_level("error"), LogLevel::error);
  EXPECT_EQ(testing::error_of([] { return parse_log_level("loud"); }), "log level: expected debug, info, warn or error, found \"loud\"");
}

}  // namespace
}  // namespace kedge
