#pragma once
// Places in a text that no merge of a BPE model crosses: between two characters that are adjacent in none of its
// tokens. The parts can be encoded and cached separately; a long text is no longer one long word.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kedge/core/utf8.h"

namespace kedge {

class BpeCuts {
 public:
  BpeCuts() = default;  // cuts nowhere
  // Cuts are made before these characters only: ASCII and U+2581. They must be tokens themselves, because a run of unknown
  // characters may become one.
  explicit BpeCuts(const std::vector<char32_t>& known);

  // Records a token that merges produce.
  void add_token(std::string_view token);

  template <typename Part>
  void each_part(std::string_view text, Part&& part) const {
    if (!neighbours_.empty()) {
      size_t start = 0;
      char32_t before = 0;
      for (size_t at = 0; at < text.size();) {
        const auto byte = static_cast<unsigned char>(text[at]);
        const char32_t code = byte < 0x80 ? byte : utf8_decode(text.substr(at));
        if (at > 0 && (code < 0x80 ? cut_before_[code] : code == kMark && cut_before_mark_) && !side_by_side(before, code)) {
          part(text.substr(start, at - start));
          start = at;
        }
        at += byte < 0x80 ? 1 : utf8_length(text.substr(at));
        before = code;
      }
      text.remove_prefix(start);
    }
    part(text);
  }

 private:
  static constexpr char32_t kMark = 0x2581;
  static constexpr size_t kNumBits = size_t{1} << 20U;

  static size_t bit_of(char32_t before, char32_t behind) {
    return (uint64_t{before} * 0x9E3779B97F4A7C15U + uint64_t{behind} * 0xC2B2AE3D27D4EB4FU) >> 44U;
  }
  // True also for some pairs that are never adjacent; then a cut is only missed.
  [[nodiscard]] bool side_by_side(char32_t before, char32_t behind) const {
    const size_t bit = bit_of(before, behind);
    return (neighbours_[bit / 64] >> (bit % 64) & 1U) != 0;
  }

  std::array<bool, 128> cut_before_{};
  bool cut_before_mark_ = false;
  std::vector<uint64_t> neighbours_;
};

}  // namespace kedge
