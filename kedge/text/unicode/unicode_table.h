#pragma once
// The numbers behind unicode.h, read off the `tokenizers` package by tests/golden/make_unicode_table.py.
#include <cstdint>
#include <span>

namespace kedge {

struct CodeRange {
  char32_t first;
  char32_t last;
};

struct CaseRange {
  char32_t first;
  char32_t last;
  int32_t step;  // lower case is the code point plus this
};

// Where a run of one general category starts: code point << 8 | Category. Unicode 16, all code points.
std::span<const uint32_t> category_runs();

// Unicode 10 and later: the package's normal forms (Unicode 9) neither decompose, reorder nor compose these.
std::span<const CodeRange> frozen_codes();

// Punctuation today that the package's Punctuation (Unicode 8) does not know.
std::span<const CodeRange> late_punctuation();

// Lower case of letters that are newer than Unicode 14.
std::span<const CaseRange> late_lower_case();

}  // namespace kedge
