#pragma once
// A hash of a tokenizer's contents, the same on every machine: equal fingerprints, equal meaning of ids. Not
// cryptographic.
#include <cstdint>
#include <string>
#include <string_view>

namespace kedge {

class Fingerprint {
 public:
  void add(std::string_view bytes);  // with its length, so that "ab", "c" differs from "a", "bc"
  void add(int64_t number);
  [[nodiscard]] std::string hex() const;  // 16 digits

 private:
  void mix(uint8_t byte);

  uint64_t hash_ = 0xCBF29CE484222325U;  // FNV-1a, 64 bits
};

}  // namespace kedge
