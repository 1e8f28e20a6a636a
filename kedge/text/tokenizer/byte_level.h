#pragma once
// GPT-2's way of writing any byte as a visible character: printable Latin-1 is unchanged, the other 68 bytes become U+0100
// and up, so that a space is written as U+0120. Token strings of byte-level files are in it. And SentencePiece's way.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kedge {

[[nodiscard]] char32_t byte_to_char(uint8_t byte);
[[nodiscard]] std::optional<uint8_t> char_to_byte(char32_t code);

void append_byte_level(std::string& out, std::string_view bytes);

// The bytes of a token; nothing if one of its characters is not of this alphabet.
[[nodiscard]] std::optional<std::string> from_byte_level(std::string_view token);

// SentencePiece's spelling of a byte that no piece covers: "<0x0A>".
[[nodiscard]] std::string byte_token(uint8_t byte);
[[nodiscard]] std::optional<uint8_t> byte_of_token(std::string_view token);

}  // namespace kedge
