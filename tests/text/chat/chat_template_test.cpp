#include "kedge/text/chat/chat_template.h"

#include <gtest/gtest.h>

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::TempFolder;

constexpr std::string_view kPlain =
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

Json messages(std::string_view text) { return Json::parse(text); }

ChatOptions options_of(const Json& json) {
  ChatOptions options;
  if (const Json* value = json.find("add_generation_prompt")) options.add_generation_prompt = value->as_bool("options");
  if (const Json* value = json.find("tools")) options.tools = *value;
  if (const Json* value = json.find("documents")) options.documents = *value;
  if (const Json* value = json.find("continue")) options.continue_field = value->as_text("options");
  std::tm now{};  // Friday, 26 July 2024, 09:05:07
  now.tm_year = 124, now.tm_mon = 6, now.tm_mday = 26, now.tm_wday = 5, now.tm_yday = 207, now.tm_hour = 9, now.tm_min = 5, now.tm_sec = 7;
  options.now = now;
  return options;
}

// tests/golden/chat_templates/make_golden.py wrote what transformers gives.
TEST(ChatTemplate, RendersTheGoldenTemplatesAsTransformersDoes) {
  const Path folder = testing::source_folder() / "tests/golden/chat_templates";
  const Json given = Json::parse(read_text(folder / "conversations.json"));
  const Json expected = Json::parse(read_text(folder / "expected.json"));
  EXPECT_GE(expected.as_object("expected").size(), 20U);
  for (const auto& [name, results] : expected.as_object("expected")) {
    const ChatTemplate chat = ChatTemplate::from_text(read_text(folder / name), name, given.at("tokens", "given"));
    for (const auto& [chat_name, wanted] : results.as_object(name)) {
      const Json& conversation = given.at("chats", "given").at(chat_name, "chats");
      const auto render = [&, &chat_name = chat_name] {
        return chat.render(conversation.at("messages", chat_name), options_of(conversation.at("options", chat_name)));
      };
      if (wanted.is_null()) {
        EXPECT_THROW(static_cast<void>(render()), UsageError) << name << ", " << chat_name;
      } else {
        EXPECT_EQ(render(), wanted.as_text(name)) << name << ", " << chat_name;
      }
    }
  }
}

TEST(ChatTemplate, RendersQwenFromItsFolder) {
  const Path folder = testing::assets_folder() / "tokenizers/qwen2.5";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const ChatTemplate chat = ChatTemplate::load(folder);
  ChatOptions options;
  options.add_generation_prompt = true;
  EXPECT_EQ(chat.render(messages(R"([{"role": "user", "content": "Hi"}])"), options),
            "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(
      chat.render(messages(R"([{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "",
              "tool_calls": [{"function": {"name": "f", "arguments": {"a": "é"}}}]}, {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}])")),
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<tool_call>\n"
      "{\"name\": \"f\", \"arguments\": {\"a\": \"é\"}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n1\n</tool_response>\n"
      "<tool_response>\n2\n</tool_response><|im_end|>\n");
}

TEST(ChatTemplate, SpecialTokensComeAsTextOrAsObjects) {
  const TempFolder folder;
  folder.file("tokenizer_config.json",
              R"({"chat_template": "{{ bos_token }}{{ eos_token }}{{ image_token }}{{ boi }}{{ pad_token is defined }}", "bos_token": "<s>",
    "eos_token": {"content": "</s>", "lstrip": false}, "pad_token": null, "add_bos_token": true, "extra_special_tokens": {"image_token": "<img>"},
    "model_specific_special_tokens": {"boi": "<boi>"}})");
  folder.file("special_tokens_map.json", R"({"bos_token": {"content": "<bos>"}})");
  EXPECT_EQ(ChatTemplate::load(folder.path()).render(messages("[{}]")), "<bos></s><img><boi>False");
}

TEST(ChatTemplate, VariablesOverrideTokensButNotMessages) {
  const ChatTemplate chat = ChatTemplate::from_text(kPlain, "t", Json::parse(R"({"bos_token": "<s>"})"));
  ChatOptions options;
  options.variables = Json::parse(R"({"bos_token": "<BOS>", "messages": []})");
  EXPECT_EQ(chat.render(messages(R"([{"role": "user", "content": "x"}])"), options), "<BOS><user>x");
}

TEST(ChatTemplate, ToolsAndDocumentsAreNoneUnlessGiven) {
  const ChatTemplate chat = ChatTemplate::from_text("{{ tools }}{{ documents }}{{ tools is defined }}", "t");
  EXPECT_EQ(chat.render(messages("[{}]")), "NoneNoneTrue");
}

