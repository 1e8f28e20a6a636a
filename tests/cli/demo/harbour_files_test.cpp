#include "cli/demo/harbour_files.h"

#include <gtest/gtest.h>

#include <set>

#include "kedge/data/files/jsonl_file.h"
#include "kedge/text/chat/chat_template.h"
#include "kedge/text/tokenizer/tokenizer.h"

#include "tests/support/temp_folder.h"

namespace kedge::cli {
namespace {

using testing::TempFolder;

HarbourFilesConfig small(const Path& out) {
  return {.out = out.string(), .conversations = 300, .pairs = 100, .prompts = 80, .validation = 16, .vocab_size = 400};
}

std::vector<Json> rows_of(const Path& path) {
  std::vector<Json> rows;
  const std::string text = read_text(path);
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    rows.push_back(Json::parse(text.substr(at, text.find('\n', at) - at), path.string()));
  return rows;
}

std::string first_question(const Json& row, const char* field) {
  return row.find(field)->as_array(field)[0].find("content")->as_text("content");
}

TEST(HarbourFiles, TheSameConfigGivesTheSameBytes) {
  const TempFolder one, other;
  const HarbourFiles files = write_harbour_files(small(one / "a"));
  static_cast<void>(write_harbour_files(small(other / "b")));
  EXPECT_EQ(files.files.size(), 8U);
  for (const HarbourFiles::File& file : files.files)
    EXPECT_EQ(read_text(file.path), read_text(other / "b" / file.path.filename().string())) << file.path;
  EXPECT_EQ(read_text(files.tokenizer / "tokenizer.json"), read_text(other / "b" / "tokenizer" / "tokenizer.json"));
  HarbourFilesConfig config = small(other / "c");
  config.seed = 2;
  static_cast<void>(write_harbour_files(config));
  EXPECT_NE(read_text(one / "a" / "sft.jsonl"), read_text(other / "c" / "sft.jsonl"));
}

TEST(HarbourFiles, QuestionsOfValidationStandInNoTrainingFile) {
  const TempFolder folder;
  static_cast<void>(write_harbour_files(small(folder / "data")));
  std::set<std::string> held_out, prompts;
  for (const Json& row : rows_of(folder / "data" / "prompts_val.jsonl")) held_out.insert(first_question(row, "messages"));
  EXPECT_EQ(held_out.size(), 16U);
  for (const Json& row : rows_of(folder / "data" / "prompts.jsonl")) prompts.insert(first_question(row, "messages"));
  EXPECT_EQ(prompts.size(), 80U);  // each once
  for (const std::string& text : prompts) EXPECT_FALSE(held_out.contains(text)) << text;
  for (const Json& row : rows_of(folder / "data" / "pairs.jsonl")) EXPECT_FALSE(held_out.contains(first_question(row, "prompt")));
  for (const Json& row : rows_of(folder / "data" / "pairs_val.jsonl")) EXPECT_TRUE(held_out.contains(first_question(row, "prompt")));
  for (const Json& row : rows_of(folder / "data" / "marked.jsonl")) EXPECT_FALSE(held_out.contains(first_question(row, "prompt")));
  for (const Json& row : rows_of(folder / "data" / "marked_val.jsonl")) EXPECT_TRUE(held_out.contains(first_question(row, "prompt")));
  for (const Json& row : rows_of(folder / "data" / "sft.jsonl"))
    for (const Json& message : row.find("messages")->as_array("messages"))
      EXPECT_FALSE(held_out.contains(message.find("content")->as_text("content")));
}

TEST(HarbourFiles, TheTemplateEndsAnAnswerWithEos) {
  const TempFolder folder;
  const HarbourFiles files = write_harbour_files(small(folder / "data"));
  const ChatTemplate chat = ChatTemplate::load(files.tokenizer);
  const Json messages = Json::parse(R"([{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "There."},
                                       {"role": "user", "content": "When?"}])",
                                    "messages");
  ChatOptions options;
  options.add_generation_prompt = true;
  EXPECT_EQ(chat.render(messages, options), "Visitor: Where?\nGuide: There.<eos>\nVisitor: When?\nGuide:");
  const auto tokenizer = load_tokenizer(files.tokenizer);
  EXPECT_EQ(tokenizer->vocab_size(), 400);
}

}  // namespace
}  // namespace kedge::cli
