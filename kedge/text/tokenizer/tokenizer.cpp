#include "kedge/text/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/utf8.h"
#include "kedge/text/tokenizer/json_tokenizer.h"
#include "kedge/text/tokenizer/sentencepiece.h"
#include "kedge/text/tokenizer/special_tokens.h"
#include "kedge/text/tokenizer/split_scanner.h"
#include "kedge/text/tokenizer/streaming_decoder.h"

namespace kedge {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

// vocab.json and merges.txt carry no more than their names say; the tokenizer's class determines how text is split.
Json pieces_for_class(const SpecialTokenFiles& files, const std::string& where) {
  static constexpr std::array<std::string_view, 7> kGpt2Like = {
      "", "GPT2Tokenizer", "GPT2TokenizerFast", "GPTNeoXTokenizer", "GPTNeoXTokenizerFast", "CodeGenTokenizer", "CodeGenTokenizerFast"};
  const std::string& tokenizer_class = files.tokenizer_class;
  const auto byte_level = [&](bool use_regex) {
    return Json(Json::Object{{"type", "ByteLevel"},
                             {"add_prefix_space", files.add_prefix_space.value_or(false)},
                             {"trim_offsets", true},
                             {"use_regex", use_regex}});
  };
  Json json;
  json.set("decoder", byte_level(true));
  if (tokenizer_class == "Qwen2Tokenizer" || tokenizer_class == "Qwen2TokenizerFast") {
    const Json split(Json::Object{{"type", "Split"},
                                  {"pattern", Json::Object{{"Regex", std::string(kQwen2Expression)}}},
                                  {"behavior", "Isolated"},
                                  {"invert", false}});
    json.set("normalizer", Json::Object{{"type", "NFC"}});
    json.set("pre_tokenizer", Json::Object{{"type", "Sequence"}, {"pretokenizers", Json::Array{split, byte_level(false)}}});
    return json;
  }
  check(std::find(kGpt2Like.begin(), kGpt2Like.end(), tokenizer_class) != kGpt2Like.end(), where, ": how ", tokenizer_class,
        " splits text is not known; provide a tokenizer.json");
  json.set("pre_tokenizer", byte_level(true));
  return json;
}

Json read_merges_file(const Path& file) {
  const std::string content = read_text(file);
  const size_t valid = utf8_valid_prefix(content);
  check(valid == content.size(), file.string(), ": not UTF-8 at byte ", valid);
  Json::Array merges;
  for (size_t start = 0; start < content.size();) {
    const size_t end = std::min(content.find('\n', start), content.size());
    std::string line = content.substr(start, end - start);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && !line.starts_with("#version")) merges.emplace_back(std::move(line));
    start = end + 1;
  }
  return merges;
}

std::unique_ptr<JsonTokenizer> from_vocab_and_merges(const Path& vocab, const Path& merges, SpecialTokenFiles& files) {
  Json json = pieces_for_class(files, vocab.parent_path().string());
  Json model(Json::Object{{"type", "BPE"}});
  model.set("vocab", Json::parse(read_text(vocab), vocab.string()));
  model.set("merges", read_merges_file(merges));
  json.set("model", std::move(model));
  auto tokenizer = std::make_unique<JsonTokenizer>(json, str(vocab.string(), " and ", merges.filename().string()));
  // transformers' defaults of this kind.
  if (tokenizer->id_of(kEndOfText)) {
    AddedToken end;
    end.content = kEndOfText;
    end.special = true;
    for (const char* role : {"bos_token", "eos_token", "unk_token"})
      if (auto& named = files.named[role];
          !named.given && !(std::string_view(role) == "bos_token" && files.tokenizer_class.starts_with("Qwen2")))
        named = {true, end};
  }
  return tokenizer;
}

TokenId checked_id(const Tokenizer& tokenizer, int64_t id, const Path& folder, std::string_view role) {
  check(id >= 0 && id < tokenizer.vocab_size(), folder.string(), ": generation_config.json or config.json names ", id, " as ", role,
        ", but the tokenizer has ", tokenizer.vocab_size(), " ids");
  return static_cast<TokenId>(id);
}

