#include "kedge/text/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "kedge/text/tokenizer/byte_tokenizer.h"

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_tokenizer.h"

namespace kedge {
namespace {

using testing::assets_folder;
using ::testing::ElementsAre;
using testing::TempFolder;

constexpr const char* kToyJson = R"({"added_tokens": [{"id": 3, "content": "<s>", "special": true, "normalized": false}],
  "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
                     "special_tokens": {"<s>": {"ids": [3]}}},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}, "decoder": {"type": "Fuse"}})";

TEST(Tokenizer, RefusesWhatIsNotUtf8ByName) {
  const auto tokenizer = make_byte_tokenizer();
  EXPECT_EQ(testing::error_of([&] { return tokenizer->encode("ab\xFF"); }), "cannot encode: the text is not UTF-8 at byte 2");
  EXPECT_EQ(testing::error_of([&] { return tokenizer->encode("\xED\xA0\x80"); }), "cannot encode: the text is not UTF-8 at byte 0");
  EXPECT_THAT(tokenizer->encode(std::string("a\0b", 3)), ElementsAre('a', 0, 'b'));
}

TEST(Tokenizer, DecodesToBytesAndToText) {
  const auto tokenizer = make_byte_tokenizer();
  EXPECT_EQ(tokenizer->decode(TokenIds{'a', 0xE2, 0x82, 'b'}),
            "a\xE2\x82"
            "b");
  EXPECT_EQ(tokenizer->decode_text(TokenIds{'a', 0xE2, 0x82, 'b'}), "a\uFFFDb");
  EXPECT_EQ(testing::error_of([&] { return tokenizer->decode(TokenIds{300}); }),
            "cannot decode: 300 is not an id of this vocabulary of 259");
}

// Many short words, so that the threads' word caches fill, and each thread in another order.
TEST(Tokenizer, SeveralThreadsGetTheSameIds) {
  const auto tokenizer = testing::toy_bpe();
  std::vector<std::string> texts;
  for (int i = 0; i < 2000; ++i) texts.push_back(str(i % 7 == 0 ? "abc<|end|>" : "ab", " a", std::string(i % 40, 'c'), " ab abc", i % 3));
  std::vector<TokenIds> wanted;
  for (const auto& text : texts) wanted.push_back(testing::toy_bpe().encode(text));
  std::vector<std::vector<TokenIds>> found(4, std::vector<TokenIds>(texts.size()));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < texts.size(); ++i) {
        const size_t row = (i * 7 + t * 500) % texts.size();
        found[t][row] = tokenizer.encode(texts[row]);
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& ids : found) EXPECT_EQ(ids, wanted);
}

TEST(LoadTokenizer, TokenizerJsonDecidesWhichSpecialTokensTextGets) {
  const TempFolder folder;
  folder.file("tokenizer.json", kToyJson);
  folder.file("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": false, "add_eos_token": true})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(2));
  EXPECT_THAT(tokenizer->encode("ab", {.add_special = true}), ElementsAre(3, 2))
      << "as in transformers, add_*_token is for files without a post-processor";
  EXPECT_EQ(tokenizer->special().bos, 3);
  EXPECT_EQ(tokenizer->special().eos, 4) << "a named token that the vocabulary lacks is added behind it";
  EXPECT_EQ(tokenizer->special().pad, std::nullopt);
  EXPECT_THAT(tokenizer->special().stop, ElementsAre(4));
  EXPECT_THAT(tokenizer->encode("ab</s>"), ElementsAre(2, 4));
}

