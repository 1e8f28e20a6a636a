#include "kedge/text/tokenizer/response_end.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

// Ids of the specification's vector: EOS 2, <extra_id_1> is the single token 5; every other character is its byte.
TextEncoder spec_encoder() {
  return {.encode =
              [](std::string_view text) {
                TokenIds ids;
                while (!text.empty()) {
                  const bool special = text.starts_with("<extra_id_1>");
                  ids.push_back(special ? 5 : static_cast<unsigned char>(text[0]));
                  text.remove_prefix(special ? 12 : 1);
                }
                return ids;
              },
          .decode =
              [](std::span<const TokenId> ids) {
                std::string text;
                for (const TokenId id : ids) text += id == 5 ? std::string("<extra_id_1>") : std::string(1, static_cast<char>(id));
                return text;
              },
          .bos = 1,
          .eos = 2};
}

std::string ended(TokenIds answer, std::vector<std::string> end_strings = {"<|endoftext|>", "<extra_id_1>"}, TokenId vocab_size = 100) {
  const TextEncoder encoder = spec_encoder();
  TokenIds row = {11, 12};
  row.insert(row.end(), answer.begin(), answer.end());
  const ResponseEnd end = find_response_end(row, {2, 4, vocab_size}, make_end_rules(encoder, end_strings), encoder);
  std::string text = "L " + std::to_string(end.length) + " is_end " + (end.is_end ? "1" : "0");
  for (size_t i = 2; i < row.size(); ++i)
    if (row[i] != answer[i - 2]) text += " now " + std::to_string(row[i]);
  return text;
}

TEST(ResponseEnd, FollowsTheSpecificationsVector) {
  EXPECT_EQ(ended({7, 8, 2}), "L 5 is_end 1");
  EXPECT_EQ(ended({7, 5}), "L 4 is_end 1");
  EXPECT_EQ(ended({7, 8, 9, 10}), "L 6 is_end 0");
  EXPECT_EQ(ended({7, 130, 2}), "L 5 is_end 0 now 99");
}

TEST(ResponseEnd, PaddingAndTokensBehindTheLimitDoNotCount) {
  EXPECT_EQ(ended({7, 2, 2, 2, 2}), "L 4 is_end 1");
  EXPECT_EQ(ended({7, 8, 9, 10, 2}), "L 6 is_end 0");
}

// Lengths are carried, not searched for: a prompt may hold what would end an answer, and end with it.
TEST(ResponseEnd, AnEndInThePromptEndsNothing) {
  const TextEncoder encoder = spec_encoder();
  const EndRules rules = make_end_rules(encoder, std::vector<std::string>{"<extra_id_1>", "END"});
  const auto end_of = [&](TokenIds row) { return find_response_end(row, {5, 3, 256}, rules, encoder); };
  EXPECT_EQ(end_of({11, 2, 12, 5, 2, 7, 8, 9}).length, 8);
  EXPECT_FALSE(end_of({11, 2, 12, 5, 2, 7, 8, 9}).is_end);
  EXPECT_EQ(end_of({11, 2, 12, 5, 2, 7, 2, 9}).length, 7);
  EXPECT_TRUE(end_of({11, 2, 12, 5, 2, 7, 2, 9}).is_end);
  EXPECT_FALSE(end_of({11, 2, 'E', 'N', 'D', 7, 8, 9}).is_end);
}

TEST(ResponseEnd, AnEndStringOfSeveralTokensIsSearchedInTheText) {
  EXPECT_EQ(ended({'a', 'E', 'N', 'D'}, {"END"}, 256), "L 6 is_end 1");
  EXPECT_EQ(ended({'a', 'E', 'N', 'x'}, {"END"}, 256), "L 6 is_end 0");
  EXPECT_EQ(ended({'#', 'E', 'N', 'x'}, {"END", "#"}, 256), "L 3 is_end 1");
}

TEST(ResponseEnd, AnEndTextIsFoundAtTheEndOfALongAnswerAlone) {
  const TextEncoder encoder = spec_encoder();
  const EndRules rules = make_end_rules(encoder, std::vector<std::string>{"END", "a longer end"});
  const auto ends = [&](const std::string& text) { return ends_by_text(TokenIds(text.begin(), text.end()), rules, encoder); };
  const std::string long_answer(1000, 'x');
  EXPECT_TRUE(ends(long_answer + "END"));
  EXPECT_TRUE(ends(long_answer + "a longer end"));
  EXPECT_FALSE(ends(long_answer + "ENDx"));
  EXPECT_FALSE(ends("END" + long_answer));
  EXPECT_FALSE(ends(""));
  EXPECT_FALSE(ends_by_text(TokenIds{'E', 'N', 'D'}, EndRules{}, encoder));
}

TEST(ResponseEnd, RulesTellTokensFromTexts) {
  const std::vector<std::string> strings = {"<|endoftext|>", "<extra_id_1>", "#", "END", "#"};
  const EndRules rules = make_end_rules(spec_encoder(), strings);
  EXPECT_EQ(rules.end_ids, (TokenIds{2, 5, '#'}));
  EXPECT_EQ(rules.end_texts, std::vector<std::string>{"END"});
}

// Of a string with one letter that it knows, such a tokenizer gives that letter's id; it must not end every answer.
TEST(ResponseEnd, ATokenizerThatDropsWhatItDoesNotKnowMakesNoEndOfTheRest) {
  TextEncoder encoder = spec_encoder();
  encoder.encode = [](std::string_view text) { return TokenIds(static_cast<size_t>(std::count(text.begin(), text.end(), 'a')), 'a'); };
  const std::vector<std::string> strings = {"<extra_id_1>", "a"};
  const EndRules rules = make_end_rules(encoder, strings);
  EXPECT_EQ(rules.end_ids, (TokenIds{2, 'a'})) << "by the second";
  EXPECT_EQ(rules.end_texts, std::vector<std::string>{"<extra_id_1>"});
}

}  // namespace
}  // namespace kedge
