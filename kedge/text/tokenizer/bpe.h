#pragma once
// Byte-pair encoding of words, as `tokenizers` does it. Independent of how text becomes words (pre_tokenizer.h) and
// of files. Safe to use from several threads.
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/core/fingerprint.h"
#include "kedge/text/tokenizer/bpe_cuts.h"
#include "kedge/text/tokenizer/bpe_merges.h"
#include "kedge/text/tokenizer/vocab.h"
#include "kedge/text/tokenizer/word_cache.h"

namespace kedge {

// The position of a word in its text.
struct WordSpan {
  size_t start = 0;
  size_t end = 0;
};

struct BpeOptions {
  std::optional<std::string> unk_token = {};
  bool fuse_unk = false;                       // one unknown token for a run of unknown characters
  bool byte_fallback = false;                  // an unknown character becomes <0x..> tokens if the vocabulary has them
  bool ignore_merges = false;                  // a word that is a token is not split
  std::string continuing_subword_prefix = {};  // written before every character of a word but the first
  std::string end_of_word_suffix = {};         // written after the last
  bool words_are_bytes = false;                // words are plain bytes, although the vocabulary spells them as byte_level.h does
};

class BpeModel {
 public:
  using TextMerges = std::vector<std::pair<std::string, std::string>>;

  // `where` opens the error about a merge whose tokens are not in the vocabulary.
  BpeModel(Vocab vocab, const TextMerges& merges, BpeOptions options, std::string_view where);

  // Appends the ids of each word of `text` in turn.
  void encode(std::string_view text, std::span<const WordSpan> words, TokenIds& ids) const;

  [[nodiscard]] const Vocab& vocab() const { return vocab_; }

  void add_to(Fingerprint& fingerprint) const;

 private:
  void encode_word(std::string_view word, WordCache::Table& cache, TokenIds& ids) const;
  void append_symbols(std::string_view word, TokenIds& symbols) const;
  void append_byte_symbols(std::string_view word, TokenIds& symbols) const;
  [[nodiscard]] TokenId unk_id() const;
  void find_cuts();

  Vocab vocab_;
  Vocab byte_vocab_;  // tokens as bytes, if words are bytes and may be tokens
  BpeOptions options_;
  BpeMerges merges_;
  std::vector<BpeMerges::Merge> merge_list_;  // in the file's order
  std::array<TokenId, 256> byte_ids_{};       // a byte of a word that is bytes, or an ASCII character; kNoId if there is none
  std::array<TokenId, 256> fallback_ids_{};   // <0x00> to <0xFF>
  BpeCuts cuts_;
  WordCache cache_;
};

}  // namespace kedge
