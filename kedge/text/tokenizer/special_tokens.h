#pragma once
// Special tokens from the files next to a tokenizer: which they are, their roles, and whether text gets them.
// Same rules as transformers. Independent of tokenizers; tokenizer.cpp combines the two.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/text/tokenizer/added_tokens.h"

namespace kedge {

struct SpecialTokenFiles {
  // A role of tokenizer_config.json or special_tokens_map.json: absent, explicitly none (null), or a token.
  struct Named {
    bool given = false;
    std::optional<AddedToken> token;
  };

  std::map<std::string, Named> named;    // by key: bos_token, eos_token, pad_token, unk_token, sep_token, ...
  std::vector<AddedToken> more_special;  // without such a role: under other names, and lists
  std::map<int64_t, AddedToken> added;   // added_tokens_decoder, or else added_tokens.json
  std::optional<bool> add_bos, add_eos;  // add_bos_token, add_eos_token
  std::optional<bool> legacy, add_prefix_space;
  std::string tokenizer_class;  // empty if not given

  // generation_config.json, and config.json if that has none.
  std::optional<int64_t> bos_id, eos_id, pad_id;
  std::vector<int64_t> stop_ids;  // all of eos_token_id

  // Missing files are ignored; broken ones are a UsageError.
  static SpecialTokenFiles read(const Path& folder);

  // All the tokens to add to a tokenizer that has `present`, in transformers' order.
  [[nodiscard]] std::vector<AddedToken> tokens_to_add(const AddedTokens& present) const;

 private:
  void read_named(const Json& json, const std::string& where);
  void read_tokenizer_config(const Json& json, const std::string& where);
  void read_added_tokens(const Json& json, const std::string& where);
  void read_ids(const Json& json, const std::string& where);
};

}  // namespace kedge
