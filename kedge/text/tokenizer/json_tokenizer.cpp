#include "kedge/text/tokenizer/json_tokenizer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

const Json* section(const Json& json, std::string_view name) { return json.find(name); }

Vocab read_vocab(const Json& json, const std::string& where) {
  Vocab vocab;
  const Json::Object& entries = json.as_object(where);
  vocab.reserve(entries.size());
  for (const auto& [token, value] : entries) {
    // The place is formatted only for errors: there are a hundred thousand of them.
    const int64_t id = value.is_integer() ? value.as_integer(where) : value.as_integer(str(where, "[\"", token, "\"]"));
    if (id < 0 || id > Vocab::kMaxId) throw UsageError(str(where, "[\"", token, "\"]: ", id, " is not a token id"));
    if (!vocab.add(token, static_cast<TokenId>(id)))
      throw UsageError(str(where, "[\"", token, "\"]: the id ", id, " belongs to another token already"));
  }
  return vocab;
}

// ["a", "b"], or "a b" in older files.
std::pair<std::string, std::string> read_merge(const Json& json, const std::string& where, size_t index) {
  const auto here = [&] { return str(where, "[", index, "]"); };
  if (json.is_array()) {
    const Json::Array& sides = json.as_array(where);
    if (sides.size() == 2 && sides[0].is_text() && sides[1].is_text()) return {sides[0].as_text(where), sides[1].as_text(where)};
    throw UsageError(str(here(), ": expected two tokens, found ", json.dump()));
  }
  const std::string& line = json.is_text() ? json.as_text(where) : json.as_text(here());
  const size_t space = line.find(' ');
  if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
    throw UsageError(str(here(), ": expected two tokens and a space, found \"", line, "\""));
  return {line.substr(0, space), line.substr(space + 1)};
}

BpeModel::TextMerges read_merges(const Json& json, const std::string& where) {
  BpeModel::TextMerges merges;
  const Json::Array& entries = json.as_array(where);
  merges.reserve(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].is_text() && entries[i].as_text(where).starts_with("#version")) continue;
    merges.push_back(read_merge(entries[i], where, i));
  }
  return merges;
}

BpeOptions read_bpe_options(const Json& json, const std::string& where) {
  BpeOptions options;
  const auto given = [&](const char* key) {
    const Json* value = json.find(key);
    return value != nullptr && !value->is_null() ? value : nullptr;
  };
  const auto flag = [&](const char* key, bool& value) {
    if (const Json* found = given(key)) value = found->as_bool(str(where, ".", key));
  };
  const auto text = [&](const char* key, std::string& value) {
    if (const Json* found = given(key)) value = found->as_text(str(where, ".", key));
  };
  if (const Json* dropout = given("dropout"))
    check(dropout->as_number(where + ".dropout") == 0, where, ".dropout: random merges are not supported; expected null or 0");
  if (const Json* unk = given("unk_token")) options.unk_token = unk->as_text(where + ".unk_token");
  flag("fuse_unk", options.fuse_unk);
  flag("byte_fallback", options.byte_fallback);
  flag("ignore_merges", options.ignore_merges);
  text("continuing_subword_prefix", options.continuing_subword_prefix);
  text("end_of_word_suffix", options.end_of_word_suffix);
  return options;
}

// A score as the `tokenizers` package has it after reading the shortest text of `value`: the digits become a double, then the
// power of ten is divided out, so it may differ from `value` by one unit. Scores that tie there must tie here.
double score_as_read(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), std::abs(value), std::chars_format::scientific).ptr;
  uint64_t digits = 0;
  int exponent = 0;
  const char* at = text.data();
  for (bool behind_point = false; at < end && *at != 'e'; ++at) {
    if (*at == '.') {
      behind_point = true;
    } else {
      digits = digits * 10 + static_cast<uint64_t>(*at - '0');
      exponent -= behind_point ? 1 : 0;
    }
  }
  int written = 0;
  std::from_chars(at + (at[1] == '+' ? 2 : 1), end, written);
  exponent += written;
  const double power = std::pow(10.0, std::abs(exponent));
  const double size = exponent < 0 ? static_cast<double>(digits) / power : static_cast<double>(digits) * power;
  return value < 0 ? -size : size;
}

UnigramModel read_unigram(const Json& json, const std::string& where) {
  UnigramModel::Pieces pieces;
  const Json::Array& entries = json.at("vocab", where).as_array(where + ".vocab");
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string here = str(where, ".vocab[", i, "]");
    const Json::Array& entry = entries[i].as_array(here);
    check(entry.size() == 2, here, ": expected a piece and its score");
    pieces.emplace_back(entry[0].as_text(here), score_as_read(entry[1].as_number(here)));
  }
  std::optional<TokenId> unk_id;
  if (const Json* unk = json.find("unk_id"); unk != nullptr && !unk->is_null()) {
    const int64_t id = unk->as_integer(where + ".unk_id");
    check(id >= 0 && id <= Vocab::kMaxId, where, ".unk_id: ", id, " is not a token id");
    unk_id = static_cast<TokenId>(id);
  }
  const Json* fallback = json.find("byte_fallback");
  return {std::move(pieces), unk_id, fallback != nullptr && fallback->as_bool(where + ".byte_fallback"), where};
}

// Older files leave the type out.
std::string model_type(const Json& json, const std::string& where) {
  if (const Json* type = json.find("type")) return type->as_text(where + ".type");
  if (json.find("merges") != nullptr) return "BPE";
  const Json* vocab = json.find("vocab");
  return vocab != nullptr && vocab->is_array() ? "Unigram" : "WordPiece";
}

