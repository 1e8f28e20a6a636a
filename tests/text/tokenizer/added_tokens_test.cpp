#include "kedge/text/tokenizer/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/toy_tokenizer.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::parse;

AddedToken token(std::string content, bool special = false) {
  AddedToken made;
  made.content = std::move(content);
  made.special = special;
  return made;
}

// Each stretch as its text, with the id behind it where it is a token.
std::vector<std::string> split(const AddedTokens& tokens, std::string_view text, AddedTokens::Pass pass = AddedTokens::Pass::raw,
                               bool match_special = true) {
  std::vector<std::string> found;
  tokens.split(text, pass, match_special, [&](const AddedTokens::Stretch& stretch) {
    const std::string_view part = text.substr(stretch.start, stretch.end - stretch.start);
    found.push_back(stretch.id ? str(part, "=", *stretch.id) : std::string(part));
  });
  return found;
}

AddedTokens added(const std::vector<AddedToken>& list) {
  AddedTokens tokens;
  tokens.add(list, Vocab(), Normalizer());
  return tokens;
}

TEST(AddedTokens, FindsTheLeftmostAndThenTheLongest) {
  const AddedTokens tokens = added({token("<a>"), token("<a><b>"), token("b>")});
  EXPECT_THAT(split(tokens, "x<a><b>y<a>"), ElementsAre("x", "<a><b>=1", "y", "<a>=0"));
  EXPECT_THAT(split(tokens, "plain"), ElementsAre("plain"));
  EXPECT_THAT(split(tokens, ""), ElementsAre());
}

TEST(AddedTokens, TakesWhiteSpaceAlong) {
  AddedToken left = token("<l>"), right = token("<r>");
  left.lstrip = true;
  right.rstrip = true;
  const AddedTokens tokens = added({left, right});
  EXPECT_THAT(split(tokens, "a \u3000<l> b"), ElementsAre("a", " \u3000<l>=0", " b"));
  EXPECT_THAT(split(tokens, "a <r> \n b"), ElementsAre("a ", "<r> \n =1", "b"));
  EXPECT_THAT(split(tokens, "<r> <l>"), ElementsAre("<r> =1", "<l>=0"));  // the space is gone already
}

TEST(AddedTokens, SingleWordsStandAlone) {
  AddedToken single = token("cat");
  single.single_word = true;
  const AddedTokens tokens = added({single});
  EXPECT_THAT(split(tokens, "cat, cats, bobcat cat"), ElementsAre("cat=0", ", cats, bobcat ", "cat=0"));
}

TEST(AddedTokens, NormalizedOnesAreFoundInTheirNormalizedSpelling) {
  const Json lower = parse(R"({"type": "Lowercase"})");
  AddedToken normalized = token("YES");
  normalized.normalized = true;
  AddedTokens tokens;
  tokens.add({normalized, token("NO")}, Vocab(), Normalizer(&lower, "here"));
  EXPECT_THAT(split(tokens, "YES NO", AddedTokens::Pass::raw), ElementsAre("YES ", "NO=1"));
  EXPECT_THAT(split(tokens, "yes no", AddedTokens::Pass::normalized), ElementsAre("yes=0", " no"));
  EXPECT_EQ(tokens.decoded_form(0), "yes");
  EXPECT_EQ(tokens.decoded_form(1), "NO");
  EXPECT_EQ(tokens.token(0).content, "YES");
}

TEST(AddedTokens, SpecialOnesCanBeLeftAsText) {
  const AddedTokens tokens = added({token("<s>", true), token("<t>")});
  EXPECT_THAT(split(tokens, "<s><t>", AddedTokens::Pass::raw, false), ElementsAre("<s>", "<t>=1"));
  EXPECT_TRUE(tokens.is_special(0));
  EXPECT_FALSE(tokens.is_special(1));
  EXPECT_FALSE(tokens.is_special(7));
}

TEST(AddedTokens, IdsFollowTheVocabulary) {
  Vocab vocab;
  ASSERT_TRUE(vocab.add("a", 0));
  ASSERT_TRUE(vocab.add("b", 1));
  AddedTokens tokens;
  tokens.add({token("b"), token("new"), token("newer")}, vocab, Normalizer());
  EXPECT_EQ(tokens.find("b"), 1);
  EXPECT_EQ(tokens.find("new"), 2);
  EXPECT_EQ(tokens.find("newer"), 3);
  EXPECT_EQ(tokens.end_id(), 4);
  tokens.add({token("new", true), token("newest"), token("")}, vocab, Normalizer());
  EXPECT_TRUE(tokens.is_special(2)) << "new properties for a token that is there";
  EXPECT_EQ(tokens.find("newest"), 4);
  EXPECT_EQ(tokens.find(""), std::nullopt);
}

TEST(AddedTokens, ReadsItsFields) {
  const AddedToken all = AddedToken::from_json(
      parse(R"({"content": "x", "single_word": true, "lstrip": true, "rstrip": true, "normalized": true, "special": true})"), "here");
  EXPECT_TRUE(all.single_word && all.lstrip && all.rstrip && all.normalized && all.special);
  EXPECT_TRUE(AddedToken::from_json(parse(R"({"content": "x"})"), "here").normalized);
  EXPECT_FALSE(AddedToken::from_json(parse(R"({"content": "x", "special": true})"), "here").normalized);
}

}  // namespace
}  // namespace kedge
