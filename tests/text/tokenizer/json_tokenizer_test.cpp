#include "kedge/text/tokenizer/json_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "kedge/text/unicode/normal_form.h"

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/toy_tokenizer.h"

namespace kedge {
namespace {

using testing::assets_folder;
using ::testing::ElementsAre;
using testing::toy;
using testing::toy_bpe;

TEST(JsonTokenizer, EncodesAndDecodes) {
  const JsonTokenizer tokenizer = toy_bpe();
  EXPECT_THAT(tokenizer.encode("abc ab a<|end|>"), ElementsAre(5, 3, 4, 6, 7));
  EXPECT_EQ(tokenizer.decode(TokenIds{5, 3, 4, 6, 7}), "abc ab a<|end|>");
  EXPECT_EQ(tokenizer.decode(TokenIds{5, 3, 4, 6, 7}, SpecialTokens::skip), "abc ab a");
  EXPECT_EQ(tokenizer.vocab_size(), 8);
  EXPECT_EQ(tokenizer.token_of(6), "\u0120a");
  EXPECT_EQ(tokenizer.token_of(7), "<|end|>");
  EXPECT_EQ(tokenizer.token_of(99), "");
  EXPECT_EQ(tokenizer.id_of("<|end|>"), 7);
  EXPECT_EQ(tokenizer.id_of("abc"), 5);
  EXPECT_EQ(tokenizer.id_of("x"), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(7));
  EXPECT_FALSE(tokenizer.is_special(5));
}

TEST(JsonTokenizer, SpecialTokensInTextCanBeText) {
  const JsonTokenizer tokenizer = toy_bpe();
  EXPECT_THAT(tokenizer.encode("a<|end|>", {.match_special = false}), ElementsAre(0));  // the other characters are not in this vocabulary
}

TEST(JsonTokenizer, FingerprintsTellWhatMatters) {
  const std::string model = R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]})";
  const std::string base = toy("{" + model + "}").fingerprint();
  EXPECT_EQ(toy("{" + model + R"(, "decoder": {"type": "Fuse"}})").fingerprint(), base);
  EXPECT_NE(toy("{" + model + R"(, "added_tokens": [{"id": 3, "content": "x", "special": true}]})").fingerprint(), base);
  EXPECT_NE(toy(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": []}})").fingerprint(), base);
  EXPECT_NE(toy(R"({"model": {"type": "BPE", "vocab": {"a": 1, "b": 0, "ab": 2}, "merges": [["a", "b"]]}})").fingerprint(), base);
}

TEST(JsonTokenizer, ReadsOldSpellings) {
  // No type, merges as lines with a version line among them.
  EXPECT_THAT(toy(R"({"model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["#version: 0.2", "a b"]}})").encode("ab"), ElementsAre(2));
  EXPECT_THAT(toy(R"({"model": {"unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5]]}})").encode("ax"), ElementsAre(1, 0));
}

