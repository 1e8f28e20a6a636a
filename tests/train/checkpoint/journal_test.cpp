#include "kedge/train/checkpoint/journal.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::TempFolder;
using Records = std::vector<std::string>;

const Records kThree = {"first", std::string("\0\n\xFF second", 10), std::string(100, 'x')};

Records records_of(const Journal& journal) {
  const MappedFile file(journal.path());
  const std::vector<std::string_view> records = read_journal(file.text()).records;
  return {records.begin(), records.end()};
}

Records first(const Records& records, size_t count) { return {records.begin(), records.begin() + static_cast<int64_t>(count)}; }

std::string bytes_of(const Records& records) {
  const TempFolder temp;
  Journal journal(temp / "journal");
  for (const std::string& record : records) journal.append(record);
  return read_text(temp / "journal");
}

TEST(Journal, KeepsRecordsInTheirOrder) {
  const TempFolder temp;
  {
    Journal journal(temp / "journal");
    EXPECT_EQ(journal.size(), 0);
    for (const std::string& record : kThree) journal.append(record);
    EXPECT_EQ(records_of(journal), kThree);
  }
  Journal again(temp / "journal");
  EXPECT_EQ(again.size(), 3);
  again.append("");
  EXPECT_EQ(records_of(again), (Records{kThree[0], kThree[1], kThree[2], ""}));
}

TEST(Journal, ACutAnywhereLosesOnlyWhatWasNotWhole) {
  const std::string whole = bytes_of(kThree);
  std::vector<size_t> ends = {0};
  for (size_t i = 1; i <= kThree.size(); ++i) ends.push_back(bytes_of(first(kThree, i)).size());
  ASSERT_EQ(ends.back(), whole.size());
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    const TempFolder temp;
    size_t kept = 0;
    while (kept < kThree.size() && ends[kept + 1] <= cut) ++kept;
    Journal journal(temp.file("journal", whole.substr(0, cut)));
    EXPECT_EQ(records_of(journal), first(kThree, kept)) << cut;
    Records wanted = first(kThree, kept);
    wanted.emplace_back("after the crash");
    journal.append(wanted.back());
    EXPECT_EQ(records_of(Journal(temp / "journal")), wanted) << cut;
  }
}

TEST(Journal, ADamagedByteEndsTheJournalBeforeItsRecord) {
  const std::string whole = bytes_of(kThree);
  const size_t first_end = bytes_of(first(kThree, 1)).size(), second_end = bytes_of(first(kThree, 2)).size();
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    const size_t kept = at < first_end ? 0 : at < second_end ? 1 : 2;
    EXPECT_EQ(read_journal(damaged).records.size(), kept) << at;
  }
}

TEST(Journal, ATailOfZerosIsNoRecord) {
  const std::string whole = bytes_of(kThree);
  const JournalRecords found = read_journal(whole + std::string(4096, '\0'));
  EXPECT_EQ(found.records.size(), 3U);
  EXPECT_EQ(found.size, whole.size());
}

TEST(Journal, ALengthBeyondTheFileIsNotRead) {
  EXPECT_TRUE(read_journal(std::string(64, '\xFF')).records.empty());
  EXPECT_TRUE(read_journal("").records.empty());
}

TEST(Journal, ARecordThatDoesNotFitOnTheDiskIsNotThere) {
  const TempFolder temp;
  Journal journal(temp / "journal");
  journal.append("small");
  {
    const testing::FileSizeLimit limit(60);
    EXPECT_NE(error_of<Error>([&] { return journal.append(std::string(100, 'y')), 0; }).find("cannot be written"), std::string::npos);
  }
  EXPECT_EQ(journal.size(), 1);
  journal.append("after");
  EXPECT_EQ(records_of(Journal(temp / "journal")), (Records{"small", "after"}));
}

}  // namespace
}  // namespace kedge
