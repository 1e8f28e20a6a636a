#include "kedge/text/chat/model_chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

constexpr const char* kTemplate =
    "{% if tools %}[{{ tools | length }} tools]{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

TEST(ModelChat, RendersWithTheFoldersTemplate) {
  const testing::TempFolder folder;
  folder.file("chat_template.jinja", kTemplate);
  const ChatRenderer chat = chat_of_model(folder.path());
  const Json row = Json::parse(R"({"messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "f"}]})");
  EXPECT_EQ(chat({.messages = *row.find("messages"), .row = row, .add_generation_prompt = true}).text, "[1 tools]<user>hi</><assistant>");
}

TEST(ModelChat, MarksWhatTheAssistantSays) {
  const testing::TempFolder folder;
  folder.file("chat_template.jinja", kTemplate);
  const Json row = Json::parse(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                                   {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})");
  const RenderedChat rendered = chat_of_model(folder.path())({.messages = *row.find("messages"), .row = row, .want_loss_spans = true});
  std::vector<std::string> said;
  for (const TextSpan& span : rendered.loss_spans) said.push_back(rendered.text.substr(span.begin, span.end - span.begin));
  EXPECT_THAT(said, ::testing::ElementsAre("b</>", "d</>"));
}

TEST(ModelChat, AFolderWithoutATemplateIsToldWhenOneIsNeeded) {
  const testing::TempFolder folder;
  const ChatRenderer chat = chat_of_model(folder.path());
  const Json row = Json::parse(R"({"messages": []})");
  const auto render = [&] { return chat({.messages = *row.find("messages"), .row = row}).text; };
  EXPECT_NE(testing::error_of(render).find(folder.path().string()), std::string::npos);
  EXPECT_NE(testing::error_of(render).find(folder.path().string()), std::string::npos);  // and again
}

}  // namespace
}  // namespace kedge
