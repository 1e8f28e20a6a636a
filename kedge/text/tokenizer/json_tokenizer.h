#pragma once
// A tokenizer.json put together: added tokens, normalizer, pre-tokenizer, model, post-processor and decoder.
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/text/tokenizer/added_tokens.h"
#include "kedge/text/tokenizer/bpe.h"
#include "kedge/text/tokenizer/normalizer.h"
#include "kedge/text/tokenizer/post_processor.h"
#include "kedge/text/tokenizer/pre_tokenizer.h"
#include "kedge/text/tokenizer/token_decoder.h"
#include "kedge/text/tokenizer/tokenizer.h"
#include "kedge/text/tokenizer/unigram.h"

namespace kedge {

class JsonTokenizer : public Tokenizer {
 public:
  // `origin` names the file in errors: "models/x/tokenizer.json: pre_tokenizer: ...".
  JsonTokenizer(const Json& json, const std::string& origin);

  // Adds tokens, or updates the properties of existing ones.
  void add_tokens(const std::vector<AddedToken>& tokens);
  [[nodiscard]] const AddedTokens& added_tokens() const { return added_; }
  void set_post_processor(PostProcessor post_processor) { post_processor_ = std::move(post_processor); }

  [[nodiscard]] std::unique_ptr<IdDecoder> start_decoding() const override;
  [[nodiscard]] TokenId vocab_size() const override;
  [[nodiscard]] std::string token_of(TokenId id) const override;
  [[nodiscard]] std::optional<TokenId> id_of(std::string_view token) const override;
  [[nodiscard]] bool is_special(TokenId id) const override { return added_.is_special(id); }
  [[nodiscard]] std::string fingerprint() const override;

 protected:
  void encode_text(std::string_view text, bool match_special, TokenIds& ids) const override;
  [[nodiscard]] TokenIds with_special(TokenIds ids) const override { return post_processor_.apply(ids); }

 private:
  using Model = std::variant<BpeModel, UnigramModel>;

  Model make_model(const Json& json, const std::string& where);
  [[nodiscard]] const Vocab& vocab() const;
  void encode_raw(std::string_view text, bool at_start, bool match_special, TokenIds& ids) const;
  void encode_normalized(std::string_view text, bool at_start, TokenIds& ids) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Model model_;
  AddedTokens added_;
  PostProcessor post_processor_;
  TokenDecoder decoder_;
};

}  // namespace kedge
