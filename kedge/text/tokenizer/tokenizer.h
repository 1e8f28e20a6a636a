#pragma once
// Text to token ids and back: the interface between text and everything that works on ids. Implementations: JsonTokenizer
// (tokenizer.json, vocab.json with merges.txt), SentencePieceTokenizer (tokenizer.model) and ByteTokenizer. Safe to use from
// several threads. Independent of chat templates.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/text/tokenizer/vocab.h"

namespace kedge {

struct EncodeOptions {
  bool add_special = false;   // put the tokenizer's own special tokens (usually bos) around the text
  bool match_special = true;  // "<|im_end|>" in the text is that token; false: it is text like any other
};

enum class SpecialTokens { keep, skip };

// The ids of tokens with a role. Absent if the files name none.
struct SpecialIds {
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> pad;
  std::optional<TokenId> unk;
  std::vector<TokenId> stop;  // all that end a generation: eos first, then the others of generation_config.json
};

// Ids to bytes, one id at a time: push() emits what is certain, finish() the rest.
class IdDecoder {
 public:
  virtual ~IdDecoder() = default;
  virtual void push(TokenId id, std::string& out) = 0;
  virtual void finish(std::string& out) = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Text that is not UTF-8 is a UsageError that names the byte. NUL is a character like any other.
  [[nodiscard]] TokenIds encode(std::string_view text, const EncodeOptions& options = {}) const;

  // The exact bytes, even if they are not UTF-8 (ids cut in the middle of a character). An id outside the vocabulary is a
  // UsageError.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, SpecialTokens special = SpecialTokens::keep) const;
  // The same as text for people and JSON: what is not UTF-8 becomes U+FFFD.
  [[nodiscard]] std::string decode_text(std::span<const TokenId> ids, SpecialTokens special = SpecialTokens::keep) const;

  // Must not outlive the tokenizer. StreamingDecoder is more convenient.
  [[nodiscard]] virtual std::unique_ptr<IdDecoder> start_decoding() const = 0;

  // One above the largest id.
  [[nodiscard]] virtual TokenId vocab_size() const = 0;
  // A token as the vocabulary spells it, for display and look-up; empty for an id that has none.
  [[nodiscard]] virtual std::string token_of(TokenId id) const = 0;
  [[nodiscard]] virtual std::optional<TokenId> id_of(std::string_view token) const = 0;
  // Is it a token with a role, left out by SpecialTokens::skip?
  [[nodiscard]] virtual bool is_special(TokenId id) const = 0;
  // Equal if ids mean the same and text merges the same: computed from vocabulary, merges or scores, and added tokens.
  [[nodiscard]] virtual std::string fingerprint() const = 0;

  [[nodiscard]] const SpecialIds& special() const { return special_; }
  void set_special(SpecialIds special) { special_ = std::move(special); }

 protected:
  virtual void encode_text(std::string_view text, bool match_special, TokenIds& ids) const = 0;
  [[nodiscard]] virtual TokenIds with_special(TokenIds ids) const = 0;

 private:
  SpecialIds special_;
};

// From a model folder: tokenizer.json, else tokenizer.model, else vocab.json and merges.txt (or encoder.json and vocab.bpe),
// with what tokenizer_config.json, special_tokens_map.json, added_tokens.json, generation_config.json and config.json say of
// special tokens. Unsupported features are a UsageError that names file and place.
[[nodiscard]] std::unique_ptr<Tokenizer> load_tokenizer(const Path& folder);
// Do its files exist?
[[nodiscard]] bool has_tokenizer(const Path& folder);

}  // namespace kedge
