#include "kedge/metrics/jsonl_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <random>

#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::FileSizeLimit;
using testing::TempFolder;

Json numbered(int64_t number) {
  Json line;
  line.append("n", number);
  return line;
}

std::vector<int64_t> numbers_in(const Path& path) {
  std::vector<int64_t> numbers;
  for (const JsonlLine& line : read_jsonl(path)) numbers.push_back(line.value.at("n", "line").as_integer("n"));
  return numbers;
}

TEST(JsonlLog, LinesReadBackWithNumberAndOffset) {
  const TempFolder folder;
  JsonlLog file(folder / "f.jsonl");
  file.append(numbered(1));
  file.append("two\nlines");
  EXPECT_EQ(file.offset(), 9 + 13);
  EXPECT_EQ(read_text(folder / "f.jsonl"), "{\"n\": 1}\n\"two\\nlines\"\n");
  const auto lines = read_jsonl(folder / "f.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].number, 2);
  EXPECT_EQ(lines[1].offset, 9);
  EXPECT_EQ(lines[1].value, Json("two\nlines"));
}

TEST(JsonlLog, CutAtAnyByteItReadsBackWithoutTheTornLineAndGoesOn) {
  const TempFolder folder;
  const std::string whole = "{\"n\": 1}\n{\"n\": 2}\n{\"n\": 3}\n";
  for (size_t size = 0; size <= whole.size(); ++size) {
    const Path path = folder.file("f.jsonl", whole.substr(0, size));
    std::vector<int64_t> expected;
    for (size_t line = 1; line <= size / 9; ++line) expected.push_back(static_cast<int64_t>(line));
    EXPECT_EQ(numbers_in(path), expected) << size;
    ::testing::internal::CaptureStderr();
    JsonlLog(path).append(numbered(9));
    const std::string warning = ::testing::internal::GetCapturedStderr();
    expected.push_back(9);
    EXPECT_EQ(numbers_in(path), expected) << size;
    EXPECT_EQ(warning.find("dropping its " + std::to_string(size % 9) + " bytes") != std::string::npos, size % 9 != 0) << warning;
  }
}

TEST(JsonlLog, CanBeCutBackToARecordedOffset) {
  const TempFolder folder;
  JsonlLog file(folder / "f.jsonl");
  file.append(numbered(1));
  file.append(numbered(2));
  file.sync();
  const int64_t recorded = file.offset();
  file.append(numbered(3));
  file.cut_back(recorded);
  file.append(numbered(4));
  EXPECT_EQ(numbers_in(folder / "f.jsonl"), (std::vector<int64_t>{1, 2, 4}));
  file.cut_back(0);
  EXPECT_EQ(file.offset(), 0);
  EXPECT_TRUE(read_jsonl(folder / "f.jsonl").empty());
}

TEST(JsonlLog, AnOffsetOutsideTheFileOrInsideALineIsRefused) {
  const TempFolder folder;
  JsonlLog file(folder / "f.jsonl");
  file.append(numbered(1));
  const std::string path = (folder / "f.jsonl").string();
  EXPECT_EQ(error_of([&] { file.cut_back(10); }),
            path + ": cannot be truncated to byte 10: it has 9 bytes; was it changed since the checkpoint?");
  EXPECT_EQ(error_of([&] { file.cut_back(5); }),
            path + ": cannot be truncated to byte 5: no line ends there; was it changed since the checkpoint?");
  EXPECT_EQ(error_of([&] { file.cut_back(-1); }),
            path + ": cannot be truncated to byte -1: it has 9 bytes; was it changed since the checkpoint?");
  EXPECT_EQ(numbers_in(path), (std::vector<int64_t>{1}));
}

TEST(JsonlLog, ABrokenLineInTheMiddleIsNamed) {
  const TempFolder folder;
  const Path broken = folder.file("f.jsonl", "{\"n\": 1}\n{\"n\": x}\n{\"n\": 3}\n");
  EXPECT_THAT(error_of([&] { return read_jsonl(broken); }), ::testing::StartsWith(broken.string() + ":2:7: not valid JSON: "));
  const Path twice = folder.file("f.jsonl", "{\"n\": 1, \"n\": 2}\n");
  EXPECT_EQ(error_of([&] { return read_jsonl(twice); }), twice.string() + ":1: not valid JSON: key \"n\" occurs twice in one object");
  const Path empty = folder.file("f.jsonl", "1\n\n2\n");
  EXPECT_THAT(error_of([&] { return read_jsonl(empty); }), ::testing::StartsWith(empty.string() + ":2:1: not valid JSON: "));
}

TEST(JsonlLog, AFullDiskLosesTheLineButNotTheFile) {
  const TempFolder folder;
  JsonlLog file(folder / "f.jsonl");
  file.append(numbered(1));
  {
    const FileSizeLimit limit(1024);
    EXPECT_THROW(file.append(std::string(5000, 'x')), Error);
  }
  file.append(numbered(2));
  EXPECT_EQ(numbers_in(folder / "f.jsonl"), (std::vector<int64_t>{1, 2}));
}

// Appends numbered lines, telling each number through the pipe once the line is written, until it is killed.
[[noreturn]] void append_until_killed(const Path& path, int64_t next, int told) noexcept {
  JsonlLog file(path);
  const std::string ballast(20000, 'x');
  for (;; ++next) {
    Json line = numbered(next);
    line.append("ballast", ballast);
    file.append(line);
    if (::write(told, &next, sizeof next) != sizeof next) ::_exit(1);
  }
}

TEST(JsonlLog, AKilledWriterLosesNoLineItHadWritten) {
  const TempFolder folder;
  const Path path = folder / "f.jsonl";
  std::mt19937 random(1);  // NOLINT: the same moments each time, as far as the machine allows
  int64_t next = 0;
  int num_torn = 0;
  for (int round = 0; round < 60; ++round) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t writer = ::fork();
    if (writer == 0) append_until_killed(path, next, pipe[1]);
    ::close(pipe[1]);
    int64_t told = next - 1;
    const auto read_one = [&] { return ::read(pipe[0], &told, sizeof told) == sizeof told; };
    ASSERT_TRUE(read_one());
    ::usleep(std::uniform_int_distribution<useconds_t>(0, 3000)(random));
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    while (read_one()) {
    }
    ::close(pipe[0]);

    num_torn += read_text(path).back() == '\n' ? 0 : 1;
    ::testing::internal::CaptureStderr();
    const int64_t size = JsonlLog(path).offset();
    ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(static_cast<int64_t>(std::filesystem::file_size(path)), size);
    const std::vector<int64_t> found = numbers_in(path);
    ASSERT_FALSE(found.empty());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], static_cast<int64_t>(i));
    ASSERT_GE(found.back(), told) << "round " << round;
    next = found.back() + 1;
    if (next > 60) {  // keeps the test small
      std::filesystem::remove(path);
      next = 0;
    }
  }
  RecordProperty("torn_lines", num_torn);
}

}  // namespace
}  // namespace kedge
