#include "kedge/core/fingerprint.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

std::string of(std::initializer_list<std::string_view> parts) {
  Fingerprint fingerprint;
  for (const std::string_view part : parts) fingerprint.add(part);
  return fingerprint.hex();
}

TEST(Fingerprint, IsFnv1aOfLengthsAndBytes) {
  EXPECT_EQ(Fingerprint().hex(), "cbf29ce484222325");  // FNV's own start value
  Fingerprint eight;
  eight.add(int64_t{0});
  // Eight zero bytes: the start value times the prime 0x100000001b3, eight times over, modulo 2^64.
  uint64_t expected = 0xCBF29CE484222325U;
  for (int i = 0; i < 8; ++i) expected *= 0x100000001B3U;
  EXPECT_EQ(std::stoull(eight.hex(), nullptr, 16), expected);
}

TEST(Fingerprint, SeesWhereOnePartEnds) {
  EXPECT_NE(of({"ab", "c"}), of({"a", "bc"}));
  EXPECT_NE(of({"ab"}), of({"ab", ""}));
  EXPECT_EQ(of({"ab", "c"}), of({"ab", "c"}));
}

}  // namespace
}  // namespace kedge
