#include "kedge/text/chat/chat_spans.h"

#include <algorithm>
#include <optional>

#include "kedge/core/error.h"
#include "kedge/text/unicode/python_unicode.h"

namespace kedge {
namespace {

constexpr std::string_view kWhere = "messages";
constexpr std::string_view kMark = "\xEE\x80\x80";  // U+E000, a private character: no template and hardly a text has it

bool starts_with(std::string_view text, std::string_view front) { return text.substr(0, front.size()) == front; }

bool ends_with(std::string_view text, std::string_view back) {
  return text.size() >= back.size() && text.substr(text.size() - back.size()) == back;
}

size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin()).first - a.begin());
}

std::vector<size_t> assistant_messages(const Json::Array& messages) {
  std::vector<size_t> found;
  for (size_t i = 0; i < messages.size(); ++i)
    if (const Json* role = messages[i].find("role"); role != nullptr && *role == Json("assistant")) found.push_back(i);
  return found;
}

// The part of a content that many templates cut from earlier turns: up to </think> and the blanks after it.
std::string_view inline_thought(const Json& message) {
  static constexpr std::string_view kEnd = "</think>";
  const Json* content = message.find("content");
  if (content == nullptr || !content->is_text()) return {};
  const std::string_view said = content->as_text(kWhere);
  const size_t end = said.rfind(kEnd);
  return end == std::string_view::npos ? std::string_view()
                                       : said.substr(0, said.size() - py_lstrip(said.substr(end + kEnd.size())).size());
}

// The conversation rendered completely and in pieces.
class TurnFinder {
 public:
  TurnFinder(const ChatTemplate& chat, const Json::Array& messages, const ChatOptions& options)
      : chat_(chat), messages_(messages), options_(options), text_(chat.render(messages, options)) {}

  [[nodiscard]] const std::string& text() const { return text_; }

  // A template that always ends with the header of a new turn hides where a turn ends.
  void check_ending(size_t last_assistant) const {
    const Json::Array shorter = first(last_assistant + 1);
    Json::Array longer = shorter;
    longer.push_back(Json(Json::Object{{"role", "user"}, {"content", "x"}}));
    const auto plain = render(shorter, false), prompted = render(shorter, true), continued = render(longer, false);
    if (!plain || !prompted || !continued || *prompted != *plain || starts_with(*continued, *plain)) return;
    const auto behind = content_end(*plain, shorter, last_assistant, false),
               behind_longer = content_end(*continued, longer, last_assistant, false);
    check(behind && behind_longer &&
              starts_with(std::string_view(*continued).substr(*behind_longer), std::string_view(*plain).substr(*behind)),
          "the chat template ends with the header of a new turn even without a generation prompt, so the end of a turn cannot be found; ",
          "mark turns with {% generation %} ... {% endgeneration %} in the template");
  }

  [[nodiscard]] ByteSpan find(size_t message) const {
    const std::optional<size_t> begin = find_begin(message);
    const std::optional<size_t> end = begin ? find_end(message, *begin) : std::nullopt;
    check(end && *begin <= *end, "message ", message + 1, " (assistant): the template writes it in a way that does not show which part ",
          "of the text is the model's own: its ", begin ? "end" : "beginning",
          " cannot be found; mark the turn with {% generation %} ... {% endgeneration %} in the template");
    return {*begin, *end};
  }

