#pragma once
// A hash of a long sequence of bits, to find changes. Every word of four bytes is multiplied with an odd number determined by its
// position, and the products are added up modulo 2^64: a flipped bit changes the sum by a power of two below 2^32 times an odd number,
// which is never 0. Sums of integers do not depend on the order, so the bits may be read in any pieces, by any number of threads, on any
// device. Not cryptographic.
#include <cstdint>
#include <string>
#include <string_view>

namespace kedge {

// What the words of `bytes`, the first of which has position `first_word`, add to the sum. An incomplete last word is padded
// with zeros.
[[nodiscard]] uint64_t bit_sum(std::string_view bytes, uint64_t first_word);

// The hash of `num_bytes` bytes with this sum: 16 digits.
[[nodiscard]] std::string bit_hash_text(uint64_t sum, uint64_t num_bytes);
// Of contiguous bytes.
[[nodiscard]] std::string bit_hash(std::string_view bytes);

// How a position becomes its factor, for code that computes it elsewhere: multiplied with kPlaceStep, from place 1 on, xor with itself
// shifted right by kPlaceShift, multiplied with kPlaceSpread, the lowest bit set.
inline constexpr uint64_t kPlaceStep = 0x9E3779B97F4A7C15U, kPlaceSpread = 0xD6E8FEB86659FD93U;
inline constexpr int kPlaceShift = 32;

}  // namespace kedge
