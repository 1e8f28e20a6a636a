#pragma once
// A SentencePiece tokenizer.model: the same ids as SentencePiece itself, BPE and unigram, several times faster thanks to
// the word cache. Tokens added to the model are found first, as transformers does.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "kedge/text/tokenizer/added_tokens.h"
#include "kedge/text/tokenizer/bpe_cuts.h"
#include "kedge/text/tokenizer/bpe_merges.h"
#include "kedge/text/tokenizer/post_processor.h"
#include "kedge/text/tokenizer/sentencepiece_model.h"
#include "kedge/text/tokenizer/sentencepiece_text.h"
#include "kedge/text/tokenizer/tokenizer.h"
#include "kedge/text/tokenizer/unigram.h"
#include "kedge/text/tokenizer/word_cache.h"

namespace kedge {

class SentencePieceTokenizer : public Tokenizer {
 public:
  // `bytes` are the file's; `origin` names it in errors.
  SentencePieceTokenizer(std::string_view bytes, const std::string& origin);

  void add_tokens(std::vector<AddedToken> tokens);
  [[nodiscard]] const AddedTokens& added_tokens() const { return added_; }
  void set_post_processor(PostProcessor post_processor) { post_processor_ = std::move(post_processor); }
  // The dummy space also goes before text that follows an added token: transformers' `legacy`.
  void set_space_after_added(bool on) { space_after_added_ = on; }
  // No text gets the dummy space: transformers' `add_prefix_space` is false.
  void drop_dummy_space() { model_.add_dummy_prefix = false; }

  [[nodiscard]] std::unique_ptr<IdDecoder> start_decoding() const override;
  [[nodiscard]] TokenId vocab_size() const override;
  [[nodiscard]] std::string token_of(TokenId id) const override;
  [[nodiscard]] std::optional<TokenId> id_of(std::string_view token) const override;
  [[nodiscard]] bool is_special(TokenId id) const override;
  [[nodiscard]] std::string fingerprint() const override;

  // The ids of the model's own control pieces: <s>, </s>, <pad>, and of <unk>.
  [[nodiscard]] SpecialIds own_special() const;

 protected:
  void encode_text(std::string_view text, bool match_special, TokenIds& ids) const override;
  [[nodiscard]] TokenIds with_special(TokenIds ids) const override { return post_processor_.apply(ids); }

 private:
  class Decoder;
  using PieceType = SentencePieceModel::PieceType;

  void build_merges(const std::string& origin);
  void build_search();
  void encode_normalized(std::string_view text, TokenIds& ids) const;
  void encode_bpe(std::string_view text, WordCache::Table& cache, TokenIds& ids) const;
  void encode_bpe_word(std::string_view word, WordCache::Table& cache, TokenIds& ids) const;
  void encode_unigram(std::string_view text, TokenIds& ids) const;
  void append_unknown(std::string_view text, bool after_unknown, TokenIds& ids) const;
  [[nodiscard]] PieceType type_of(TokenId id) const { return model_.pieces[static_cast<size_t>(id)].type; }

  SentencePieceModel model_;
  SentencePieceText text_;
  Vocab vocab_;    // the pieces
  Vocab symbols_;  // the pieces, and characters that are part of a piece but none themselves
  BpeMerges merges_;
  BpeCuts cuts_;
  UnigramSearch<float> search_;
  std::array<TokenId, 256> byte_ids_{};
  AddedTokens added_;
  PostProcessor post_processor_;
  bool space_after_added_ = false;
  WordCache cache_;
};

}  // namespace kedge
