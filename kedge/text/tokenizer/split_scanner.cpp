#include "kedge/text/tokenizer/split_scanner.h"

#include <array>

#include "kedge/core/utf8.h"
#include "kedge/text/unicode/unicode.h"

namespace kedge {
namespace {

enum class Kind : uint8_t { end, letter, number, space, newline, other };

// A view of the text that knows the kind of each character. `end` is after the last one.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), table_(char_table()) {}

  struct Char {
    Kind kind = Kind::end;
    size_t length = 0;
  };

  [[nodiscard]] Char at(size_t position) const {
    if (position >= text_.size()) return {};
    const auto byte = static_cast<unsigned char>(text_[position]);
    if (byte < 0x80) return {kAscii[byte], 1};
    const std::string_view rest = text_.substr(position);
    return {kind_of(utf8_decode(rest)), utf8_length(rest)};
  }
  [[nodiscard]] char byte(size_t position) const { return position < text_.size() ? text_[position] : '\0'; }
  [[nodiscard]] size_t size() const { return text_.size(); }

  // Where the run of characters of one kind that starts here ends, considering at most `most`.
  [[nodiscard]] size_t run(size_t position, Kind kind, size_t most = std::string_view::npos) const {
    for (; most > 0; --most) {
      const Char here = at(position);
      if (here.kind != kind) break;
      position += here.length;
    }
    return position;
  }

  // The same for white space of either kind; `last` is where its last character starts and `after_newline` the place after
  // its last CR or LF, 0 when there is none.
  struct Blank {
    size_t end = 0;
    size_t last = 0;
    size_t after_newline = 0;
  };
  [[nodiscard]] Blank blank(size_t position) const {
    Blank run{position, position, 0};
    for (Char here = at(position); here.kind == Kind::space || here.kind == Kind::newline; here = at(run.end)) {
      run.last = run.end;
      run.end += here.length;
      if (here.kind == Kind::newline) run.after_newline = run.end;
    }
    return run;
  }

  // The length of 's, 't, 're, 've, 'm, 'll or 'd at an apostrophe; 0 when it is none of them.
  [[nodiscard]] size_t contraction(size_t position, bool any_case) const {
    const auto letter = [&](size_t i) {
      const char c = byte(i);
      return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    const char first = letter(position + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    const char second = letter(position + 2);
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return 3;
    if (any_case && text_.substr(position + 1).starts_with("\xC5\xBF")) return 3;  // U+017F, a long s, is an s in another case
    return 0;
  }

 private:
  static constexpr std::array<Kind, 128> kAscii = [] {
    std::array<Kind, 128> kinds{};
    for (size_t c = 0; c < kinds.size(); ++c) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      const bool newline = c == '\r' || c == '\n';
      const bool space = c == ' ' || (c >= 0x9 && c <= 0xD);
      kinds[c] = letter ? Kind::letter : c >= '0' && c <= '9' ? Kind::number : newline ? Kind::newline : space ? Kind::space : Kind::other;
    }
    return kinds;
  }();

  [[nodiscard]] Kind kind_of(char32_t code) const {
    if (table_.is_letter(code)) return Kind::letter;
    if (table_.is_number(code)) return Kind::number;
    return table_.is_space(code) ? Kind::space : Kind::other;
  }

  std::string_view text_;
  const CharTable& table_;
};

// What `\s+(?!\S)|\s+` matches: a run of white space, without its last character if something else follows.
size_t blank_match(const Reader& reader, const Reader::Blank& blank, size_t start) {
  return blank.end == reader.size() || blank.last == start ? blank.end : blank.last;
}

size_t gpt2_match(const Reader& reader, size_t start) {
  if (reader.byte(start) == '\'')
    if (const size_t length = reader.contraction(start, false)) return start + length;
  const size_t from = reader.byte(start) == ' ' ? start + 1 : start;
  const Kind kind = reader.at(from).kind;
  if (kind == Kind::letter || kind == Kind::number || kind == Kind::other) return reader.run(from, kind);
  return blank_match(reader, reader.blank(start), start);
}

template <size_t kMaxDigits>
size_t llama3_match(const Reader& reader, size_t start) {
  if (reader.byte(start) == '\'')
    if (const size_t length = reader.contraction(start, true)) return start + length;
  const Reader::Char first = reader.at(start);
  if (first.kind == Kind::letter) return reader.run(start, Kind::letter);
  if (first.kind == Kind::number) return reader.run(start, Kind::number, kMaxDigits);
  if (first.kind != Kind::newline && reader.at(start + first.length).kind == Kind::letter)
    return reader.run(start + first.length, Kind::letter);
  const size_t from = reader.byte(start) == ' ' ? start + 1 : start;
  if (reader.at(from).kind == Kind::other) return reader.run(reader.run(from, Kind::other), Kind::newline);
  const Reader::Blank blank = reader.blank(start);
  return blank.after_newline > 0 ? blank.after_newline : blank_match(reader, blank, start);
}

template <size_t (*kMatch)(const Reader&, size_t)>
void scan(std::string_view text, size_t offset, std::vector<WordSpan>& words) {
  const Reader reader(text);
  for (size_t start = 0; start < text.size();) {
    const size_t end = kMatch(reader, start);
    words.push_back({offset + start, offset + end});
    start = end;
  }
}

}  // namespace

SplitScanner find_split_scanner(std::string_view expression) {
  if (expression == kGpt2Expression) return scan<gpt2_match>;
  if (expression == kLlama3Expression) return scan<llama3_match<3>>;
  if (expression == kQwen2Expression) return scan<llama3_match<1>>;
  return nullptr;
}

}  // namespace kedge
