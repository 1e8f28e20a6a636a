#include "kedge/core/utf8.h"

namespace kedge {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// Bytes at the front of broken text that could have begun one character; at least 1.
size_t broken_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t wanted = first >= 0xC2 && first <= 0xDF ? 2 : first >= 0xE0 && first <= 0xEF ? 3 : first >= 0xF0 && first <= 0xF4 ? 4 : 1;
  size_t length = 1;
  while (length < wanted && length < text.size() && is_continuation(text[length])) ++length;
  if (length == 1) return 1;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool second_fits = !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second > 0x9F) && !(first == 0xF0 && second < 0x90) &&
                           !(first == 0xF4 && second > 0x8F);
  return second_fits ? length : 1;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  size_t length = 0;
  if (first >= 0xC2 && first <= 0xDF) length = 2;  // C0 and C1 would be overlong
  if (first >= 0xE0 && first <= 0xEF) length = 3;
  if (first >= 0xF0 && first <= 0xF4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if (!is_continuation(text[i])) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  if (first == 0xE0 && second < 0xA0) return 0;  // overlong
  if (first == 0xED && second > 0x9F) return 0;  // surrogate
  if (first == 0xF0 && second < 0x90) return 0;  // overlong
  if (first == 0xF4 && second > 0x8F) return 0;  // above U+10FFFF
  return length;
}

size_t utf8_valid_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string utf8_replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t valid = utf8_valid_prefix(text);
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) break;
    out.append("\xEF\xBF\xBD");
    text.remove_prefix(broken_length(text));
  }
  return out;
}

char32_t utf8_decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  switch (utf8_length(text)) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1FU) << 6U | (byte(1) & 0x3FU);
    case 3:
      return (byte(0) & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU);
    case 4:
      return (byte(0) & 0x07U) << 18U | (byte(1) & 0x3FU) << 12U | (byte(2) & 0x3FU) << 6U | (byte(3) & 0x3FU);
    default:
      return 0xFFFD;
  }
}

void utf8_append(std::string& out, char32_t code_point) {
  const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80U | ((code_point >> shift) & 0x3FU)); };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xC0U | (code_point >> 6U));
    tail(0);
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xE0U | (code_point >> 12U));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code_point >> 18U));
    tail(12), tail(6), tail(0);
  }
}

std::string utf8_without_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) continue;
    if (byte == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0U) == 0x80) {  // U+0080 to U+009F
      ++i;
      continue;
    }
    out += text[i];
  }
  return out;
}

}  // namespace kedge
