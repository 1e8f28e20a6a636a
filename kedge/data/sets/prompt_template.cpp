#include "kedge/data/sets/prompt_template.h"

#include <algorithm>
#include <charconv>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"

namespace kedge {
namespace {

constexpr std::string_view kSimple = "ntr\\\"'abfv0";
constexpr std::string_view kMeaning("\n\t\r\\\"'\a\b\f\v\0", 11);

// The number of digits after \x, \u and \U; 0 for any other letter.
size_t num_digits(char letter) {
  if (letter == 'x') return 2;
  if (letter == 'u') return 4;
  return letter == 'U' ? 8 : 0;
}

}  // namespace

std::string decode_escapes(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      out += text[at];
      continue;
    }
    const char letter = text[at + 1];
    const size_t digits = num_digits(letter);
    const std::string_view hex = text.substr(at + 2, digits);
    uint32_t code = 0;
    if (digits > 0 && hex.size() == digits && std::from_chars(hex.data(), hex.data() + digits, code, 16).ptr == hex.data() + digits &&
        code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF)) {
      utf8_append(out, code);
      at += 1 + digits;
    } else if (const size_t simple = kSimple.find(letter); simple != std::string_view::npos) {
      out += kMeaning[simple];
      ++at;
    } else {
      out += '\\';
    }
  }
  return out;
}

PromptTemplate::PromptTemplate(std::string_view text, std::string_view key) {
  const std::string decoded = decode_escapes(text);
  std::string_view rest = decoded;
  while (!rest.empty()) {
    const size_t open = rest.find('{');
    const size_t close = open == std::string_view::npos ? open : rest.find('}', open);
    if (close == std::string_view::npos) {
      pieces_.push_back({std::string(rest), ""});
      break;
    }
    check(close > open + 1, key, ": {} names no field");
    const size_t blanks = rest.substr(0, open).find_last_not_of(' ') + 1;  // npos + 1 is 0
    if (blanks > 0) pieces_.push_back({std::string(rest.substr(0, blanks)), ""});
    pieces_.push_back({std::string(rest.substr(blanks, open - blanks)), std::string(rest.substr(open + 1, close - open - 1))});
    rest.remove_prefix(close + 1);
  }
  check(std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) { return !piece.field.empty(); }), key, ": \"", text,
        "\" has no {field} in it");
}

bool PromptTemplate::uses(std::string_view field) const {
  return std::any_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) { return piece.field == field; });
}

std::string PromptTemplate::fill(const Row& row) const {
  std::string out;
  for (const Piece& piece : pieces_) {
    out += piece.text;
    if (!piece.field.empty()) out += row.text(piece.field);
  }
  return out;
}

}  // namespace kedge