SpecialIds special_ids(const Tokenizer& tokenizer, const SpecialTokenFiles& files, const SpecialIds& own, const Path& folder) {
  const auto id_for = [&](const char* role, std::optional<TokenId> fallback, std::optional<int64_t> by_number) {
    if (const auto named = files.named.find(role); named != files.named.end() && named->second.given)
      return named->second.token ? tokenizer.id_of(named->second.token->content) : std::optional<TokenId>();
    if (fallback || !by_number) return fallback;
    return std::optional(checked_id(tokenizer, *by_number, folder, role));
  };
  SpecialIds special;
  special.bos = id_for("bos_token", own.bos, files.bos_id);
  special.eos = id_for("eos_token", own.eos, files.eos_id);
  special.pad = id_for("pad_token", own.pad, files.pad_id);
  special.unk = id_for("unk_token", own.unk, std::nullopt);
  if (special.eos) special.stop.push_back(*special.eos);
  for (const int64_t id : files.stop_ids) {
    const TokenId stop = checked_id(tokenizer, id, folder, "eos_token_id");
    if (std::find(special.stop.begin(), special.stop.end(), stop) == special.stop.end()) special.stop.push_back(stop);
  }
  return special;
}

// Files without a post-processor: bos and eos go around a text if tokenizer_config.json says so.
PostProcessor bos_and_eos(const SpecialTokenFiles& files, const SpecialIds& special) {
  TokenIds before, behind;
  if (files.add_bos.value_or(false) && special.bos) before.push_back(*special.bos);
  if (files.add_eos.value_or(false) && special.eos) behind.push_back(*special.eos);
  return {std::move(before), std::move(behind)};
}

void warn_of_moved_ids(const Tokenizer& tokenizer, const SpecialTokenFiles& files, const Path& folder) {
  for (const auto& [id, token] : files.added)
    if (const auto given = tokenizer.id_of(token.content); given && *given != id)
      log_warn_of_job(folder.string(), ": the added token \"", token.content, "\" has the id ", *given, ", not ", id,
                      ", as in transformers");
}

}  // namespace

TokenIds Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const size_t valid = utf8_valid_prefix(text);
  check(valid == text.size(), "cannot encode: the text is not UTF-8 at byte ", valid);
  check(text.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()) / 4, "cannot encode: a text of ", text.size(),
        " bytes is too long");
  TokenIds ids;
  ids.reserve(text.size() / 3 + 4);
  encode_text(text, options.match_special, ids);
  return options.add_special ? with_special(std::move(ids)) : ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, SpecialTokens special) const {
  StreamingDecoder decoder(*this, special);
  std::string text;
  for (const TokenId id : ids) text += decoder.feed(id);
  return text += decoder.flush();
}

std::string Tokenizer::decode_text(std::span<const TokenId> ids, SpecialTokens special) const {
  return utf8_replace_invalid(decode(ids, special));
}

bool has_tokenizer(const Path& folder) {
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name); };
  return has("tokenizer.json") || has("tokenizer.model") || (has("vocab.json") && has("merges.txt")) ||
         (has("encoder.json") && has("vocab.bpe"));
}

std::unique_ptr<Tokenizer> load_tokenizer(const Path& folder) {
  check(std::filesystem::is_directory(folder), folder.string(), ": no such folder");
  check(has_tokenizer(folder), folder.string(),
        ": no tokenizer: expected tokenizer.json, tokenizer.model, vocab.json with merges.txt, or encoder.json with vocab.bpe");
  SpecialTokenFiles files = SpecialTokenFiles::read(folder);
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name); };
  if (has("tokenizer.model") && !has("tokenizer.json")) {
    const std::string origin = (folder / "tokenizer.model").string();
    auto tokenizer = std::make_unique<SentencePieceTokenizer>(read_text(origin), origin);
    tokenizer->add_tokens(files.tokens_to_add(tokenizer->added_tokens()));
    tokenizer->set_space_after_added(files.legacy.value_or(false));
    if (!files.add_prefix_space.value_or(true)) tokenizer->drop_dummy_space();
    tokenizer->set_special(special_ids(*tokenizer, files, tokenizer->own_special(), folder));
    tokenizer->set_post_processor(bos_and_eos(files, tokenizer->special()));
    warn_of_moved_ids(*tokenizer, files, folder);
    return tokenizer;
  }
  std::unique_ptr<JsonTokenizer> tokenizer;
  const bool whole = has("tokenizer.json");
  if (whole) {
    const std::string origin = (folder / "tokenizer.json").string();
    tokenizer = std::make_unique<JsonTokenizer>(Json::parse(read_text(origin), origin), origin);
  } else if (has("vocab.json") && has("merges.txt")) {
    tokenizer = from_vocab_and_merges(folder / "vocab.json", folder / "merges.txt", files);
  } else {
    tokenizer = from_vocab_and_merges(folder / "encoder.json", folder / "vocab.bpe", files);
  }
  tokenizer->add_tokens(files.tokens_to_add(tokenizer->added_tokens()));
  tokenizer->set_special(special_ids(*tokenizer, files, {}, folder));
  if (!whole) tokenizer->set_post_processor(bos_and_eos(files, tokenizer->special()));
  warn_of_moved_ids(*tokenizer, files, folder);
  return tokenizer;
}

}  // namespace kedge
