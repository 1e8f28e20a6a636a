#pragma once
// Unigram segmentation: the cut of a text into pieces with the highest sum of scores. UnigramSearch finds the cut, for
// SentencePiece (in single precision, as that does) and for UnigramModel, which is the model of a tokenizer.json.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/core/fingerprint.h"
#include "kedge/text/tokenizer/bpe.h"
#include "kedge/text/tokenizer/byte_trie.h"
#include "kedge/text/tokenizer/vocab.h"
#include "kedge/text/tokenizer/word_cache.h"

namespace kedge {

template <typename Score>
class UnigramSearch {
 public:
  static constexpr Score kUnknownPenalty = 10;  // how far an unknown character is below the worst piece

  struct Piece {
    std::string_view text;
    TokenId id = 0;
    Score score = 0;
  };
  struct Segment {
    size_t start = 0;
    size_t end = 0;
    TokenId id = 0;  // kUnknown: one character without its own piece
  };
  static constexpr TokenId kUnknown = -1;

  UnigramSearch() = default;
  UnigramSearch(std::span<const Piece> pieces, Score unknown_score);

  // Valid UTF-8 in; the segments from left to right. Of equal sums the one found first wins.
  void run(std::string_view text, std::vector<Segment>& segments) const;

 private:
  ByteTrie trie_;
  std::vector<Score> scores_;  // by id
  Score unknown_score_ = 0;
};

class UnigramModel {
 public:
  using Pieces = std::vector<std::pair<std::string, double>>;

  // Ids are positions. `where` opens errors.
  UnigramModel(Pieces pieces, std::optional<TokenId> unk_id, bool byte_fallback, std::string_view where);

  void encode(std::string_view text, std::span<const WordSpan> words, TokenIds& ids) const;
  [[nodiscard]] const Vocab& vocab() const { return vocab_; }
  void add_to(Fingerprint& fingerprint) const;

 private:
  void encode_word(std::string_view word, TokenIds& ids) const;
  void append_unknown(std::string_view text, TokenIds& ids) const;

  Vocab vocab_;
  std::vector<double> scores_;
  std::optional<TokenId> unk_id_;
  bool byte_fallback_ = false;
  UnigramSearch<double> search_;
  WordCache cache_;
};

}  // namespace kedge
