#include "kedge/core/bit_hash.h"

#include <gtest/gtest.h>

#include <set>

namespace kedge {
namespace {

std::string some_bytes(size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * 7 + i / 3);
  return bytes;
}

TEST(BitHash, EveryFlippedBitChangesIt) {
  for (const size_t size : {1U, 4U, 37U, 64U}) {
    const std::string whole = some_bytes(size);
    std::set<std::string> hashes = {bit_hash(whole)};
    for (size_t bit = 0; bit < size * 8; ++bit) {
      std::string flipped = whole;
      flipped[bit / 8] = static_cast<char>(static_cast<unsigned char>(flipped[bit / 8]) ^ (1U << (bit % 8)));
      hashes.insert(bit_hash(flipped));
    }
    EXPECT_EQ(hashes.size(), size * 8 + 1) << size;
  }
}

TEST(BitHash, PlacesMatter) {
  const std::string words = "abcdefgh", swapped = "efghabcd";
  EXPECT_NE(bit_hash(words), bit_hash(swapped));
  // Changes that would add up to nothing if a place were only a number: one up, two down, one up.
  EXPECT_NE(bit_hash({"\1\0\0\0\3\0\0\0\1\0\0\0", 12}), bit_hash({"\2\0\0\0\1\0\0\0\2\0\0\0", 12}));
}

TEST(BitHash, LengthMatters) {
  EXPECT_NE(bit_hash({"ab\0\0", 4}), bit_hash("ab"));
  EXPECT_NE(bit_hash(""), bit_hash({"\0\0\0\0", 4}));
}

TEST(BitHash, PiecesAddUpToTheWhole) {
  const std::string bytes = some_bytes(103);
  for (const size_t words : {1U, 5U, 25U}) {
    uint64_t sum = 0;
    for (size_t begin = 0; begin < bytes.size(); begin += words * 4)
      sum += bit_sum(std::string_view(bytes).substr(begin, words * 4), begin / 4);
    EXPECT_EQ(bit_hash_text(sum, bytes.size()), bit_hash(bytes)) << words;
  }
}

// Worked out with Python's integers, so that files and weights keep their names on every machine.
TEST(BitHash, StaysWhatItIs) {
  EXPECT_EQ(bit_hash(""), "17fb89ee8a313dc5");
  EXPECT_EQ(bit_hash("kedge"), "c01701b0dd1a1eb7");
}

}  // namespace
}  // namespace kedge
