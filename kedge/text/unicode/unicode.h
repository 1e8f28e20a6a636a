#pragma once
// What kind of character a code point is, as the `tokenizers` package sees it and the same on every machine. Uses no library,
// whose Unicode version would differ from one system to the next. Does not change text: that is normal_form.h.
#include <array>
#include <cstdint>
#include <string_view>

namespace kedge {

inline constexpr char32_t kNumCodePoints = 0x110000;

// Unicode's general categories, in the order of unicode_table.cpp.
enum class Category : uint8_t {
  // clang-format off
  Cn, Lu, Ll, Lt, Lm, Lo, Mn, Mc, Me, Nd, Nl, No, Pc, Pd, Ps, Pe, Pi, Pf, Po, Sm, Sc, Sk, So, Zs, Zl, Zp, Cc, Cf, Co
  // clang-format on
};

// One byte for each code point: its category in the low five bits and these flags above them.
class CharTable {
 public:
  static constexpr uint8_t kCategoryBits = 0x1F;
  static constexpr uint8_t kFrozenFlag = 0x20;
  static constexpr uint8_t kLatePunctuationFlag = 0x40;
  static constexpr uint8_t kSpaceFlag = 0x80;

  CharTable();

  [[nodiscard]] Category category(char32_t code) const { return static_cast<Category>(bytes_[code] & kCategoryBits); }
  [[nodiscard]] bool is_letter(char32_t code) const { return category(code) >= Category::Lu && category(code) <= Category::Lo; }
  [[nodiscard]] bool is_mark(char32_t code) const { return category(code) >= Category::Mn && category(code) <= Category::Me; }
  [[nodiscard]] bool is_number(char32_t code) const { return category(code) >= Category::Nd && category(code) <= Category::No; }
  // White_Space: \s of the expressions and of Rust.
  [[nodiscard]] bool is_space(char32_t code) const { return (bytes_[code] & kSpaceFlag) != 0; }
  // What a Punctuation pre-tokenizer splits on: all of ASCII's, and Unicode 8's.
  [[nodiscard]] bool is_punctuation(char32_t code) const;
  // \w of Rust's expressions: letters, marks, decimal digits, connectors, joiners, letter-like numbers and circled letters.
  [[nodiscard]] bool is_word(char32_t code) const;
  // What StripAccents removes.
  [[nodiscard]] bool is_accent(char32_t code) const;
  // Left alone by normal forms.
  [[nodiscard]] bool is_frozen(char32_t code) const { return (bytes_[code] & kFrozenFlag) != 0; }

 private:
  std::array<uint8_t, kNumCodePoints> bytes_{};
};

// The one table, built at first use.
const CharTable& char_table();

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// Is the text in that form for sure, judging by its code points? False means unknown.
[[nodiscard]] bool surely_in_form(std::string_view text, NormalForm form);

}  // namespace kedge
