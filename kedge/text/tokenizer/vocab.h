#pragma once
// Token strings and their ids, both ways. Ids need not be dense. Independent of merges and special tokens.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

using TokenId = int32_t;
using TokenIds = std::vector<TokenId>;

// A fast hash of bytes; the same on every machine of one byte order, but no promise between versions.
[[nodiscard]] uint64_t hash_bytes(std::string_view bytes);

class Vocab {
 public:
  static constexpr TokenId kMaxId = (1 << 22) - 1;  // far above any model's; keeps the tables of a broken file small

  // False if the token or the id already exists, or the id is out of bounds.
  [[nodiscard]] bool add(std::string_view token, TokenId id);
  void reserve(size_t num_tokens);

  [[nodiscard]] std::optional<TokenId> find(std::string_view token) const;
  [[nodiscard]] bool has(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < spans_.size() && spans_[static_cast<size_t>(id)].used;
  }
  // Empty for an id that has no token.
  [[nodiscard]] std::string_view token(TokenId id) const;

  [[nodiscard]] size_t num_tokens() const { return num_tokens_; }
  [[nodiscard]] TokenId end_id() const { return static_cast<TokenId>(spans_.size()); }  // one above the largest

 private:
  struct Span {
    uint64_t start : 40 = 0;
    uint64_t length : 23 = 0;
    uint64_t used : 1 = 0;
  };

  void rehash(size_t num_slots);
  void place(TokenId id);

  std::string text_;            // all tokens, concatenated
  std::vector<Span> spans_;     // by id
  std::vector<int32_t> slots_;  // open addressing: id + 1, 0 is free
  size_t num_tokens_ = 0;
};

}  // namespace kedge
