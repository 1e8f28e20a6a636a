#include "kedge/text/tokenizer/charsmap.h"

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/unicode/normal_form.h"

namespace kedge {
namespace {

// A unit of the trie: where its children are, the byte that leads here, whether an entry ends here.
uint32_t offset_of(uint32_t unit) { return (unit >> 10U) << ((unit & (1U << 9U)) >> 6U); }
uint32_t label_of(uint32_t unit) { return unit & ((1U << 31U) | 0xFFU); }
bool ends_entry(uint32_t unit) { return (unit >> 8U & 1U) != 0; }
uint32_t value_of(uint32_t unit) { return unit & ((1U << 31U) - 1); }

uint32_t little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}

std::string decode_base64(std::string_view text, const std::string& where) {
  static constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0;
  unsigned num_bits = 0;
  for (const char c : text) {
    const size_t digit = kBase64Digits.find(c);
    check(digit != std::string_view::npos, where, ": not base64");
    bits = bits << 6U | static_cast<uint32_t>(digit);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    out += static_cast<char>(bits >> num_bits & 0xFFU);
  }
  return out;
}

}  // namespace

Charsmap::Charsmap(std::string_view blob, const std::string& where) {
  if (blob.empty()) return;
  check(blob.size() > 4, where, ": the table of replacements is cut short");
  const uint32_t size = little_endian(blob);
  check(size >= 4 && size % 4 == 0 && size < blob.size() - 4, where, ": the table of replacements says it has ", size, " bytes of ",
        blob.size() - 4);
  for (uint32_t i = 0; i < size; i += 4) units_.push_back(little_endian(blob.substr(4 + i, 4)));
  texts_ = blob.substr(4 + size);
  check(texts_.back() == '\0', where, ": the last replacement has no end");
  check(utf8_valid_prefix(texts_) == texts_.size(), where, ": a replacement is not UTF-8");
}

Charsmap Charsmap::from_base64(std::string_view text, const std::string& where) { return Charsmap(decode_base64(text, where), where); }

template <typename Visit>
void Charsmap::each_prefix(std::string_view text, Visit&& visit) const {
  if (units_.empty()) return;
  uint32_t node = offset_of(units_[0]);
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label_of(units_[node]) != byte) return;
    const uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (node >= units_.size()) return;
    if (ends_entry(unit) && value_of(units_[node]) < texts_.size()) visit(i + 1, value_of(units_[node]));
  }
}

std::string_view Charsmap::text_at(size_t offset) const {
  // A broken table may point into the middle of a character; the rest of it is not text.
  const std::string_view text = std::string_view(texts_).substr(offset, texts_.find('\0', offset) - offset);
  return utf8_valid_prefix(text) == text.size() ? text : std::string_view();
}

Charsmap::Found Charsmap::longest(std::string_view text) const {
  Found found;
  each_prefix(text, [&](size_t length, size_t offset) { found = {length, text_at(offset)}; });
  return found;
}

Charsmap::Found Charsmap::shortest(std::string_view text) const {
  Found found;
  each_prefix(text, [&](size_t length, size_t offset) {
    if (found.length == 0) found = {length, text_at(offset)};
  });
  return found;
}

std::string Charsmap::replace_graphemes(std::string_view text) const {
  constexpr size_t kShortGrapheme = 6;
  std::string out;
  while (!text.empty()) {
    std::string_view grapheme = text.substr(0, grapheme_length(text));
    text.remove_prefix(grapheme.size());
    if (grapheme.size() < kShortGrapheme) {
      if (const Found found = shortest(grapheme); found.length > 0) {
        out.append(found.replacement);
        continue;
      }
    }
    while (!grapheme.empty()) {
      const std::string_view character = grapheme.substr(0, utf8_length(grapheme));
      grapheme.remove_prefix(character.size());
      const Found found = shortest(character);
      out.append(found.length > 0 ? found.replacement : character);
    }
  }
  return out;
}

}  // namespace kedge
