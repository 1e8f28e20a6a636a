#include "kedge/text/tokenizer/response_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/text/tokenizer/byte_tokenizer.h"

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TempFolder;

constexpr TokenId kEos = 258;  // of the byte tokenizer

TokenIds bytes_of(std::string_view text) { return make_byte_tokenizer()->encode(text); }

// Words carry their blank in front, and the decoder takes the first one off, as SentencePiece has it.
std::unique_ptr<Tokenizer> blank_tokenizer() {
  const TempFolder folder;
  folder.file("tokenizer.json", R"({"added_tokens": [{"id": 5, "content": "<end>", "special": false}], "decoder": {"type": "Sequence",
    "decoders": [{"type": "Replace", "pattern": {"String": "_"}, "content": " "}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "vocab": {"_": 0, "a": 1, "b": 2, "_a": 3, "c": 4}, "merges": ["_ a"]}})");
  folder.file("generation_config.json", R"({"eos_token_id": [5, 2]})");
  return load_tokenizer(folder.path());
}

TEST(ResponseText, TheEndOfTextIsNoPartOfIt) {
  const auto tokenizer = make_byte_tokenizer();
  const ResponseText responses(*tokenizer, {});
  EXPECT_THAT(responses.end_ids(), ElementsAre(kEos));
  EXPECT_FALSE(responses.ends());
  EXPECT_EQ(responses.text(bytes_of("ab"), TokenIds{'c', 'd', kEos}), "cd");
}

TEST(ResponseText, AStringOfTheUsersEndsAndStays) {
  const auto tokenizer = make_byte_tokenizer();
  const ResponseText responses(*tokenizer, std::vector<std::string>{"#", "END"});
  EXPECT_THAT(responses.end_ids(), ElementsAre(kEos, '#'));
  EXPECT_FALSE(responses.ends()(bytes_of("an EN")));
  EXPECT_TRUE(responses.ends()(bytes_of("an END")));
  EXPECT_EQ(responses.text({}, bytes_of("an END")), "an END");
}

// A judge must not take it for the empty text, or for one without them.
TEST(ResponseText, AJudgeSeesSpecialTokensInsideAResponse) {
  const auto tokenizer = make_byte_tokenizer();
  const ResponseText responses(*tokenizer, std::vector<std::string>{"END"});
  const TokenId bos = tokenizer->special().bos.value();
  const std::string spelt = tokenizer->token_of(bos);
  EXPECT_EQ(responses.judged_text({}, TokenIds{bos, 'a', bos, kEos}, true), spelt + "a" + spelt);
  EXPECT_EQ(responses.judged_text({}, TokenIds{'a', kEos}, true), "a");
  EXPECT_EQ(responses.judged_text({}, TokenIds{kEos}, true), "");
  EXPECT_EQ(responses.judged_text({}, TokenIds{bos, kEos}, true), spelt);
  EXPECT_EQ(responses.judged_text({}, TokenIds{'a', bos}, false), "a" + spelt);
  EXPECT_EQ(responses.judged_text({}, bytes_of("an END"), true), "an ");
  EXPECT_EQ(responses.judged_text({}, bytes_of("an END"), false), "an END");
}

TEST(ResponseText, PromptAndResponseAreOneText) {
  const auto tokenizer = blank_tokenizer();
  const ResponseText responses(*tokenizer, {});
  EXPECT_EQ(tokenizer->decode(TokenIds{3}), "a") << "the toy has to take a blank off";
  EXPECT_EQ(responses.text(TokenIds{1}, TokenIds{3, 1}), " aa");
  EXPECT_EQ(responses.text(TokenIds{0}, TokenIds{1}), "a");
  EXPECT_EQ(responses.text({}, TokenIds{3}), "a");
}

TEST(ResponseText, AllEndsOfTheFolderCountAlsoThoseThatAreNotMarkedAsSpecial) {
  const auto tokenizer = blank_tokenizer();
  const ResponseText responses(*tokenizer, {});
  EXPECT_THAT(responses.end_ids(), ElementsAre(5, 2));
  EXPECT_EQ(responses.num_eos(), 2U);
  EXPECT_EQ(responses.text(TokenIds{1}, TokenIds{1, 5}), "a");
  EXPECT_EQ(responses.text(TokenIds{2, 1}, TokenIds{1, 2}), "a") << "in the prompt it is text";
}

// Those that the least length holds back are the first ones.
TEST(ResponseText, TheFoldersOwnEndsComeBeforeTheUsers) {
  const auto tokenizer = blank_tokenizer();
  const ResponseText responses(*tokenizer, std::vector<std::string>{"c", "b"});
  EXPECT_THAT(responses.end_ids(), ElementsAre(5, 2, 4));
  EXPECT_EQ(responses.num_eos(), 2U);
}

TEST(ResponseText, IdsOfAPromptThatTheTokenizerLacksSayNothing) {
  const auto tokenizer = make_byte_tokenizer();
  EXPECT_EQ(ResponseText(*tokenizer, {}).text(TokenIds{'a', 300}, TokenIds{'b', 'c'}), "bc");
}

TEST(ResponseText, ATokenizerWithoutAnEndOfTextNeedsNone) {
  const TempFolder folder;
  folder.file("tokenizer.json", R"({"added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_THAT(ResponseText(*tokenizer, {}).end_ids(), IsEmpty());
  EXPECT_EQ(ResponseText(*tokenizer, {}).num_eos(), 0U);
}

TEST(ResponseStream, PiecesAreWholeCharactersAndGiveTheWholeText) {
  const auto tokenizer = make_byte_tokenizer();
  const ResponseText responses(*tokenizer, {});
  ResponseStream stream(responses, bytes_of("\u00e9"));
  std::vector<std::string> pieces;
  for (const TokenId id : bytes_of("x\u00e9")) pieces.push_back(stream.feed(id));
  EXPECT_THAT(pieces, ElementsAre("x", "", "\u00e9"));
  EXPECT_EQ(stream.feed(0xC3), "");
  EXPECT_EQ(stream.flush(), "\xC3") << "a character that never got whole";
}

TEST(ResponseStream, APromptThatEndsInTheMiddleOfACharacterIsContinued) {
  const auto tokenizer = make_byte_tokenizer();
  const ResponseText responses(*tokenizer, {});
  EXPECT_EQ(responses.text(TokenIds{'a', 0xC3}, TokenIds{0xA9, 'b'}),
            "\xA9"
            "b");
}

}  // namespace
}  // namespace kedge
