#include "kedge/text/unicode/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/unicode/unicode.h"
#include "kedge/text/unicode/unicode_table.h"

namespace kedge {
namespace {

void append_form(std::string& out, std::string_view text, NormalForm form) {
  if (text.empty()) return;
  const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const int options = UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (compatible ? UTF8PROC_COMPAT : 0);
  utf8proc_uint8_t* result = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                                 &result, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  if (size < 0) throw Error(str("Unicode normal form: ", utf8proc_errmsg(size)));
  out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(size));
}

char32_t lower(char32_t code) {
  for (const CaseRange& range : late_lower_case())
    if (code >= range.first && code <= range.last) return static_cast<char32_t>(static_cast<int32_t>(code) + range.step);
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

}  // namespace

std::string to_normal_form(std::string_view text, NormalForm form) {
  if (surely_in_form(text, form)) return std::string(text);
  // A frozen code point neither changes nor touches its neighbours, so the text falls apart there.
  // So does U+11A7, which utf8proc 2.8 loses after a Hangul syllable.
  constexpr char32_t kNoTrailingConsonant = 0x11A7;
  const CharTable& table = char_table();
  std::string out;
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    const char32_t code = utf8_decode(text.substr(at));
    if (table.is_frozen(code) || code == kNoTrailingConsonant) {
      append_form(out, text.substr(start, at - start), form);
      out.append(text.substr(at, length));
      start = at + length;
    }
    at += length;
  }
  append_form(out, text.substr(start), form);
  return out;
}

std::string to_lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const char32_t code = utf8_decode(text);
    text.remove_prefix(utf8_length(text));
    if (code == 0x130) {
      out += "i\xCC\x87";  // the one letter whose lower case is two: i and a dot above
    } else {
      utf8_append(out, lower(code));
    }
  }
  return out;
}

size_t grapheme_length(std::string_view text) {
  utf8proc_int32_t state = 0;
  auto before = static_cast<utf8proc_int32_t>(utf8_decode(text));
  size_t length = utf8_length(text);
  while (length < text.size()) {
    const auto next = static_cast<utf8proc_int32_t>(utf8_decode(text.substr(length)));
    if (utf8proc_grapheme_break_stateful(before, next, &state)) break;
    length += utf8_length(text.substr(length));
    before = next;
  }
  return length;
}

}  // namespace kedge
