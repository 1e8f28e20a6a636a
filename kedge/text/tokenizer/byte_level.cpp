#include "kedge/text/tokenizer/byte_level.h"

#include <array>
#include <charconv>
#include <system_error>

#include "kedge/core/utf8.h"

namespace kedge {
namespace {

constexpr size_t kNumChars = 256 + 68;

constexpr bool stands_for_itself(unsigned byte) { return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD); }

struct Alphabet {
  std::array<uint16_t, 256> chars{};
  std::array<int16_t, kNumChars> bytes{};

  constexpr Alphabet() {
    bytes.fill(-1);
    uint16_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const uint16_t code = stands_for_itself(byte) ? static_cast<uint16_t>(byte) : next++;
      chars[byte] = code;
      bytes[code] = static_cast<int16_t>(byte);
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

char32_t byte_to_char(uint8_t byte) { return kAlphabet.chars[byte]; }

std::optional<uint8_t> char_to_byte(char32_t code) {
  if (code >= kNumChars || kAlphabet.bytes[code] < 0) return std::nullopt;
  return static_cast<uint8_t>(kAlphabet.bytes[code]);
}

void append_byte_level(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) utf8_append(out, byte_to_char(static_cast<uint8_t>(byte)));
}

std::optional<std::string> from_byte_level(std::string_view token) {
  std::string out;
  while (!token.empty()) {
    const auto byte = char_to_byte(utf8_decode(token));
    const size_t length = utf8_length(token);
    if (!byte || length == 0) return std::nullopt;
    out += static_cast<char>(*byte);
    token.remove_prefix(length);
  }
  return out;
}

std::string byte_token(uint8_t byte) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  return {'<', '0', 'x', kHex[byte >> 4U], kHex[byte & 0xFU], '>'};
}

std::optional<uint8_t> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  uint8_t byte = 0;
  const auto result = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (result.ec != std::errc() || result.ptr != token.data() + 5) return std::nullopt;
  return byte;
}

}  // namespace kedge
