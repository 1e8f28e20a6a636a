#include "kedge/text/tokenizer/sentencepiece_text.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

SentencePieceModel model_with(bool dummy_prefix, bool remove_extra) {
  SentencePieceModel model;
  model.pieces = {{"<unk>", 0, SentencePieceModel::PieceType::unknown}, {"<x y>", 0, SentencePieceModel::PieceType::user_defined}};
  model.add_dummy_prefix = dummy_prefix;
  model.remove_extra_whitespaces = remove_extra;
  return model;
}

std::string normalize(const SentencePieceModel& model, std::string_view text, bool dummy_prefix = true) {
  return SentencePieceText(model, "here").normalize(text, dummy_prefix);
}

TEST(SentencePieceText, WritesSpacesAsMarks) {
  EXPECT_EQ(normalize(model_with(true, false), "a  b "), "\u2581a\u2581\u2581b\u2581");
  EXPECT_EQ(normalize(model_with(false, false), "a b"), "a\u2581b");
  EXPECT_EQ(normalize(model_with(true, false), "a b", false), "a\u2581b");
  EXPECT_EQ(normalize(model_with(true, false), ""), "");
  SentencePieceModel plain = model_with(true, false);
  plain.escape_whitespaces = false;
  EXPECT_EQ(normalize(plain, "a b"), " a b");
}

TEST(SentencePieceText, RemovesExtraSpaces) {
  EXPECT_EQ(normalize(model_with(true, true), "  a   b  "), "\u2581a\u2581b");
  EXPECT_EQ(normalize(model_with(true, true), "   "), "");
}

TEST(SentencePieceText, PutsTheDummySpaceBehind) {
  SentencePieceModel model = model_with(true, true);
  model.whitespace_as_suffix = true;
  EXPECT_EQ(normalize(model, " a b"), "a\u2581b\u2581");
}

TEST(SentencePieceText, KnowsTheUserDefinedSymbols) {
  const SentencePieceModel model = model_with(false, false);
  EXPECT_EQ(SentencePieceText(model, "here").symbols().longest("<x y>z").value, 1);
}

}  // namespace
}  // namespace kedge
