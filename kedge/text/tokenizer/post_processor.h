#pragma once
// The `post_processor` section of a tokenizer.json: which special tokens go around a text. One text only, no pairs.
#include <string>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/text/tokenizer/vocab.h"

namespace kedge {

class PostProcessor {
 public:
  PostProcessor() = default;  // adds nothing
  // `json` may be null. What is not supported is a UsageError that opens with `where`: "tokenizer.json: post_processor".
  PostProcessor(const Json* json, const std::string& where);
  // Ids before and after the text.
  PostProcessor(TokenIds before, TokenIds behind);

  [[nodiscard]] TokenIds apply(const TokenIds& ids) const;

 private:
  struct Part {
    bool is_text = false;
    TokenIds ids;  // if it is not the text
  };
  using Template = std::vector<Part>;

  void add(const Json& json, const std::string& where);
  void add_template(const Json& json, const std::string& where);

  std::vector<Template> templates_;  // applied one after another
};

}  // namespace kedge
