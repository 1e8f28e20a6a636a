#include "kedge/text/unicode/python_unicode.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "kedge/core/utf8.h"
#include "kedge/text/unicode/python_unicode_tables.h"

namespace kedge {
namespace {

namespace tables = python_unicode_tables;

std::vector<int64_t> numbers_of(std::string_view table) {
  std::vector<int64_t> numbers;
  int64_t number = 0;
  bool negative = false;
  for (const char c : table) {
    if (c == ' ') {
      numbers.push_back(negative ? -number : number);
      number = 0, negative = false;
    } else if (c == '-') {
      negative = true;
    } else {
      number = number * 36 + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
  }
  numbers.push_back(negative ? -number : number);
  return numbers;
}

struct Run {
  int64_t first, last, stride, distance;
};

// Runs of characters, every one or every other, with what they share.
class Runs {
 public:
  Runs(std::string_view table, bool with_distance) {
    const std::vector<int64_t> numbers = numbers_of(table);
    const size_t width = with_distance ? 4 : 3;
    int64_t previous = 0;
    for (size_t i = 0; i + width <= numbers.size(); i += width) {
      const int64_t first = previous + numbers[i];
      previous = first + numbers[i + 1] * numbers[i + 2];
      runs_.push_back({first, previous, numbers[i + 2], with_distance ? numbers[i + 3] : 0});
    }
  }

  [[nodiscard]] const Run* find(char32_t c) const {
    const auto at = static_cast<int64_t>(c);
    const auto run = std::lower_bound(runs_.begin(), runs_.end(), at, [](const Run& r, int64_t value) { return r.last < value; });
    if (run == runs_.end() || at < run->first || (at - run->first) % run->stride != 0) return nullptr;
    return &*run;
  }

 private:
  std::vector<Run> runs_;
};

using Expansions = std::map<char32_t, std::u32string>;

Expansions expansions_of(std::string_view table) {
  Expansions expansions;
  const std::vector<int64_t> numbers = numbers_of(table);
  for (size_t i = 0; i + 1 < numbers.size();) {
    std::u32string& to = expansions[static_cast<char32_t>(numbers[i])];
    const auto count = static_cast<size_t>(numbers[i + 1]);
    for (size_t j = 0; j < count; ++j) to += static_cast<char32_t>(numbers[i + 2 + j]);
    i += 2 + count;
  }
  return expansions;
}

// Appends what one character becomes: from `expands` if it is there, else by `moves`.
void append_mapped(std::string& out, char32_t c, const Expansions& expands, const Runs& moves) {
  if (const auto several = expands.find(c); several != expands.end()) {
    for (const char32_t one : several->second) utf8_append(out, one);
    return;
  }
  const Run* run = moves.find(c);
  utf8_append(out, run == nullptr ? c : static_cast<char32_t>(static_cast<int64_t>(c) + run->distance));
}

void append_upper(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 0x20 : c);
    return;
  }
  static const Runs moves(tables::kToUpper, true);
  static const Expansions expands = expansions_of(tables::kUpperExpands);
  append_mapped(out, c, expands, moves);
}

void append_title(std::string& out, char32_t c) {
  static const Expansions differs = expansions_of(tables::kTitleDiffers);
  if (const auto several = differs.find(c); several != differs.end()) {
    for (const char32_t one : several->second) utf8_append(out, one);
  } else {
    append_upper(out, c);
  }
}

// A capital sigma ends a word if a cased character is before it and none after it, ignoring marks.
bool ends_word(std::u32string_view text, size_t at) {
  static const Runs cased(tables::kCased, false);
  static const Runs cased_or_ignored(tables::kCasedOrIgnored, false);
  const auto skipped = [&](char32_t c) { return cased_or_ignored.find(c) != nullptr && cased.find(c) == nullptr; };
  size_t before = at;
  while (before > 0 && skipped(text[before - 1])) --before;
  if (before == 0 || cased.find(text[before - 1]) == nullptr) return false;
  size_t after = at + 1;
  while (after < text.size() && skipped(text[after])) ++after;
  return after == text.size() || cased.find(text[after]) == nullptr;
}

void append_lower(std::string& out, std::u32string_view text, size_t at) {
  static const Runs moves(tables::kToLower, true);
  static const Expansions expands = expansions_of(tables::kLowerExpands);
  constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2;
  const char32_t c = text[at];
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 0x20 : c);
    return;
  }
  if (c == kCapitalSigma && ends_word(text, at)) {
    utf8_append(out, kFinalSigma);
  } else {
    append_mapped(out, c, expands, moves);
  }
}

