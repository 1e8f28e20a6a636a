#include "kedge/text/tokenizer/special_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> contents(const std::vector<AddedToken>& tokens) {
  std::vector<std::string> out;
  for (const AddedToken& token : tokens) out.push_back(token.content + (token.special ? "!" : ""));
  return out;
}

TEST(SpecialTokens, ReadsTokenizerConfig) {
  const testing::TempFolder folder;
  folder.file("tokenizer_config.json",
              R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": true}, "pad_token": null, "add_bos_token": true,
    "legacy": false, "add_prefix_space": true, "tokenizer_class": "LlamaTokenizer", "additional_special_tokens": ["<x>"],
    "added_tokens_decoder": {"10": {"content": "</s>", "special": true}, "9": {"content": "plain", "special": false}}})");
  const auto files = SpecialTokenFiles::read(folder.path());
  EXPECT_EQ(files.named.at("bos_token").token->content, "<s>");
  EXPECT_TRUE(files.named.at("eos_token").token->lstrip);
  EXPECT_TRUE(files.named.at("pad_token").given);
  EXPECT_FALSE(files.named.at("pad_token").token);
  EXPECT_FALSE(files.named.contains("unk_token"));
  EXPECT_EQ(files.add_bos, true);
  EXPECT_EQ(files.add_eos, std::nullopt);
  EXPECT_EQ(files.legacy, false);
  EXPECT_EQ(files.add_prefix_space, true);
  EXPECT_EQ(files.tokenizer_class, "LlamaTokenizer");
  EXPECT_THAT(contents(files.tokens_to_add(AddedTokens())), ElementsAre("plain", "</s>!", "<s>!", "<x>!"));
}

TEST(SpecialTokens, ReadsTheFilesOfOlderFolders) {
  const testing::TempFolder folder;
  folder.file("special_tokens_map.json", R"({"eos_token": "<end>"})");
  folder.file("added_tokens.json", R"({"<end>": 7, "word": 8})");
  const auto files = SpecialTokenFiles::read(folder.path());
  EXPECT_EQ(files.named.at("eos_token").token->content, "<end>");
  EXPECT_THAT(contents(files.tokens_to_add(AddedTokens())), ElementsAre("<end>!", "word"));
  EXPECT_FALSE(files.added.at(7).normalized);
  EXPECT_TRUE(files.added.at(8).normalized);
}

TEST(SpecialTokens, TokenizerConfigWithAddedTokensWins) {
  const testing::TempFolder folder;
  folder.file("tokenizer_config.json", R"({"eos_token": "<a>", "added_tokens_decoder": {"0": {"content": "<a>", "special": true}}})");
  folder.file("special_tokens_map.json", R"({"eos_token": "<b>"})");
  EXPECT_EQ(SpecialTokenFiles::read(folder.path()).named.at("eos_token").token->content, "<a>");
}

TEST(SpecialTokens, GenerationConfigComesBeforeConfig) {
  const testing::TempFolder folder;
  folder.file("generation_config.json", R"({"eos_token_id": [5, 6], "bos_token_id": null})");
  folder.file("config.json", R"({"eos_token_id": 4, "bos_token_id": 1, "pad_token_id": -1})");
  const auto files = SpecialTokenFiles::read(folder.path());
  EXPECT_EQ(files.eos_id, 5);
  EXPECT_THAT(files.stop_ids, ElementsAre(5, 6));
  EXPECT_EQ(files.bos_id, 1);
  EXPECT_EQ(files.pad_id, std::nullopt);
}

TEST(SpecialTokens, ReadsTokensUnderOtherNames) {
  const testing::TempFolder folder;
  folder.file("tokenizer_config.json", R"({"extra_special_tokens": ["<x>"], "image_token": "<im>", "eos_token": "</s>",
    "model_specific_special_tokens": {"boi": "<boi>", "image_token": "<im>"}, "video_token": {"content": "<vid>", "lstrip": true},
    "audio_token": null, "add_bos_token": true, "boi": "<boi>"})");
  const auto tokens = SpecialTokenFiles::read(folder.path()).tokens_to_add(AddedTokens());
  EXPECT_THAT(contents(tokens), ElementsAre("</s>!", "<im>!", "<vid>!", "<boi>!", "<x>!"));
  EXPECT_TRUE(tokens[2].lstrip);
}

TEST(SpecialTokens, KeepsThePropertiesOfATokenThatIsThere) {
  const testing::TempFolder folder;
  folder.file("special_tokens_map.json", R"({"bos_token": "<s>"})");
  AddedToken there;
  there.content = "<s>";
  there.rstrip = true;
  AddedTokens present;
  present.add({there}, Vocab(), Normalizer());
  const auto tokens = SpecialTokenFiles::read(folder.path()).tokens_to_add(present);
  ASSERT_EQ(tokens.size(), 1U);
  EXPECT_TRUE(tokens[0].rstrip && tokens[0].special);
}

TEST(SpecialTokens, AnEmptyFolderSaysNothing) {
  const testing::TempFolder folder;
  const auto files = SpecialTokenFiles::read(folder.path());
  EXPECT_TRUE(files.named.empty() && files.added.empty() && files.stop_ids.empty());
  EXPECT_TRUE(files.tokens_to_add(AddedTokens()).empty());
}

TEST(SpecialTokens, NamesFileAndPlace) {
  const testing::TempFolder folder;
  const auto path = folder.file("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {}}})");
  EXPECT_EQ(testing::error_of([&] { return SpecialTokenFiles::read(folder.path()); }),
            path.string() + ": added_tokens_decoder: \"x\" is not a token id");
}

}  // namespace
}  // namespace kedge
