#include "kedge/text/unicode/unicode.h"

#include <algorithm>
#include <memory>
#include <span>

#include "kedge/core/utf8.h"
#include "kedge/text/unicode/unicode_table.h"

namespace kedge {
namespace {

constexpr CodeRange kSpaces[] = {{0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
                                 {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

// Alphabetic, although their category (So) says symbol.
constexpr CodeRange kCircledLetters[] = {{0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

// Code points from U+0300 on that NFC neither changes nor combines with what is before them: the scripts and symbols that
// fill ordinary text.
constexpr CodeRange kSettledInNfc[] = {{0x388, 0x482},   {0x48A, 0x590},   {0x10A0, 0x10FF}, {0x2010, 0x205E},   {0x20A0, 0x20CF},
                                       {0x2190, 0x2328}, {0x232B, 0x2ADB}, {0x3001, 0x3029}, {0x3030, 0x3098},   {0x309B, 0x30FF},
                                       {0x3400, 0xA66E}, {0xAC00, 0xD7A3}, {0xFE30, 0xFFFF}, {0x1F000, 0x1FAFF}, {0x20000, 0x2A6DF}};

bool among(std::span<const CodeRange> ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const CodeRange& range) { return code >= range.first && code <= range.last; });
}

}  // namespace

CharTable::CharTable() {
  const auto runs = category_runs();
  for (size_t i = 0; i < runs.size(); ++i) {
    const char32_t end = i + 1 < runs.size() ? runs[i + 1] >> 8U : kNumCodePoints;
    std::fill(bytes_.begin() + (runs[i] >> 8U), bytes_.begin() + end, static_cast<uint8_t>(runs[i] & 0xFFU));
  }
  const auto flag = [&](std::span<const CodeRange> ranges, uint8_t bit) {
    for (const CodeRange& range : ranges)
      for (char32_t code = range.first; code <= range.last; ++code) bytes_[code] |= bit;
  };
  flag(frozen_codes(), kFrozenFlag);
  flag(late_punctuation(), kLatePunctuationFlag);
  flag(kSpaces, kSpaceFlag);
}

bool CharTable::is_punctuation(char32_t code) const {
  if (code < 0x80) return code > 0x20 && code < 0x7F && !is_letter(code) && !is_number(code);
  if (code == 0x166D || code == 0x111C9) return true;  // punctuation once, reclassified since
  const Category kind = category(code);
  return kind >= Category::Pc && kind <= Category::Po && (bytes_[code] & kLatePunctuationFlag) == 0;
}

bool CharTable::is_word(char32_t code) const {
  const Category kind = category(code);
  if (kind >= Category::Lu && kind <= Category::Nl) return true;
  return kind == Category::Pc || code == 0x200C || code == 0x200D || (kind == Category::So && among(kCircledLetters, code));
}

bool CharTable::is_accent(char32_t code) const {
  return (is_mark(code) && !is_frozen(code)) || code == 0x1CF2 || code == 0x1CF3;  // the last two were marks in Unicode 9
}

bool surely_in_form(std::string_view text, NormalForm form) {
  // Lead bytes rise with the code point; below these, every code point is in the form and nothing composes.
  const unsigned char limit = form == NormalForm::nfc ? 0xCC : form == NormalForm::nfd ? 0xC3 : 0xC2;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < limit) continue;
    if (form != NormalForm::nfc || !among(kSettledInNfc, utf8_decode(text.substr(at)))) return false;
  }
  return true;
}

const CharTable& char_table() {
  static const auto table = std::make_unique<const CharTable>();  // a megabyte: not for the stack
  return *table;
}

}  // namespace kedge