TEST(ChatTemplate, AFolderMayNameSeveralTemplates) {
  const TempFolder folder;
  folder.file(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}, {"name": "rag", "template": "R"}]})");
  const ChatTemplate chat = ChatTemplate::load(folder.path());
  ChatOptions options;
  EXPECT_EQ(chat.render(messages("[{}]"), options), "D");
  options.tools = Json(Json::Array{});
  EXPECT_EQ(chat.render(messages("[{}]"), options), "T");
  options.template_name = "rag";
  EXPECT_EQ(chat.render(messages("[{}]"), options), "R");
  options.template_name = "nope";
  EXPECT_EQ(error_of([&] { return chat.render(messages("[{}]"), options); }),
            folder.path().string() + ": no chat template named nope; there are: default, rag, tool_use");
}

TEST(ChatTemplate, FilesWinOverTheConfigAndTheConfigOverTheOldFile) {
  const TempFolder folder;
  folder.file("chat_template.json", R"({"chat_template": "old"})");
  EXPECT_EQ(ChatTemplate::load(folder.path()).render(messages("[{}]")), "old");
  folder.file("tokenizer_config.json", R"({"chat_template": "config"})");
  EXPECT_EQ(ChatTemplate::load(folder.path()).render(messages("[{}]")), "config");
  folder.file("chat_template.jinja", "file\n");
  std::filesystem::create_directory(folder / "additional_chat_templates");
  folder.file("additional_chat_templates/tool_use.jinja", "tools");
  const ChatTemplate chat = ChatTemplate::load(folder.path());
  EXPECT_EQ(chat.render(messages("[{}]")), "file");
  ChatOptions options;
  options.tools = Json(Json::Array{});
  EXPECT_EQ(chat.render(messages("[{}]"), options), "tools");
}

TEST(ChatTemplate, AFolderWithoutATemplateIsRefused) {
  const TempFolder folder;
  folder.file("tokenizer_config.json", R"({"chat_template": null})");
  EXPECT_EQ(error_of([&] { return ChatTemplate::load(folder.path()); }),
            folder.path().string() + ": no chat template (no chat_template.jinja, and none in tokenizer_config.json)");
}

TEST(ChatTemplate, ReasoningIsKnownByTwoNames) {
  const ChatTemplate chat = ChatTemplate::from_text("{{ messages[0] }}", "t");
  EXPECT_EQ(chat.render(messages(R"([{"role": "a", "reasoning": "r"}])")),
            "{'thinking': 'r', 'role': 'a', 'reasoning': 'r', 'reasoning_content': 'r'}");
  EXPECT_EQ(chat.render(messages(R"([{"role": "a", "thinking": null}])")), "{'role': 'a', 'thinking': None}");
}

TEST(ChatTemplate, TheLastMessageCanBeLeftOpen) {
  const ChatTemplate chat = ChatTemplate::from_text("{% for m in messages %}[{{ m.content|trim }}]{% endfor %}", "t");
  ChatOptions options;
  options.continue_field = "content";
  EXPECT_EQ(chat.render(messages(R"([{"content": "a"}, {"content": "b "}])"), options), "[a][b");
  EXPECT_EQ(error_of([&] { return chat.render(messages(R"([{"content": null}])"), options); }),
            "t: continue content: the last message has no \"content\" to continue");
  options.add_generation_prompt = true;
  EXPECT_EQ(error_of([&] { return chat.render(messages("[{}]"), options); }), "t: continue content: not together with a generation prompt");
  options.add_generation_prompt = false, options.continue_field = "thinking";
  EXPECT_EQ(error_of([&] { return chat.render(messages(R"([{"thinking": "x"}])"), options); }),
            "t: continue thinking: the template does not read this field");
}

TEST(ChatTemplate, TheFingerprintIsThatOfTheTexts) {
  const std::string text = "{{ messages[0].content }}";
  EXPECT_EQ(ChatTemplate::from_text(text, "a").fingerprint(), ChatTemplate::from_text(text, "b").fingerprint());
  EXPECT_NE(ChatTemplate::from_text(text, "a").fingerprint(), ChatTemplate::from_text(text + " ", "a").fingerprint());
  const TempFolder folder;
  EXPECT_FALSE(ChatTemplate::find(folder.path()).has_value());
  folder.file("chat_template.jinja", text);
  EXPECT_EQ(ChatTemplate::find(folder.path())->fingerprint(), ChatTemplate::from_text(text, "a").fingerprint());
}

TEST(ChatTemplate, WhatTheTemplateRaisesNamesItsLine) {
  const ChatTemplate chat = ChatTemplate::from_text("\n{{ raise_exception('roles must alternate') }}", "model/chat_template.jinja");
  EXPECT_EQ(error_of([&] { return chat.render(messages("[{}]")); }), "model/chat_template.jinja:2: roles must alternate");
  EXPECT_EQ(error_of([&] { return chat.render(Json(1)); }), "model/chat_template.jinja: messages: expected a list, found 1");
  EXPECT_EQ(error_of([&] { return chat.render(messages("[1]")); }), "model/chat_template.jinja: messages: expected an object, found 1");
}

}  // namespace
}  // namespace kedge
