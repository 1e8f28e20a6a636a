#include "kedge/text/tokenizer/bpe.h"

#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/tokenizer/byte_level.h"

namespace kedge {
namespace {

constexpr TokenId kNoId = -1;
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, a space in SentencePiece's spelling

}  // namespace

BpeModel::BpeModel(Vocab vocab, const TextMerges& merges, BpeOptions options, std::string_view where)
    : vocab_(std::move(vocab)), options_(std::move(options)) {
  const auto id_of = [&](std::string_view token, size_t index) {
    const auto id = vocab_.find(token);
    check(id.has_value(), where, ".merges[", index, "]: the token \"", token, "\" is not in the vocabulary");
    return *id;
  };
  merge_list_.reserve(merges.size());
  const std::string_view prefix = options_.continuing_subword_prefix;
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto& [left, right] = merges[i];
    check(right.size() >= prefix.size(), where, ".merges[", i, "]: \"", right, "\" is shorter than the prefix of continuing tokens");
    const std::string merged = left + right.substr(prefix.size());
    merge_list_.push_back({id_of(left, i), id_of(right, i), static_cast<uint32_t>(i), id_of(merged, i)});
  }
  merges_ = BpeMerges(merge_list_);
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string token;
    if (options_.words_are_bytes || byte < 0x80)
      utf8_append(token, options_.words_are_bytes ? byte_to_char(static_cast<uint8_t>(byte)) : byte);
    byte_ids_[byte] = token.empty() ? kNoId : vocab_.find(token).value_or(kNoId);
    fallback_ids_[byte] = vocab_.find(byte_token(static_cast<uint8_t>(byte))).value_or(kNoId);
  }
  if (options_.words_are_bytes && options_.ignore_merges) {
    byte_vocab_.reserve(vocab_.num_tokens());
    for (TokenId id = 0; id < vocab_.end_id(); ++id)
      if (const auto bytes = from_byte_level(vocab_.token(id)); bytes && vocab_.has(id))
        ensure(byte_vocab_.add(*bytes, id), "byte-level tokens are unique");
  }
  find_cuts();
}

void BpeModel::find_cuts() {
  // Where a word's spelling depends on its ends, or it may be a token as a whole, it must not be split.
  if (options_.words_are_bytes || options_.ignore_merges || !options_.continuing_subword_prefix.empty() ||
      !options_.end_of_word_suffix.empty())
    return;
  // The token for an unknown character must exist, or its neighbours would be adjacent, and must not merge: its text is another.
  const TokenId unk = options_.unk_token ? vocab_.find(*options_.unk_token).value_or(kNoId) : kNoId;
  const auto stands_in = [&](TokenId id) { return id == unk || (options_.byte_fallback && byte_of_token(vocab_.token(id))); };
  if (unk == kNoId || std::any_of(merge_list_.begin(), merge_list_.end(),
                                  [&](const auto& merge) { return stands_in(merge.left) || stands_in(merge.right); }))
    return;
  std::vector<char32_t> known;
  for (char32_t code = 0; code < 0x80; ++code)
    if (byte_ids_[code] != kNoId) known.push_back(code);
  if (vocab_.find(kSpaceMark)) known.push_back(utf8_decode(kSpaceMark));
  cuts_ = BpeCuts(known);
  for (const auto& merge : merge_list_) cuts_.add_token(vocab_.token(merge.merged));
}

void BpeModel::encode(std::string_view text, std::span<const WordSpan> words, TokenIds& ids) const {
  WordCache::Table& cache = cache_.local();
  for (const WordSpan& span : words)
    cuts_.each_part(text.substr(span.start, span.end - span.start), [&](std::string_view part) { encode_word(part, cache, ids); });
}

void BpeModel::encode_word(std::string_view word, WordCache::Table& cache, TokenIds& ids) const {
  if (word.empty()) return;
  if (options_.ignore_merges) {
    if (const auto id = (options_.words_are_bytes ? byte_vocab_ : vocab_).find(word)) {
      ids.push_back(*id);
      return;
    }
  }
  if (const auto known = cache.find(word); !known.empty()) {
    ids.insert(ids.end(), known.begin(), known.end());
    return;
  }
  thread_local TokenIds symbols;
  symbols.clear();
  if (options_.words_are_bytes) {
    append_byte_symbols(word, symbols);
  } else {
    append_symbols(word, symbols);
  }
  merges_.apply(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
  cache.store(word, symbols);
}

TokenId BpeModel::unk_id() const {
  const auto id = vocab_.find(*options_.unk_token);
  check(id.has_value(), "the text has a character that is not in the vocabulary, and its unk_token \"", *options_.unk_token,
        "\" is not either");
  return *id;
}

void BpeModel::append_byte_symbols(std::string_view word, TokenIds& symbols) const {
  bool after_unk = false;
  for (const char byte : word) {
    const TokenId id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id != kNoId) {
      symbols.push_back(id);
    } else if (options_.unk_token && !(after_unk && options_.fuse_unk)) {
      symbols.push_back(unk_id());
    }
    after_unk = id == kNoId;
  }
}

void BpeModel::append_symbols(std::string_view word, TokenIds& symbols) const {
  const std::string_view prefix = options_.continuing_subword_prefix;
  const std::string_view suffix = options_.end_of_word_suffix;
  bool unk_pending = false;  // an unknown character is written when the next known one comes, even past byte tokens
  std::string spelled;
  for (size_t at = 0; at < word.size();) {
    const auto first = static_cast<uint8_t>(word[at]);
    const size_t length = first < 0x80 ? 1 : utf8_length(word.substr(at));
    std::string_view character = word.substr(at, length);
    const bool with_prefix = at > 0 && !prefix.empty();
    const bool with_suffix = at + length == word.size() && !suffix.empty();
    at += length;
    TokenId id = kNoId;
    if (with_prefix || with_suffix) {
      spelled = str(with_prefix ? prefix : "", character, with_suffix ? suffix : "");
      character = spelled;
      id = vocab_.find(character).value_or(kNoId);
    } else {
      id = first < 0x80 ? byte_ids_[first] : vocab_.find(character).value_or(kNoId);
    }
    if (id != kNoId) {
      if (unk_pending) symbols.push_back(unk_id());
      unk_pending = false;
      symbols.push_back(id);
      continue;
    }
    const auto fallback = [&](char byte) { return fallback_ids_[static_cast<uint8_t>(byte)]; };
    if (options_.byte_fallback && std::all_of(character.begin(), character.end(), [&](char byte) { return fallback(byte) != kNoId; })) {
      for (const char byte : character) symbols.push_back(fallback(byte));
    } else if (options_.unk_token) {
      if (unk_pending && !options_.fuse_unk) symbols.push_back(unk_id());
      unk_pending = true;
    }
  }
  if (unk_pending) symbols.push_back(unk_id());
}

void BpeModel::add_to(Fingerprint& fingerprint) const {
  for (TokenId id = 0; id < vocab_.end_id(); ++id) {
    if (!vocab_.has(id)) continue;
    fingerprint.add(int64_t{id});
    fingerprint.add(vocab_.token(id));
  }
  for (const auto& merge : merge_list_) {
    fingerprint.add(int64_t{merge.left});
    fingerprint.add(int64_t{merge.right});
  }
}

}  // namespace kedge
