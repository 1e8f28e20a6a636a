#include "kedge/core/fingerprint.h"

namespace kedge {

void Fingerprint::mix(uint8_t byte) {
  hash_ ^= byte;
  hash_ *= 0x100000001B3U;
}

void Fingerprint::add(int64_t number) {
  for (unsigned shift = 0; shift < 64; shift += 8) mix(static_cast<uint8_t>(static_cast<uint64_t>(number) >> shift));
}

void Fingerprint::add(std::string_view bytes) {
  add(static_cast<int64_t>(bytes.size()));
  for (const char byte : bytes) mix(static_cast<uint8_t>(byte));
}

std::string Fingerprint::hex() const {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(hash_ >> static_cast<unsigned>(shift)) & 0xFU];
  return text;
}

}  // namespace kedge