TEST(LoadTokenizer, NumbersStandInWhereNoNameIsGiven) {
  const TempFolder folder;
  folder.file("tokenizer.json", kToyJson);
  folder.file("generation_config.json", R"({"eos_token_id": [1, 3]})");
  folder.file("config.json", R"({"bos_token_id": 3, "pad_token_id": 0})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->special().bos, 3);
  EXPECT_EQ(tokenizer->special().eos, 1);
  EXPECT_EQ(tokenizer->special().pad, 0);
  EXPECT_THAT(tokenizer->special().stop, ElementsAre(1, 3));
  folder.file("config.json", R"({"pad_token_id": 77})");
  EXPECT_EQ(testing::error_of([&] { return load_tokenizer(folder.path()); }),
            folder.path().string() + ": generation_config.json or config.json names 77 as pad_token, but the tokenizer has 4 ids");
}

TEST(LoadTokenizer, ReadsVocabAndMerges) {
  const TempFolder folder;
  folder.file("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "\u0120": 3, "<|endoftext|>": 4})");
  folder.file("merges.txt", "#version: 0.2\na b\r\n");
  folder.file("tokenizer_config.json", R"({"add_bos_token": true, "tokenizer_class": "GPT2Tokenizer"})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_THAT(tokenizer->encode("ab b<|endoftext|>", {.add_special = true}), ElementsAre(4, 2, 3, 1, 4));
  EXPECT_EQ(tokenizer->special().eos, 4);
  EXPECT_TRUE(tokenizer->is_special(4));
  folder.file("tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_THAT(load_tokenizer(folder.path())->encode("ab<|endoftext|>b b"), ElementsAre(3, 2, 4, 3, 1, 3, 1));
  folder.file("tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})");
  EXPECT_EQ(testing::error_of([&] { return load_tokenizer(folder.path()); }),
            folder.path().string() + ": how CLIPTokenizer splits text is not known; provide a tokenizer.json");
}

TEST(LoadTokenizer, ReadsQwen2sVocabAndMerges) {
  const TempFolder folder;
  folder.file("encoder.json", R"({"1": 0, "2": 1, "12": 2, "\u00C3": 3, "\u00A9": 4})");
  folder.file("vocab.bpe", "1 2\n");
  folder.file("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  EXPECT_THAT(load_tokenizer(folder.path())->encode("12e\u0301"), ElementsAre(0, 1, 3, 4)) << "digits apart, and NFC";
}

TEST(LoadTokenizer, ReadsASentencePieceModel) {
  using namespace kedge::testing;  // the fields of a protocol buffer
  const TempFolder folder;
  folder.file("tokenizer.model", piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\u2581", -1) + piece("a", -2) +
                                     text_field(2, number_field(3, 2)));
  EXPECT_THAT(load_tokenizer(folder.path())->encode("a", {.add_special = true}), ElementsAre(3, 4));
  EXPECT_EQ(load_tokenizer(folder.path())->special().eos, 2);
  folder.file("tokenizer_config.json", R"({"add_bos_token": true, "bos_token": "<s>", "legacy": true})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_THAT(tokenizer->encode("a<s>a", {.add_special = true}), ElementsAre(1, 3, 4, 1, 3, 4));
  folder.file("tokenizer_config.json", R"({"add_prefix_space": false, "bos_token": "<s>", "legacy": true})");
  EXPECT_THAT(load_tokenizer(folder.path())->encode("a<s>a"), ElementsAre(4, 1, 4));
}

TEST(LoadTokenizer, NamesAFolderWithoutATokenizer) {
  const TempFolder folder;
  EXPECT_FALSE(has_tokenizer(folder.path()));
  EXPECT_EQ(testing::error_of([&] { return load_tokenizer(folder.path()); }),
            folder.path().string() +
                ": no tokenizer: expected tokenizer.json, tokenizer.model, vocab.json with merges.txt, or encoder.json with vocab.bpe");
  EXPECT_EQ(testing::error_of([&] { return load_tokenizer(folder / "nowhere"); }), (folder / "nowhere").string() + ": no such folder");
}

TEST(LoadTokenizer, TheThreeFormsOfGpt2AreOne) {
  KEDGE_NEEDS_ASSET("tokenizers");
  const TempFolder folder;
  std::filesystem::create_symlink(assets_folder() / "tokenizers/gpt2/encoder.json", folder / "vocab.json");
  std::filesystem::create_symlink(assets_folder() / "tokenizers/gpt2/vocab.bpe", folder / "merges.txt");
  const auto from_files = load_tokenizer(folder.path());
  const auto whole = load_tokenizer(assets_folder() / "tokenizers/gpt2");
  EXPECT_EQ(whole->vocab_size(), 50257);
  EXPECT_EQ(from_files->fingerprint(), whole->fingerprint());
  const std::string text = "I'd say: it's 3.14 \u00E9t\u00E9s\n\n  long<|endoftext|>";
  EXPECT_EQ(from_files->encode(text), whole->encode(text));
  EXPECT_EQ(from_files->special().eos, 50256);
}

TEST(LoadTokenizer, ReadsTheFoldersOfRealModels) {
  KEDGE_NEEDS_ASSET("tokenizers");
  const auto stories = load_tokenizer(assets_folder() / "models/tinystories-656k");
  EXPECT_EQ(stories->vocab_size(), 2048);
  EXPECT_EQ(stories->special().bos, 1);
  EXPECT_EQ(stories->special().eos, 2);
  EXPECT_EQ(stories->special().pad, 0);
  EXPECT_EQ(stories->encode("Once upon a time", {.add_special = true}).front(), 1);
  const auto qwen = load_tokenizer(assets_folder() / "tokenizers/qwen2.5");
  EXPECT_EQ(qwen->special().bos, std::nullopt);
  EXPECT_EQ(qwen->special().eos, qwen->id_of("<|im_end|>"));
  EXPECT_EQ(qwen->special().pad, qwen->id_of("<|endoftext|>"));
  EXPECT_EQ(qwen->vocab_size(), 151665);
}

}  // namespace
}  // namespace kedge