 private:
  [[nodiscard]] Json::Array first(size_t count) const {
    return {messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  // Nothing if the template rejects these messages.
  [[nodiscard]] std::optional<std::string> render(const Json::Array& messages, bool prompt) const {
    if (messages.empty()) return std::nullopt;
    ChatOptions options = options_;
    options.add_generation_prompt = prompt;
    try {
      return chat_.render(messages, options);
    } catch (const UsageError&) {
      return std::nullopt;  // many templates refuse a conversation that ends where this one is cut
    }
  }

  // The messages with a mark in the content of one; nothing if that has no text.
  [[nodiscard]] std::optional<std::string> render_marked(Json::Array messages, size_t message, size_t offset, bool prompt) const {
    const Json* content = messages[message].find("content");
    if (content == nullptr || !content->is_text() || py_strip(content->as_text(kWhere)).empty()) return std::nullopt;
    std::string said = content->as_text(kWhere);
    said.insert(std::min(offset, said.size()), kMark);
    messages[message].set("content", std::move(said));
    return render(messages, prompt);
  }

  // Where the content of a message ends in `plain`, which is `messages` rendered.
  [[nodiscard]] std::optional<size_t> content_end(std::string_view plain, const Json::Array& messages, size_t message, bool prompt) const {
    const auto marked = render_marked(messages, message, std::string::npos, prompt);
    if (!marked) return std::nullopt;
    const size_t at = common_prefix(plain, *marked);
    const std::string_view rest = std::string_view(*marked).substr(at);
    if (!ends_with(rest, plain.substr(at))) return std::nullopt;
    // Blanks at the end of the content may have been stripped without the mark after them.
    const bool only_mark = py_strip(rest.substr(0, rest.size() - (plain.size() - at))) == kMark;
    return only_mark ? std::optional(at) : std::nullopt;
  }

  // The turn starts after its prompt.
  [[nodiscard]] std::optional<size_t> find_begin(size_t message) const {
    const auto asked = render(first(message), true);
    if (asked && starts_with(text_, *asked)) return asked->size();
    // What comes before may be written differently once the conversation continues: reasoning gone from earlier turns, the system
    // text or the tools moved to the last question. Then what follows the content of the message before must be the same.
    if (asked) {
      const auto behind_asked = content_end(*asked, first(message), message - 1, true);
      const auto behind = content_end(text_, messages_, message - 1, false);
      if (behind && behind_asked) {
        const std::string_view header = std::string_view(*asked).substr(*behind_asked);
        if (starts_with(std::string_view(text_).substr(*behind), header)) return *behind + header.size();
      }
    }
    return content_begin(message);
  }

  // Where the content of a message begins, or what is left of it without its reasoning; as long as no reasoning comes before.
  [[nodiscard]] std::optional<size_t> content_begin(size_t message) const {
    for (const size_t offset : {size_t{0}, inline_thought(messages_[message]).size()}) {
      const auto marked = render_marked(messages_, message, offset, false);
      const size_t at = marked ? common_prefix(text_, *marked) : 0;
      if (marked && starts_with(std::string_view(*marked).substr(at), kMark) && !thought_before(message, at)) return at;
    }
    return std::nullopt;
  }

  [[nodiscard]] bool thought_before(size_t message, size_t at) const {
    std::vector<std::string> thoughts = {std::string(inline_thought(messages_[message]))};
    for (const std::string_view field : {"reasoning_content", "thinking", "reasoning"})
      if (const Json* value = messages_[message].find(field); value != nullptr && value->is_text())
        thoughts.push_back(value->as_text(kWhere));
    return std::any_of(thoughts.begin(), thoughts.end(), [&](const std::string& thought) {
      const std::string_view said = py_strip(thought);
      return !said.empty() && std::string_view(text_).substr(0, at).find(said) != std::string_view::npos;
    });
  }

  // The turn ends where the conversation up to it ends.
  [[nodiscard]] std::optional<size_t> find_end(size_t message, size_t begin) const {
    const auto last = render(first(message + 1), false);
    if (!last) return std::nullopt;
    if (starts_with(text_, *last)) return last->size();
    const std::string_view text = text_;
    const auto asked = render(first(message), true);
    if (asked && starts_with(*last, *asked)) {
      const std::string_view turn = std::string_view(*last).substr(asked->size());
      if (starts_with(text.substr(begin), turn)) return begin + turn.size();
    }
    // The turn itself is written differently when it is not the last: use what follows its content.
    const auto behind_last = content_end(*last, first(message + 1), message, false);
    const auto behind = content_end(text_, messages_, message, false);
    if (!behind || !behind_last) return std::nullopt;
    const std::string_view closing = std::string_view(*last).substr(*behind_last), rest = text.substr(*behind);
    if (starts_with(rest, closing)) return *behind + closing.size();
    // The last message may close the whole conversation too: <|end|> and <|endoftext|>. What both share closes the turn, without
    // the beginning of a token whose rest differs.
    std::string_view shared = rest.substr(0, common_prefix(rest, closing));
    if (const size_t open = shared.rfind('<'); open != std::string_view::npos && shared.find('>', open) == std::string_view::npos)
      shared = shared.substr(0, open);
    return py_strip(shared).empty() ? std::nullopt : std::optional(*behind + shared.size());
  }

  const ChatTemplate& chat_;
  const Json::Array& messages_;
  const ChatOptions& options_;
  std::string text_;
};

ChatTurns from_generation(const ChatTemplate& chat, const Json& messages, const ChatOptions& options,
                          const std::vector<size_t>& assistants) {
  JinjaTemplate::Rendered rendered = chat.render_generated(messages, options);
  ChatTurns result{std::move(rendered.text), {}};
  for (const ByteSpan& span : rendered.generated) {
    if (!result.turns.empty() && result.turns.back().bytes.end == span.begin) {
      result.turns.back().bytes.end = span.end;  // a turn and the token that ends it, each in its own block
    } else {
      result.turns.push_back({std::nullopt, span});
    }
  }
  for (size_t i = 0; i < assistants.size() && result.turns.size() == assistants.size(); ++i) result.turns[i].message = assistants[i];
  return result;
}

}  // namespace

ChatTurns render_turns(const ChatTemplate& chat, const Json& messages, ChatOptions options) {
  options.add_generation_prompt = false;
  check(options.continue_field.empty(), "a conversation to train on cannot leave its last message open");
  const Json::Array& all = messages.as_array(kWhere);
  const std::vector<size_t> assistants = assistant_messages(all);
  if (chat.has_generation(options)) return from_generation(chat, messages, options, assistants);
  const TurnFinder finder(chat, all, options);
  ChatTurns result{finder.text(), {}};
  if (!assistants.empty()) finder.check_ending(assistants.back());
  for (const size_t message : assistants) result.turns.push_back({message, finder.find(message)});
  return result;
}

}  // namespace kedge