TEST(JsonTokenizer, NamesWhatItLacksAndWhatIsWrong) {
  const auto error = [](std::string_view json) { return testing::error_of([&] { return toy(json).vocab_size(); }); };
  EXPECT_EQ(error("[]"), "toy.json: expected an object, found []");
  EXPECT_EQ(error("{}"), "toy.json: no \"model\" field");
  EXPECT_EQ(error(R"({"model": {"type": "WordPiece", "vocab": {}}})"),
            "toy.json: model.type: the model type \"WordPiece\" is not supported; expected BPE or Unigram");
  EXPECT_EQ(error(R"({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})"),
            "toy.json: model.type: the model type \"WordLevel\" is not supported; expected BPE or Unigram");
  EXPECT_EQ(error(R"({"model": {"vocab": {}}})"),
            "toy.json: model.type: the model type \"WordPiece\" is not supported; expected BPE or Unigram");
  EXPECT_EQ(error(R"({"version": "2.0", "model": {"vocab": {}, "merges": []}})"), "toy.json: version: expected \"1.0\", found \"2.0\"");
  EXPECT_EQ(error(R"({"model": {"vocab": {"a": "x"}, "merges": []}})"), "toy.json: model.vocab[\"a\"]: expected an integer, found \"x\"");
  EXPECT_EQ(error(R"({"model": {"vocab": {"a": -1}, "merges": []}})"), "toy.json: model.vocab[\"a\"]: -1 is not a token id");
  EXPECT_EQ(error(R"({"model": {"vocab": {"a": 0, "b": 0}, "merges": []}})"),
            "toy.json: model.vocab[\"b\"]: the id 0 belongs to another token already");
  EXPECT_EQ(error(R"({"model": {"vocab": {"a": 0}, "merges": ["a"]}})"),
            "toy.json: model.merges[0]: expected two tokens and a space, found \"a\"");
  EXPECT_EQ(error(R"({"model": {"vocab": {"a": 0}, "merges": [["a", 1]]}})"),
            "toy.json: model.merges[0]: expected two tokens, found [\"a\", 1]");
  EXPECT_EQ(error(R"({"model": {"vocab": {"a": 0}, "merges": [["a", "a"]]}})"),
            "toy.json: model.merges[0]: the token \"aa\" is not in the vocabulary");
  EXPECT_EQ(error(R"({"model": {"vocab": {}, "merges": [], "dropout": 0.1}})"),
            "toy.json: model.dropout: random merges are not supported; expected null or 0");
  EXPECT_EQ(error(R"({"model": {"vocab": {}, "merges": []}, "added_tokens": [{"content": "x"}]})"),
            "toy.json: added_tokens[0]: no \"id\" field");
  EXPECT_EQ(error(R"({"pre_tokenizer": {"type": "Odd"}, "model": {"vocab": {}, "merges": []}})"),
            "toy.json: pre_tokenizer: the pre-tokenizer type \"Odd\" is not supported");
}

TEST(JsonTokenizer, ScoresAreReadAsTheTokenizersPackageReadsThem) {
  // Two ways to cut "caaa" have the same sum but for the rounding of these scores; tokenizers 0.23.3 answers [1, 3, 2].
  const JsonTokenizer tokenizer = toy(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0],
    ["c", -11.529338502814852], ["a", -11.647966105213861], ["aa", -7.694708824151331]]}})");
  EXPECT_THAT(tokenizer.encode("caaa"), ElementsAre(1, 3, 2));
}

// --- text-to-ids vectors made by others -------------------------------------------------------------------------
std::vector<std::string> strings_of(const Path& file) {
  const std::string all = read_text(file);
  const std::string mark = "\n__ggml_vocab_test__\n";
  std::vector<std::string> strings;
  for (size_t start = 0, end = all.find(mark); end != std::string::npos; start = end + mark.size(), end = all.find(mark, start))
    strings.push_back(all.substr(start, end - start));
  return strings;
}

void reproduce(const char* vectors, const char* tokenizer_file, bool nfc) {
  const Path path = assets_folder() / "tokenizers" / tokenizer_file;
  const JsonTokenizer tokenizer(Json::parse(read_text(path), path.string()), path.string());
  const Path folder = assets_folder() / "tokenizers/vectors";
  std::istringstream lines(read_text(folder / (std::string(vectors) + ".out")));
  const auto strings = strings_of(folder / (std::string(vectors) + ".inp"));
  ASSERT_EQ(strings.size(), 46U);
  for (const std::string& text : strings) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream numbers(line);
    TokenIds expected;
    for (TokenId id = 0; numbers >> id;) expected.push_back(id);
    EXPECT_EQ(tokenizer.encode(text), expected) << text;
    EXPECT_EQ(tokenizer.decode(expected), nfc ? to_normal_form(text, NormalForm::nfc) : text);
  }
}

TEST(JsonTokenizer, ReproducesTheVectorsOfGpt2) {
  KEDGE_NEEDS_ASSET("tokenizers");
  reproduce("ggml-vocab-gpt-2.gguf", "gpt2/tokenizer.json", false);
}

TEST(JsonTokenizer, ReproducesTheVectorsOfQwen2) {
  KEDGE_NEEDS_ASSET("tokenizers");
  reproduce("ggml-vocab-qwen2.gguf", "qwen2.5/tokenizer.json", true);
}

TEST(JsonTokenizer, ReproducesTheVectorsOfGptNeoX) {
  KEDGE_NEEDS_ASSET("tokenizers");
  reproduce("ggml-vocab-mpt.gguf", "gpt-neox/20B_tokenizer.json", true);
}

}  // namespace
}  // namespace kedge
