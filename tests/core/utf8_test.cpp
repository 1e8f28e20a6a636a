#include "kedge/core/utf8.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(Utf8, EveryCodePointSurvivesTheWayThereAndBack) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    utf8_append(text, code);
    ASSERT_EQ(utf8_length(text), text.size()) << std::hex << static_cast<uint32_t>(code);
    ASSERT_EQ(utf8_decode(text), code);
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndHalves) {
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xFF"})
    EXPECT_EQ(utf8_length(bad), 0U) << bad;
}

TEST(Utf8, FindsWhereTextStopsBeingValid) {
  EXPECT_EQ(utf8_valid_prefix("h\xC3\xA9llo"), 6U);
  EXPECT_EQ(utf8_valid_prefix("ab\xFF"
                              "c"),
            2U);
  EXPECT_EQ(utf8_valid_prefix(""), 0U);
}

TEST(Utf8, ReplacesOnlyTheBrokenBytes) { EXPECT_EQ(utf8_replace_invalid("a\xFF\xC3\xA9\xC3"), "a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD"); }

TEST(Utf8, ReplacesTheStartOfACharacterAsOne) {
  EXPECT_EQ(utf8_replace_invalid("a\xE2\x82z"), "a\uFFFDz");
  EXPECT_EQ(utf8_replace_invalid("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(utf8_replace_invalid("\xE2\x82\xE2\x82"), "\uFFFD\uFFFD");
  EXPECT_EQ(utf8_replace_invalid("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // no start of any character
  EXPECT_EQ(utf8_replace_invalid("\xC0\x80\xFF"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(utf8_replace_invalid("fine \u20AC"), "fine \u20AC");
}

TEST(Utf8, WhatSteersATerminalGoes) {
  EXPECT_EQ(utf8_without_controls("a\x1b]0;title\x07"
                                  "b\x1b[2J\r\tc\n\x7f\xC2\x9B"
                                  "31m\u20AC\xC2\xA0"),
            "a]0;titleb[2J\tc\n31m\u20AC\xC2\xA0");
  EXPECT_EQ(utf8_without_controls("\xC2"), "\xC2");
}

}  // namespace
}  // namespace kedge