std::u32string decode(std::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  while (!text.empty()) {
    points += utf8_decode(text);
    text.remove_prefix(utf8_length(text));
  }
  return points;
}

}  // namespace

bool py_is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool py_is_line_break(char32_t c) { return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029; }

bool py_is_alpha(char32_t c) {
  static const Runs runs(tables::kAlpha, false);
  return runs.find(c) != nullptr;
}

bool py_is_decimal(char32_t c) { return py_decimal_value(c) >= 0; }

int py_decimal_value(char32_t c) {
  static const Runs runs(tables::kDecimal, false);
  const Run* run = runs.find(c);
  return run == nullptr ? -1 : static_cast<int>((static_cast<int64_t>(c) - run->first) % 10);
}

bool py_is_digit(char32_t c) {
  static const Runs runs(tables::kDigit, false);
  return runs.find(c) != nullptr;
}

bool py_is_numeric(char32_t c) {
  static const Runs runs(tables::kNumeric, false);
  return runs.find(c) != nullptr;
}

bool py_is_alnum(char32_t c) { return py_is_alpha(c) || py_is_numeric(c); }

bool py_is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  static const Runs runs(tables::kPrintable, false);
  return runs.find(c) != nullptr;
}

bool py_is_upper(char32_t c) {
  static const Runs runs(tables::kUpper, false);
  return runs.find(c) != nullptr;
}

bool py_is_lower(char32_t c) {
  static const Runs runs(tables::kLower, false);
  return runs.find(c) != nullptr;
}

bool py_is_cased(char32_t c) {
  constexpr std::array<char32_t, 4> kTitleLetters = {0x1C5, 0x1C8, 0x1CB, 0x1F2};
  const bool greek_title = (c >= 0x1F88 && c <= 0x1FAF && (c & 8U) != 0) || c == 0x1FBC || c == 0x1FCC || c == 0x1FFC;
  return py_is_upper(c) || py_is_lower(c) || greek_title || std::find(kTitleLetters.begin(), kTitleLetters.end(), c) != kTitleLetters.end();
}

std::string py_upper(std::string_view text) {
  std::string out;
  for (const char32_t c : decode(text)) append_upper(out, c);
  return out;
}

std::string py_lower(std::string_view text) {
  std::string out;
  const std::u32string points = decode(text);
  for (size_t i = 0; i < points.size(); ++i) append_lower(out, points, i);
  return out;
}

std::string py_title(std::string_view text) {
  std::string out;
  const std::u32string points = decode(text);
  bool in_word = false;
  for (size_t i = 0; i < points.size(); ++i) {
    if (in_word) {
      append_lower(out, points, i);
    } else {
      append_title(out, points[i]);
    }
    in_word = py_is_cased(points[i]);
  }
  return out;
}

std::string py_capitalize(std::string_view text) {
  std::string out;
  const std::u32string points = decode(text);
  for (size_t i = 0; i < points.size(); ++i) {
    if (i == 0) {
      append_title(out, points[i]);
    } else {
      append_lower(out, points, i);
    }
  }
  return out;
}

std::string py_swapcase(std::string_view text) {
  std::string out;
  const std::u32string points = decode(text);
  for (size_t i = 0; i < points.size(); ++i) {
    if (py_is_upper(points[i])) {
      append_lower(out, points, i);
    } else if (py_is_lower(points[i])) {
      append_upper(out, points[i]);
    } else {
      utf8_append(out, points[i]);
    }
  }
  return out;
}

std::string_view py_lstrip(std::string_view text) {
  while (!text.empty() && py_is_space(utf8_decode(text))) text.remove_prefix(utf8_length(text));
  return text;
}

std::string_view py_rstrip(std::string_view text) {
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0U) == 0x80U) --last;
    if (!py_is_space(utf8_decode(text.substr(last)))) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

std::string_view py_strip(std::string_view text) { return py_lstrip(py_rstrip(text)); }

}  // namespace kedge
