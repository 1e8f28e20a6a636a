#include "kedge/text/chat/chat_spans.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

constexpr std::string_view kChatml =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt "
    "%}<|im_start|>assistant\n{% endif %}";

// "message:text|message:text" of the turns.
std::string turns(std::string_view text, std::string_view messages) {
  const ChatTurns result =
      render_turns(ChatTemplate::from_text(text, "t", Json::parse(R"({"bos_token": "<s>", "eos_token": "</s>"})")), Json::parse(messages));
  std::string out;
  for (const TurnSpan& turn : result.turns)
    out += str(out.empty() ? "" : "|", turn.message ? std::to_string(*turn.message) : "?", ":",
               result.text.substr(turn.bytes.begin, turn.bytes.end - turn.bytes.begin));
  return out;
}

constexpr std::string_view kTwoTurns =
    R"([{"role": "user", "content": "é?"}, {"role": "assistant", "content": "one"}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "two"}])";

TEST(ChatSpans, ATurnIsWhatFollowsItsPrompt) {
  EXPECT_EQ(turns(kChatml, kTwoTurns), "1:one<|im_end|>\n|3:two<|im_end|>\n");
  EXPECT_EQ(turns(kChatml, R"([{"role": "user", "content": "a"}])"), "");
  EXPECT_EQ(turns(kChatml, R"([{"role": "assistant", "content": "first"}, {"role": "user", "content": "a"}])"), "0:first<|im_end|>\n");
}

TEST(ChatSpans, ATemplateWithoutAPromptWorksToo) {
  constexpr std::string_view kInst =
      "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %} {{ m.content }}</s>{% endif "
      "%}{% endfor %}";
  EXPECT_EQ(turns(kInst, kTwoTurns), "1: one</s>|3: two</s>");
}

TEST(ChatSpans, GenerationBlocksDecideWhereThereAreAny) {
  constexpr std::string_view kMarked =
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration "
      "%}{% else %}{{ m.content }}{% endif %}{% endfor %}";
  EXPECT_EQ(turns(kMarked, kTwoTurns), "1:one</s>|3:two</s>");
}

TEST(ChatSpans, BlocksThatTouchAreOneTurn) {
  constexpr std::string_view kMarked =
      "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}<{{ m.content "
      "}}>{% endif %}{% endfor %}"
      "{% generation %}{{ eos_token }}{% endgeneration %}";
  EXPECT_EQ(turns(kMarked, kTwoTurns), "1:one|3:two</s>");
}

TEST(ChatSpans, ATurnInSeveralBlocksHasNoNumber) {
  constexpr std::string_view kMarked =
      "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}-"
      "{% generation %}!{% endgeneration %}{% else %}<user>{% endif %}{% endfor %}";
  EXPECT_EQ(turns(kMarked, kTwoTurns), "?:one|?:!|?:two|?:!");
}

// Thoughts stand only in turns after the last question, and the prompt opens one.
constexpr std::string_view kThinking =
    "{% set last = namespace(i=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set last.i = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% set c = m.content.split('</think>')[-1].strip() %}"
    "{% if loop.index0 > last.i %}<think>{{ m.reasoning_content or m.content.split('</think>')[0].replace('<think>', '') }}</think>{% "
    "endif %}{{ c }}"
    "{% else %}{{ m.content }}{% endif %}<end>{% endfor %}{% if add_generation_prompt %}<assistant><think>{% endif %}";

TEST(ChatSpans, ThoughtsThatVanishFromEarlierTurnsAreFollowed) {
  EXPECT_EQ(turns(kThinking, R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "one", "reasoning_content": "hm"},
                                 {"role": "user", "content": "b"}, {"role": "assistant", "content": "two", "reasoning_content": "well"}])"),
            "1:one<end>|3:well</think>two<end>");
  EXPECT_EQ(turns(kThinking, R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>hm</think>\n\none"},
                                 {"role": "user", "content": "b"}, {"role": "assistant", "content": "<think>ah</think>two"}])"),
            "1:one<end>|3:ah</think>two<end>");
}

TEST(ChatSpans, ASystemTextThatMovesToTheLastQuestionIsFollowed) {
  constexpr std::string_view kMoving =
      "{% set turns = messages[1:] %}{% for m in turns %}{% if m.role == 'user' %}[INST] {% if loop.last or turns[loop.index].role == "
      "'assistant' and loop.index + 1 == turns|length %}"
      "{{ messages[0].content }}\n{% endif %}{{ m.content }}[/INST]{% else %} {{ m.content|trim }}</s>{% endif %}{% endfor %}";
  EXPECT_EQ(
      turns(kMoving, R"([{"role": "system", "content": "S"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": " one "},
                               {"role": "user", "content": "b"}, {"role": "assistant", "content": "two"}])"),
      "2: one</s>|4: two</s>");
}

TEST(ChatSpans, AnEndOfTheWholeConversationIsPartOfTheLastTurnOnly) {
  constexpr std::string_view kPhi =
      "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% else "
      "%}<|endoftext|>{% endif %}";
  EXPECT_EQ(turns(kPhi, kTwoTurns), "1:one<|end|>|3:two<|end|><|endoftext|>");
}

TEST(ChatSpans, WhatCannotBeToldIsRefusedByItsNumber) {
  constexpr std::string_view kDropping =
      "{% for m in messages %}{% if loop.last or m.role == 'user' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}{% if "
      "add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_EQ(error_of([&] { return turns(kDropping, kTwoTurns); }),
            "message 2 (assistant): the template writes it in a way that does not show which part of the text is the model's own: its "
            "beginning cannot be "
            "found; mark the turn with {% generation %} ... {% endgeneration %} in the template");
}

TEST(ChatSpans, ATemplateThatAlwaysPromptsIsRefused) {
  constexpr std::string_view kAlways = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}<assistant>";
  EXPECT_NE(error_of([&] { return turns(kAlways, kTwoTurns); }).find("ends with the header of a new turn even without a generation prompt"),
            std::string::npos);
}

}  // namespace
}  // namespace kedge