class JsonIdDecoder : public IdDecoder {
 public:
  JsonIdDecoder(const AddedTokens& added, const Vocab& vocab, std::unique_ptr<DecodeState> state)
      : added_(added), vocab_(vocab), state_(std::move(state)) {}
  void push(TokenId id, std::string& out) override {
    if (added_.has(id)) {
      state_->push(added_.decoded_form(id), out);
    } else if (vocab_.has(id)) {
      state_->push(vocab_.token(id), out);
    }
  }
  void finish(std::string& out) override { state_->finish(out); }

 private:
  const AddedTokens& added_;
  const Vocab& vocab_;
  std::unique_ptr<DecodeState> state_;
};

}  // namespace

JsonTokenizer::JsonTokenizer(const Json& json, const std::string& origin)
    : normalizer_(section(json, "normalizer"), origin + ": normalizer"),
      pre_tokenizer_(section(json, "pre_tokenizer"), origin + ": pre_tokenizer"),
      model_(make_model(json.at("model", origin), origin + ": model")),
      post_processor_(section(json, "post_processor"), origin + ": post_processor"),
      decoder_(section(json, "decoder"), origin + ": decoder") {
  if (const Json* version = json.find("version"))
    check(version->as_text(origin + ": version") == "1.0", origin, ": version: expected \"1.0\", found ", version->dump());
  const Json* added = json.find("added_tokens");
  if (added == nullptr) return;
  const std::string where = origin + ": added_tokens";
  std::vector<AddedToken> tokens;
  std::vector<int64_t> ids;
  for (const Json& entry : added->as_array(where)) {
    const std::string here = str(where, "[", tokens.size(), "]");
    tokens.push_back(AddedToken::from_json(entry, here));
    ids.push_back(entry.at("id", here).as_integer(here + ".id"));
  }
  add_tokens(tokens);
  for (size_t i = 0; i < tokens.size(); ++i)
    if (const auto id = added_.find(tokens[i].content); id && *id != ids[i])
      log_warn_of_job(where, "[", i, "]: the token \"", tokens[i].content, "\" has the id ", *id, ", not ", ids[i],
                      ", as in the tokenizers package");
}

JsonTokenizer::Model JsonTokenizer::make_model(const Json& json, const std::string& where) {
  const std::string type = model_type(json, where);
  if (type == "Unigram") return read_unigram(json, where);
  check(type == "BPE", where, ".type: the model type \"", type, "\" is not supported; expected BPE or Unigram");
  BpeOptions options = read_bpe_options(json, where);
  if (pre_tokenizer_.ends_in_byte_level() && !options.byte_fallback && options.continuing_subword_prefix.empty() &&
      options.end_of_word_suffix.empty()) {
    options.words_are_bytes = true;
    pre_tokenizer_.leave_bytes();
  }
  return BpeModel(read_vocab(json.at("vocab", where), where + ".vocab"), read_merges(json.at("merges", where), where + ".merges"),
                  std::move(options), where);
}

const Vocab& JsonTokenizer::vocab() const {
  return std::visit([](const auto& model) -> const Vocab& { return model.vocab(); }, model_);
}

void JsonTokenizer::add_tokens(const std::vector<AddedToken>& tokens) { added_.add(tokens, vocab(), normalizer_); }

void JsonTokenizer::encode_text(std::string_view text, bool match_special, TokenIds& ids) const {
  added_.split(text, AddedTokens::Pass::raw, match_special, [&](const AddedTokens::Stretch& stretch) {
    if (stretch.id) {
      ids.push_back(*stretch.id);
    } else {
      encode_raw(text.substr(stretch.start, stretch.end - stretch.start), stretch.start == 0, match_special, ids);
    }
  });
}

void JsonTokenizer::encode_raw(std::string_view text, bool at_start, bool match_special, TokenIds& ids) const {
  Normalizer::Result normalized;
  if (!normalizer_.empty()) {
    normalized = normalizer_.apply(text);
    text = normalized.text;
  }
  added_.split(text, AddedTokens::Pass::normalized, match_special, [&](const AddedTokens::Stretch& stretch) {
    if (stretch.id) {
      ids.push_back(*stretch.id);
    } else {
      encode_normalized(text.substr(stretch.start, stretch.end - stretch.start), at_start && normalized.keeps_start && stretch.start == 0,
                        ids);
    }
  });
}

void JsonTokenizer::encode_normalized(std::string_view text, bool at_start, TokenIds& ids) const {
  thread_local PreTokenized pieces;
  pieces.text = text;
  pieces.first_is_start = at_start;
  pre_tokenizer_.apply(pieces);
  std::visit([&](const auto& model) { model.encode(pieces.text, pieces.words, ids); }, model_);
}

std::unique_ptr<IdDecoder> JsonTokenizer::start_decoding() const {
  return std::make_unique<JsonIdDecoder>(added_, vocab(), decoder_.start());
}

TokenId JsonTokenizer::vocab_size() const { return std::max(vocab().end_id(), added_.end_id()); }

std::string JsonTokenizer::token_of(TokenId id) const { return std::string(added_.has(id) ? added_.token(id).content : vocab().token(id)); }

std::optional<TokenId> JsonTokenizer::id_of(std::string_view token) const {
  const auto id = added_.find(token);
  return id ? id : vocab().find(token);
}

std::string JsonTokenizer::fingerprint() const {
  Fingerprint fingerprint;
  std::visit([&](const auto& model) { model.add_to(fingerprint); }, model_);
  added_.add_to(fingerprint);
  return fingerprint.hex();
}

}  // namespace kedge
