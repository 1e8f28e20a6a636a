#include "kedge/data/check/example_preview.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::digits;
using testing::shown;
using testing::TempFolder;

// name:tokens:mask of each side, then the prompt.
std::string view(DataKind kind, const std::string& content, int64_t rows_per_example = 1) {
  const TempFolder folder;
  DataCheckOptions options;
  options.kind = kind;
  options.encoder = testing::byte_encoder();
  options.chat = testing::render_toy_chat;
  options.sft.chat_prompt_tokens = {
      .system_turn_start = "S", .turn_start = "T", .label_start = "L", .end_of_turn = ".", .end_of_name = ":"};
  const RowView found = make_viewer(options)(Rows::of_file(folder.file("f.jsonl", content), rows_per_example), 0);
  std::string text;
  for (const auto& [name, tokens] : found.sides) text += name + ":" + shown(tokens.ids) + ":" + digits(tokens.mask) + " ";
  return text + "prompt:" + found.prompt;
}

TEST(RowView, ShowsEveryKindOfData) {
  EXPECT_EQ(view(DataKind::prompts, R"({"text": "ask"})"), "text:ask:000 prompt:ask");
  EXPECT_EQ(view(DataKind::regression, R"({"text": "ask", "label": [1]})"), "text:ask:000 prompt:ask");
  EXPECT_EQ(view(DataKind::sft, R"({"input": "ask", "output": "say"})"), "text:ask say$:00011111 prompt:ask");
  EXPECT_EQ(view(DataKind::chat, R"({"mask": "U", "conversations": [{"from": "U", "value": "q"}, {"from": "A", "value": "a"}]})"),
            "chat:SSystem:.TU:q.TA:a.T:00000000000000000111 prompt:SSystem:.TU:q.TA:");
  EXPECT_EQ(view(DataKind::preference, R"({"prompt": "p", "chosen": "c", "rejected": "r"})"), "chosen:pc:01 rejected:pr:01 prompt:p");
  EXPECT_EQ(view(DataKind::preference, "{\"text\": \"p good\"}\n{\"text\": \"p bad\"}", 2),
            "chosen:p good:111111 rejected:p bad:11111 prompt:p ");
  EXPECT_EQ(view(DataKind::kto, R"({"prompt": "p", "response": "r", "label": false})"), "rejected:pr:01 prompt:p");
}

// As training scores them: the first token of "xa" stays in both, the second only in one.
TEST(RowView, BothAnswersOfAPairBeginWhereTheFirstTokenChanges) {
  const TempFolder folder;
  DataCheckOptions options;
  options.kind = DataKind::preference;
  options.encoder = testing::merging_encoder();
  const Path file = folder.file("f.jsonl", R"({"prompt": "xa", "chosen": "b", "rejected": "c"})");
  const RowView found = make_viewer(options)(Rows::of_file(file), 0);
  EXPECT_TRUE(found.crosses);
  EXPECT_EQ(digits(found.sides[0].second.mask), "01");
  EXPECT_EQ(digits(found.sides[1].second.mask), "011");
  options.data.prompt_boundary = PromptBoundary::common;
  const PreferenceDataset pairs(Rows::of_file(file), options.encoder, options.data, PreferenceUse::labelled);
  EXPECT_EQ(pairs.get(0).num_prompt_tokens, 1);
}

}  // namespace
}  // namespace kedge
