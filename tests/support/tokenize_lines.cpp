// Answers JSON lines for the interop tests, which compare the answers with those of the real libraries.
//
//   tokenize_lines json|model|folder|parts|train PATH
//
// {"text": "..."} -> {"ids": [...], "special": [...], "decoded": "...", "skipped": "..."}: ids without and with special tokens,
// and what the latter decode to, special tokens kept and skipped. {"ids": [...]} -> {"decoded": "...", "skipped": "..."}.
// Of the parts of a tokenizer.json: {"text": "..."} -> {"normalized": "...", "words": [...]}, each from the text itself.
// Training: {"texts": [...], "vocab_size": n, "min_count": n, "special": [...]} writes a tokenizer into the folder PATH.
#include <iostream>
#include <string>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/text/tokenizer/bpe_trainer.h"
#include "kedge/text/tokenizer/json_tokenizer.h"
#include "kedge/text/tokenizer/sentencepiece.h"
#include "kedge/text/tokenizer/streaming_decoder.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {
namespace {

std::unique_ptr<Tokenizer> load(const std::string& kind, const std::string& path) {
  if (kind == "json") return std::make_unique<JsonTokenizer>(Json::parse(read_text(path), path), path);
  if (kind == "model") return std::make_unique<SentencePieceTokenizer>(read_text(path), path);
  check(kind == "folder", "usage: tokenize_lines json|model|folder|parts|train PATH");
  return load_tokenizer(path);
}

Json to_json(const TokenIds& ids) {
  Json::Array list;
  for (const TokenId id : ids) list.emplace_back(int64_t{id});
  return list;
}

// The whole at once must equal the pieces.
std::string decode_both_ways(const Tokenizer& tokenizer, const TokenIds& ids, SpecialTokens special) {
  StreamingDecoder stream(tokenizer, special);
  std::string bytes;
  for (const TokenId id : ids) bytes += stream.feed(id);
  bytes += stream.flush();
  ensure(bytes == tokenizer.decode(ids, special), "streamed text differs from decoded text");
  return tokenizer.decode_text(ids, special);
}

Json answer(const Tokenizer& tokenizer, const Json& request) {
  Json reply;
  TokenIds ids;
  if (const Json* text = request.find("text")) {
    reply.set("ids", to_json(tokenizer.encode(text->as_text("text"))));
    ids = tokenizer.encode(text->as_text("text"), {.add_special = true});
    reply.set("special", to_json(ids));
  } else {
    for (const Json& id : request.at("ids", "request").as_array("ids")) ids.push_back(static_cast<TokenId>(id.as_integer("ids")));
  }
  reply.set("decoded", decode_both_ways(tokenizer, ids, SpecialTokens::keep));
  reply.set("skipped", decode_both_ways(tokenizer, ids, SpecialTokens::skip));
  return reply;
}

// The normalizer and the pre-tokenizer alone.
class Parts {
 public:
  explicit Parts(const std::string& path)
      : json_(Json::parse(read_text(path), path)),
        normalizer_(json_.find("normalizer"), path),
        pre_tokenizer_(json_.find("pre_tokenizer"), path) {}

  [[nodiscard]] Json answer(const Json& request) const {
    const std::string& text = request.at("text", "request").as_text("text");
    PreTokenized pieces{text, {}, true};
    pre_tokenizer_.apply(pieces);
    Json::Array words;
    for (const WordSpan& word : pieces.words) words.emplace_back(pieces.text.substr(word.start, word.end - word.start));
    return Json::Object{{"normalized", normalizer_.apply(text).text}, {"words", std::move(words)}};
  }

 private:
  Json json_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
};

template <typename Answer>
int answer_lines(Answer&& answer_one) {
  for (std::string line; std::getline(std::cin, line);) {
    std::string reply;
    try {
      reply = answer_one(Json::parse(line, "request")).dump();
    } catch (const std::exception& error) {
      reply = Json(Json::Object{{"error", std::string(error.what())}}).dump();
    }
    std::cout << reply << '\n';
  }
  return 0;
}

Json train(const Json& request, const Path& folder) {
  const auto texts_of = [&](const char* key) {
    std::vector<std::string> texts;
    for (const Json& text : request.at(key, "request").as_array(key)) texts.push_back(text.as_text(key));
    return texts;
  };
  BpeTraining training;
  training.vocab_size = request.at("vocab_size", "request").as_integer("vocab_size");
  training.min_count = request.at("min_count", "request").as_integer("min_count");
  training.special_tokens = texts_of("special");
  train_bpe(texts_of("texts"), training).write(folder);
  return Json::Object{{"folder", folder.string()}};
}

int run(const std::string& kind, const std::string& path) {
  if (kind == "train") return answer_lines([&](const Json& request) { return train(request, path); });
  if (kind == "parts") {
    const Parts parts(path);
    return answer_lines([&](const Json& request) { return parts.answer(request); });
  }
  const auto tokenizer = load(kind, path);
  return answer_lines([&](const Json& request) { return answer(*tokenizer, request); });
}

}  // namespace
}  // namespace kedge

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  try {
    return kedge::run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
