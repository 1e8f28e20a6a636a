#include <cstdio>

#include "kedge/core/error.h"
#include "kedge/text/tokenizer/tokenizer.h"

#include "cli/commands.h"
#include "cli/text/json_lines.h"

namespace kedge::cli {
namespace {

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> text;
  std::string input = "-";
  bool add_special = false;
  bool skip_special = false;
  bool pieces = false;

  void fields(auto&& field) {
    field("model", model, "a model folder, or a folder with only the tokenizer files", required());
    field("text", text, "encode this text instead of reading lines");
    field("input", input, "JSON lines, each {\"text\": ...} or {\"ids\": [...]}; - is standard input");
    field("add_special", add_special, "add the tokenizer's special tokens to texts");
    field("skip_special", skip_special, "leave special tokens out of decoded texts");
    field("pieces", pieces, "also print the text of each token");
  }
};

class Converter {
 public:
  explicit Converter(const TokenizeOptions& options) : options_(options), tokenizer_(load_tokenizer(options.model)) {}

  // {"text"} to {"ids"}, {"ids"} to {"text"}.
  [[nodiscard]] Json convert(const Json& line, const std::string& where) const {
    const Json* text = line.find("text");
    const Json* ids = line.find("ids");
    check((text != nullptr) != (ids != nullptr), where, ": expected an object with \"text\" or with \"ids\"");
    return text != nullptr ? encoded(text->as_text(where + ": text")) : decoded(*ids, where + ": ids");
  }

  [[nodiscard]] Json encoded(const std::string& text) const {
    Json::Array ids, pieces;
    for (const TokenId id : tokenizer_->encode(text, {.add_special = options_.add_special})) {
      ids.emplace_back(int64_t{id});
      if (options_.pieces) pieces.emplace_back(tokenizer_->token_of(id));
    }
    Json result;
    result.set("ids", std::move(ids));
    if (options_.pieces) result.set("pieces", std::move(pieces));
    return result;
  }

 private:
  [[nodiscard]] Json decoded(const Json& list, const std::string& where) const {
    TokenIds ids;
    for (const Json& item : list.as_array(where)) {
      const int64_t id = item.as_integer(where);
      check(id >= 0 && id < tokenizer_->vocab_size(), where, ": id ", id, " is outside the vocabulary of ", tokenizer_->vocab_size());
      ids.push_back(static_cast<TokenId>(id));
    }
    Json result;
    result.set("text", tokenizer_->decode_text(ids, options_.skip_special ? SpecialTokens::skip : SpecialTokens::keep));
    return result;
  }

  const TokenizeOptions& options_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace

std::string tokenize_flags() { return options_help<TokenizeOptions>(); }

int run_tokenize(const Arguments& arguments) {
  const auto options = parse_options<TokenizeOptions>(arguments);
  const Converter converter(options);
  if (options.text) {
    print_json_line(converter.encoded(*options.text));
  } else {
    for_each_json_line(options.input, [&](const Json& line, const std::string& where) { print_json_line(converter.convert(line, where)); });
  }
  return kExitOk;
}

}  // namespace kedge::cli
