#pragma once
// What datasets need of a tokenizer, and text that is encoded in pieces with a loss mask. Independent of files.
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

// Both functions are called from several threads. No special tokens are added by `encode`.
struct TextEncoder {
  std::function<TokenIds(std::string_view)> encode;
  std::function<std::string(std::span<const TokenId>)> decode;
  std::optional<TokenId> bos, eos;
  int64_t vocab_size = std::numeric_limits<int64_t>::max();  // of the model; the tokenizer may have more ids, as long as no text uses them

  // UsageError if the tokenizer has none.
  [[nodiscard]] TokenId bos_id() const;
  [[nodiscard]] TokenId eos_id() const;
  // UsageError for an id that the model does not have; `where` returns file and line.
  void check_ids(std::span<const TokenId> ids, const std::function<std::string()>& where) const;
};

// `tokenizer` must outlive the result.
[[nodiscard]] TextEncoder encoder_of(const Tokenizer& tokenizer, int64_t vocab_size = std::numeric_limits<int64_t>::max());

// Does the tokenizer put its own blank before every text, as SentencePiece does?
[[nodiscard]] bool adds_leading_blank(const TextEncoder& encoder);

// Tokens and which of them are trained on (1) or only read (0); of equal length.
struct MaskedTokens {
  TokenIds ids;
  std::vector<uint8_t> mask;

  void append(std::span<const TokenId> more, bool trained);
  // Keeps the first `length` tokens.
  void cut(size_t length);
  [[nodiscard]] bool trains_nothing() const;
};

struct TextPiece {
  std::string text;
  bool trained = false;
};

// No token reaches across a border between read and trained text: the ids before a border are those a prompt that ends there
// gets. Otherwise neighbouring pieces are encoded as one text. The tokenizer's own leading blank goes where it would in the whole
// text: before the first piece, and with some tokenizers behind added tokens.
class PieceEncoder {
 public:
  explicit PieceEncoder(TextEncoder encoder);

  [[nodiscard]] MaskedTokens encode(std::span<const TextPiece> pieces) const;
  // A piece that follows other text, of which `previous` is the end.
  [[nodiscard]] TokenIds inside(std::string_view previous, std::string_view text) const;
  [[nodiscard]] const TextEncoder& encoder() const { return encoder_; }

 private:
  TextEncoder encoder_;
  bool adds_blank_;
  TokenIds prefix_ids_;
  bool prefix_fuses_;  // with unknown text behind it: unknown characters in a row are one token
};

}  // namespace kedge
