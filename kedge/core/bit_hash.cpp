#include "kedge/core/bit_hash.h"

#include <array>
#include <cstring>

namespace kedge {
namespace {

uint64_t factor_of(uint64_t place) {
  uint64_t factor = (place + 1) * kPlaceStep;
  factor ^= factor >> kPlaceShift;
  return (factor * kPlaceSpread) | 1U;
}

uint32_t word_at(const char* bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

uint64_t bit_sum(std::string_view bytes, uint64_t first_word) {
  constexpr size_t kWord = sizeof(uint32_t);
  const size_t num_whole = bytes.size() / kWord;
  uint64_t sum = 0;
  for (size_t i = 0; i < num_whole; ++i) sum += word_at(bytes.data() + i * kWord) * factor_of(first_word + i);
  if (const std::string_view rest = bytes.substr(num_whole * kWord); !rest.empty()) {
    std::array<char, kWord> filled{};
    rest.copy(filled.data(), rest.size());
    sum += word_at(filled.data()) * factor_of(first_word + num_whole);
  }
  return sum;
}

std::string bit_hash_text(uint64_t sum, uint64_t num_bytes) {
  uint64_t hash = sum ^ factor_of(num_bytes);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, hash >>= 4U) *digit = kDigits[hash & 15U];
  return text;
}

std::string bit_hash(std::string_view bytes) { return bit_hash_text(bit_sum(bytes, 0), bytes.size()); }

}  // namespace kedge
