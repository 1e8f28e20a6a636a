#include "kedge/core/gzip.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::TempFolder;

// "hello\n" packed by gzip -n.
const std::string kHello("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\x00\x20\x30\x3a\x36\x06\x00\x00\x00", 26);

TEST(Gzip, IsKnownByItsFirstBytes) {
  EXPECT_TRUE(is_gzip(kHello));
  EXPECT_FALSE(is_gzip("{\"text\": 1}"));
  EXPECT_FALSE(is_gzip("\x1f"));
}

TEST(Gzip, UnpacksAFileAndSeveralMembersInARow) {
  const TempFolder folder;
  EXPECT_EQ(map_unpacked(folder.file("a.gz", kHello)).text(), "hello\n");
  EXPECT_EQ(map_unpacked(folder.file("b.gz", kHello + kHello)).text(), "hello\nhello\n");
}

TEST(Gzip, BrokenFilesAreRefusedByName) {
  const TempFolder folder;
  const auto error = [&](const std::string& bytes) {
    return error_of([&] { static_cast<void>(map_unpacked(folder.file("x.gz", bytes))); }).substr((folder / "x.gz").string().size());
  };
  EXPECT_EQ(error(kHello.substr(0, 20)), ": not valid gzip: it is cut off");
  EXPECT_EQ(error(kHello + "garbage"), ": not valid gzip: incorrect header check");
  std::string flipped = kHello;
  flipped[19] = '\x7f';  // the check sum
  EXPECT_EQ(error(flipped), ": not valid gzip: incorrect data check");
}

TEST(Gzip, LeavesNoTemporaryFileBehind) {
  const TempFolder folder;
  const auto packed = folder.file("a.gz", kHello);
  const TempFolder temporary;
  setenv("TMPDIR", temporary.path().c_str(), 1);
  const MappedFile mapped = map_unpacked(packed);
  unsetenv("TMPDIR");
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
  EXPECT_EQ(mapped.text(), "hello\n");
}

}  // namespace
}  // namespace kedge
