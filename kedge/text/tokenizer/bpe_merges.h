#pragma once
// The merge step of byte-pair encoding over ids: neighbours that may merge do so, lowest rank first. Independent of text.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kedge/text/tokenizer/vocab.h"

namespace kedge {

class BpeMerges {
 public:
  struct Merge {
    TokenId left = 0;
    TokenId right = 0;
    uint32_t rank = 0;  // below kNoRank
    TokenId merged = 0;
  };
  static constexpr uint32_t kNoRank = UINT32_MAX;

  BpeMerges() = default;
  // Of merges with the same two sides the last one counts.
  explicit BpeMerges(std::span<const Merge> merges);

  // Merges in place until nothing merges any more: lowest rank first, among equal ranks the leftmost.
  void apply(TokenIds& ids) const;

 private:
  struct Slot {
    uint64_t pair = kFree;
    uint64_t rank_and_merged = kNothing;
  };
  static constexpr uint64_t kFree = UINT64_MAX;
  static constexpr uint64_t kNothing = UINT64_MAX;  // its rank is kNoRank

  // rank << 32 | merged id, or kNothing.
  [[nodiscard]] uint64_t find(TokenId left, TokenId right) const;
  void apply_short(TokenIds& ids) const;
  void apply_long(TokenIds& ids) const;

  std::vector<Slot> slots_;
};

}  // namespace kedge
