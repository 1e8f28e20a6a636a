#include "kedge/text/tokenizer/normalizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/toy_tokenizer.h"

namespace kedge {
namespace {

using testing::parse;

Normalizer::Result run(std::string_view json, std::string_view text) {
  const Json parsed = parse(json);
  return Normalizer(&parsed, "here").apply(text);
}

TEST(Normalizer, AppliesEachKind) {
  EXPECT_EQ(run(R"({"type": "NFC"})", "e\u0301").text, "\u00E9");
  EXPECT_EQ(run(R"({"type": "NFD"})", "\u00E9").text, "e\u0301");
  EXPECT_EQ(run(R"({"type": "NFKC"})", "\uFB01").text, "fi");
  EXPECT_EQ(run(R"({"type": "NFKD"})", "\u00B2").text, "2");
  EXPECT_EQ(run(R"({"type": "Lowercase"})", "AB").text, "ab");
  EXPECT_EQ(run(R"({"type": "Prepend", "prepend": "_"})", "a").text, "_a");
  EXPECT_EQ(run(R"({"type": "Prepend", "prepend": "_"})", "").text, "");
  EXPECT_EQ(run(R"({"type": "Replace", "pattern": {"String": " "}, "content": "__"})", "a b ").text, "a__b__");
  EXPECT_EQ(run(R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})", "a   b c").text, "a b c");
  EXPECT_EQ(run(R"({"type": "Strip", "strip_left": true, "strip_right": false})", " \u3000a ").text, "a ");
  EXPECT_EQ(run(R"({"type": "Strip", "strip_left": false, "strip_right": true})", " a b \u3000").text, " a b");
  EXPECT_EQ(run(R"({"type": "Strip", "strip_left": true, "strip_right": true})", "  ").text, "");
  EXPECT_EQ(run(R"({"type": "StripAccents"})", "e\u0301a").text, "ea");
  EXPECT_EQ(run(R"({"type": "Nmt"})", "a\u0001b\tc\u200B").text, "ab c ");
  EXPECT_EQ(run(R"({"type": "ByteLevel"})", " \u00E9").text, "\u0120\u00C3\u00A9");
}

TEST(Normalizer, AppliesASequenceInOrder) {
  EXPECT_EQ(run(R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
                    {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]})",
                "a b")
                .text,
            "\u2581a\u2581b");
}

TEST(Normalizer, NothingChangesWithoutOne) {
  EXPECT_TRUE(Normalizer().empty());
  EXPECT_TRUE(Normalizer(nullptr, "here").empty());
  const Json null;
  EXPECT_TRUE(Normalizer(&null, "here").empty());
  EXPECT_EQ(Normalizer().apply("x").text, "x");
}

TEST(Normalizer, SaysWhetherTheStartIsStillTheStart) {
  EXPECT_TRUE(run(R"({"type": "NFC"})", "e\u0301").keeps_start);
  EXPECT_TRUE(run(R"({"type": "Strip", "strip_left": true, "strip_right": true})", "a ").keeps_start);
  EXPECT_FALSE(run(R"({"type": "Strip", "strip_left": true, "strip_right": true})", " a").keeps_start);
  EXPECT_TRUE(run(R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": "_"})", " a").keeps_start);
  EXPECT_FALSE(run(R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": "_"})", "  a").keeps_start);
  EXPECT_FALSE(run(R"({"type": "Replace", "pattern": {"String": " "}, "content": ""})", " a").keeps_start);
}

TEST(Normalizer, RefusesToFillTheMemory) {
  Json::Array doubling;
  for (int i = 0; i < 60; ++i) doubling.push_back(parse(R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})"));
  const Json json(Json::Object{{"type", "Sequence"}, {"normalizers", std::move(doubling)}});
  EXPECT_EQ(testing::error_of([&] { return Normalizer(&json, "here").apply("a"); }),
            "the tokenizer's normalizer makes 2097152 bytes out of 1");
}

TEST(Normalizer, NamesWhatItLacks) {
  const auto error = [](std::string_view json) { return testing::error_of([&] { return run(json, ""); }); };
  EXPECT_EQ(error(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "BertNormalizer"}]})"),
            "here.normalizers[1]: the normalizer type \"BertNormalizer\" is not supported");
  EXPECT_EQ(error(R"({"type": "Replace", "content": ""})"), "here: no \"pattern\" field");
  EXPECT_EQ(error(R"({"type": "Strip", "strip_left": 1, "strip_right": true})"), "here.strip_left: expected true or false, found 1");
  EXPECT_EQ(error(R"json({"type": "Replace", "pattern": {"Regex": "(?<n>a)"}, "content": ""})json"),
            "here.pattern.Regex: the expression (?<n>a) uses (?< at byte 1, which is not supported");
}

}  // namespace
}  // namespace kedge
