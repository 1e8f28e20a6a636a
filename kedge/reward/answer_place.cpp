#include "kedge/reward/answer_place.h"

#include <algorithm>
#include <array>

namespace kedge {
namespace {

constexpr auto kNowhere = std::string_view::npos;

// The place behind the last of the marks; npos if there is none.
size_t behind_last(std::string_view text, auto& marks) {
  size_t behind = kNowhere;
  for (const std::string_view mark : marks)
    if (const size_t at = text.rfind(mark); at != kNowhere && (behind == kNowhere || at + mark.size() > behind)) behind = at + mark.size();
  return behind;
}

bool same_letters(std::string_view text, size_t at, std::string_view lower) {
  if (at + lower.size() > text.size()) return false;
  return std::equal(lower.begin(), lower.end(), text.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char wanted, char c) { return wanted == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c); });
}

// Is "!", with this behind it, the end of a sentence? It is a factorial where the sentence goes on.
bool ends_exclamation(std::string_view behind) {
  const size_t next = behind.find_first_not_of("!* ");
  if (next == kNowhere || behind[next] == '\n') return true;
  return next > 0 && behind[next - 1] == ' ' && behind[next] >= 'A' && behind[next] <= 'Z';
}

// A point ends a sentence if white space or the end follows, and no digit stands before a digit. So does an exclamation mark behind a
// number or the letter of a choice.
size_t sentence_end(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') return at;
    if (text[at] == '.' && (at + 1 == text.size() || text[at + 1] == ' ' || text[at + 1] == '\n')) return at;
    const char before = at > 0 ? text[at - 1] : ' ';
    const bool is_answer = (before >= '0' && before <= '9') || (before >= 'A' && before <= 'J');
    if (text[at] == '!' && is_answer && ends_exclamation(text.substr(at + 1))) return at;
  }
  return text.size();
}

struct Formula {
  size_t begin = 0, end = 0;
};

// The last pair of these delimiters, which differ.
std::optional<Formula> last_between(std::string_view text, std::string_view open, std::string_view close) {
  const size_t end = text.rfind(close);
  const size_t begin = end == kNowhere || end == 0 ? kNowhere : text.rfind(open, end - 1);
  if (begin == kNowhere || begin + open.size() > end) return std::nullopt;
  return Formula{begin + open.size(), end};
}

// Dollars pair up from the start of the text; \$ is money.
std::optional<Formula> last_between_dollars(std::string_view text) {
  std::optional<Formula> last;
  size_t open = kNowhere;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '$' || (at > 0 && text[at - 1] == '\\')) continue;
    const size_t width = at + 1 < text.size() && text[at + 1] == '$' ? 2 : 1;
    if (open == kNowhere) {
      open = at + width;
    } else {
      if (at > open) last = Formula{open, at};
      open = kNowhere;
    }
    at += width - 1;
  }
  return last;
}

}  // namespace

std::optional<std::string_view> boxed_text(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kMarks = {"\\boxed{", "\\fbox{", "\\boxed {"};
  const size_t begin = behind_last(text, kMarks);
  if (begin == kNowhere) return std::nullopt;
  text.remove_prefix(begin);
  int depth = 1;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;  // \{ and \} are part of the formula
      continue;
    }
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return text.substr(0, at);
  }
  return text;
}

std::optional<std::string_view> behind_hashes(std::string_view text) {
  static constexpr std::array<std::string_view, 1> kMarks = {"####"};
  const size_t begin = behind_last(text, kMarks);
  if (begin == kNowhere) return std::nullopt;
  return text.substr(begin);
}

std::optional<std::string_view> behind_answer_is(std::string_view text) {
  static constexpr std::array<std::string_view, 4> kPhrases = {"answer is", "answer:", "answer is:", "answer:**"};
  size_t begin = kNowhere;
  for (size_t at = 0; at < text.size(); ++at)
    for (const std::string_view phrase : kPhrases)
      if (same_letters(text, at, phrase)) begin = at + phrase.size();
  if (begin == kNowhere) return std::nullopt;
  text.remove_prefix(begin);
  const size_t first = text.find_first_not_of(" \t\n\r:*");
  if (first == kNowhere) return std::nullopt;
  text.remove_prefix(first);
  return text.substr(0, sentence_end(text));
}

std::optional<std::string_view> last_formula(std::string_view text) {
  std::optional<Formula> last = last_between_dollars(text);
  for (const auto& [open, close] : {std::pair{"\\(", "\\)"}, std::pair{"\\[", "\\]"}})
    if (const auto found = last_between(text, open, close); found && (!last || found->end > last->end)) last = found;
  if (!last) return std::nullopt;
  return text.substr(last->begin, last->end - last->begin);
}

}  // namespace kedge
