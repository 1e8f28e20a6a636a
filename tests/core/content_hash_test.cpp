#include "kedge/core/content_hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::HasSubstr;
using testing::TempFolder;

constexpr size_t kPiece = size_t{4} << 20U;  // what is hashed apart

std::string bytes_of(size_t size) {
  std::string bytes(size, '\0');
  uint64_t state = 88172645463325252U;
  for (char& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<char>(state >> 56U);
  }
  return bytes;
}

// Checkpoints that are on disk were hashed so: these may never change.
TEST(ContentHash, IsTheSameOnEveryMachineAndForEver) {
  EXPECT_EQ(content_hash(""), "8b2885fed68b09e9");
  EXPECT_EQ(content_hash("kedge"), "143ca1f065c8aad0");
  EXPECT_EQ(content_hash(bytes_of(1000)), "20aa3cb9a1c09158");
  EXPECT_EQ(content_hash(bytes_of(kPiece + 5)), "817db8e4a6df21c6");
}

// And no two of them look the same: the second flipped bit does not undo the first.
TEST(ContentHash, EveryFlippedBitIsSeen) {
  for (const size_t size : {1U, 7U, 8U, 63U, 64U, 65U, 200U}) {
    const std::string bytes = bytes_of(size);
    std::set<std::string> hashes = {content_hash(bytes)};
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      std::string other = bytes;
      other[bit / 8] = static_cast<char>(static_cast<unsigned char>(other[bit / 8]) ^ (1U << (bit % 8)));
      hashes.insert(content_hash(other));
    }
    EXPECT_EQ(hashes.size(), 8 * size + 1) << size;
  }
}

TEST(ContentHash, LengthAndOrderCount) {
  std::set<std::string> hashes;
  for (size_t size = 0; size < 200; ++size) hashes.insert(content_hash(std::string(size, '\0')));
  EXPECT_EQ(hashes.size(), 200U);
  const std::string a = bytes_of(64), b(64, 'b');
  EXPECT_NE(content_hash(a + b), content_hash(b + a));
  const std::string piece = bytes_of(kPiece), other(kPiece, 'x');
  EXPECT_NE(content_hash(piece + other), content_hash(other + piece));
}

TEST(ContentHash, OfAFileIsThatOfItsBytesByAnyNumberOfThreads) {
  const TempFolder temp;
  for (const size_t size : {size_t{0}, size_t{5}, kPiece - 1, kPiece, kPiece + 1, 3 * kPiece + 100}) {
    const std::string bytes = bytes_of(size);
    write_atomic(temp / "file", bytes);
    for (const int threads : {1, 2, 5}) EXPECT_EQ(file_content_hash(temp / "file", threads), content_hash(bytes)) << size << " " << threads;
  }
}

TEST(ContentHash, AFileWithOtherBytesThanWereSavedIsDamaged) {
  const TempFolder temp;
  write_atomic(temp / "file", "0123");
  EXPECT_EQ(file_damage(temp.path(), "file", content_hash("0123")), "");
  EXPECT_EQ(file_damage(temp.path(), "file", content_hash("0122")), "file: its bytes are not those that were saved");
}

TEST(ContentHash, AFileThatIsNotThereIsNamed) {
  const TempFolder temp;
  EXPECT_THAT(testing::error_of([&] { return file_content_hash(temp / "none"); }), HasSubstr("none: cannot be read"));
}

}  // namespace
}  // namespace kedge
