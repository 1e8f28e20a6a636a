#include "kedge/metrics/tfevents.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace kedge {
namespace {

using namespace std::string_literals;

const std::string kWallTime = "\x09\x00\x00\x00\x00\x00\x00\xF8\x3F"s;  // field 1, fixed64: 1.5

// The values of RFC 3720, B.4, and the usual check string.
TEST(Crc32c, MatchesPublishedValues) {
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i), falling += static_cast<char>(31 - i);
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
  EXPECT_EQ(crc32c(falling), 0x113FDB5CU);
}

// 0xE3069283 rotated right by 15 is 0x2507C60D; plus 0xA282EAD8 it is 0xC78AB0E5.
TEST(TfRecord, FramesDataWithLengthAndMaskedChecksums) {
  const std::string record = tf_record("123456789");
  ASSERT_EQ(record.size(), 8U + 4 + 9 + 4);
  EXPECT_EQ(record.substr(0, 8), "\x09\0\0\0\0\0\0\0"s);
  EXPECT_EQ(record.substr(12, 9), "123456789");
  EXPECT_EQ(record.substr(21), "\xE5\xB0\x8A\xC7");
}

TEST(Events, AreTheProtocolBuffersWrittenOutByHand) {
  EXPECT_EQ(version_event(1.5), kWallTime + "\x10\x00"s + "\x1A\x0D" + "brain.Event:2");
  EXPECT_EQ(session_start_event(1.5, 300), kWallTime + "\x10\xAC\x02" + "\x3A\x02\x08\x01");
  // Summary 5 { Value 1 { tag 1 "a", simple_value 2 = 1.0f } }
  EXPECT_EQ(scalars_event(1.5, 3, {{"a", 1.0}}),
            kWallTime + "\x10\x03" + "\x2A\x0A" + "\x0A\x08" + "\x0A\x01" + "a" + "\x15\x00\x00\x80\x3F"s);
}

TEST(Events, StepsOfAnySizeAreVarints) {
  EXPECT_EQ(session_start_event(1.5, int64_t{1} << 40), kWallTime + "\x10\x80\x80\x80\x80\x80\x20" + "\x3A\x02\x08\x01");
  EXPECT_EQ(session_start_event(1.5, -1), kWallTime + "\x10\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01" + "\x3A\x02\x08\x01");
}

TEST(Events, ATextIsAStringTensorOfTheTextPlugin) {
  const std::string tensor = "\x08\x07"s + "\x12\x00"s + "\x42\x02" + "hi";
  const std::string metadata = "\x0A\x06\x0A\x04"s + "text" + "\x20\x02";
  const std::string value = "\x0A\x01t"s + "\x4A\x0A" + metadata + "\x42\x08" + tensor;
  ASSERT_EQ(metadata.size(), 10U);
  ASSERT_EQ(tensor.size(), 8U);
  ASSERT_EQ(value.size(), 25U);
  EXPECT_EQ(text_event(1.5, 3, "t", "hi"), kWallTime + "\x10\x03" + "\x2A\x1B" + "\x0A\x19" + value);
}

TEST(Events, ANumberBeyondA32BitFloatIsInfinite) {
  EXPECT_EQ(scalars_event(1.5, 3, {{"a", 1e300}}), scalars_event(1.5, 3, {{"a", std::numeric_limits<double>::infinity()}}));
}

TEST(Events, TextThatIsNotUtf8IsRepaired) {
  EXPECT_NE(scalars_event(1.5, 3, {{"a\xFF", 1}}).find("a\xEF\xBF\xBD"), std::string::npos);
  EXPECT_NE(text_event(1.5, 3, "t\xFF", "x\xC3").find("t\xEF\xBF\xBD"), std::string::npos);
  EXPECT_NE(text_event(1.5, 3, "t\xFF", "x\xC3").find("x\xEF\xBF\xBD"), std::string::npos);
}

}  // namespace
}  // namespace kedge
