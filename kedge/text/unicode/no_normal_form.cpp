// Replaces normal_form.cpp if utf8proc is not installed.
#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/text/unicode/normal_form.h"

namespace kedge {

std::string to_normal_form(std::string_view text, NormalForm form) {
  check(surely_in_form(text, form),
        "this text needs a Unicode normal form, and kedge was built without utf8proc: install libutf8proc-dev and build again");
  return std::string(text);
}

std::string to_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    check(static_cast<unsigned char>(c) < 0x80,
          "this text needs Unicode's lower case, and kedge was built without utf8proc: install libutf8proc-dev and build again");
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

size_t grapheme_length(std::string_view text) {
  const bool plain = static_cast<unsigned char>(text[0]) < 0x80 && (text.size() == 1 || static_cast<unsigned char>(text[1]) < 0x80);
  check(plain, "this text needs Unicode's graphemes, and kedge was built without utf8proc: install libutf8proc-dev and build again");
  return text.starts_with("\r\n") ? 2 : 1;
}

}  // namespace kedge
