#pragma once
// Text to token ids and back: the seam between text and everything that works on ids. Safe to use from several threads.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

using TokenId = int32_t;
using TokenIds = std::vector<TokenId>;

// The ids of tokens with a role. Absent where the files name none.
struct SpecialIds {
  std::optional<TokenId> bos, eos;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  [[nodiscard]] virtual TokenIds encode(std::string_view text) const = 0;
  [[nodiscard]] virtual std::string decode(std::span<const TokenId> ids) const = 0;
  [[nodiscard]] const SpecialIds& special() const { return special_; }

 private:
  SpecialIds special_;
};

}  // namespace kedge
