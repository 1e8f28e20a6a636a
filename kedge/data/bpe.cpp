#include "kedge/data/bpe.h"

#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/data/byte_level.h"

namespace kedge {
namespace {

constexpr TokenId kNoId = -1;
constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581, a space in SentencePiece's spelling

// Is there a mark in the token with something other than a mark before it?
bool has_inner_mark(std::string_view token) {
  for (size_t at = token.find(kMark); at != std::string_view::npos; at = token.find(kMark, at + 1))
    if (at > 0 && !token.substr(0, at).ends_with(kMark)) return true;
  return false;
}

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
  split_at_marks_ = words_part_before_marks(merge_list_);
}

bool BpeModel::words_part_before_marks(std::span<const BpeMerges::Merge> merges) const {
  if (options_.words_are_bytes || options_.ignore_merges || !options_.continuing_subword_prefix.empty() ||
      !options_.end_of_word_suffix.empty())
    return false;
  return vocab_.find(kMark) && std::none_of(merges.begin(), merges.end(),
                                            [&](const BpeMerges::Merge& merge) { return has_inner_mark(vocab_.token(merge.merged)); });
}

void BpeModel::encode(std::string_view text, std::span<const WordSpan> words, TokenIds& ids) const {
  WordCache::Table& cache = cache_.local();
  for (const WordSpan& span : words) {
    std::string_view word = text.substr(span.start, span.end - span.start);
    if (split_at_marks_) {
      // Nothing merges across these places, so each part can be encoded, and remembered, by itself.
      for (size_t at = word.find(kMark, 1); at != std::string_view::npos;) {
        if (word.substr(0, at).ends_with(kMark)) {
          at = word.find(kMark, at + 1);
          continue;
        }
        encode_word(word.substr(0, at), cache, ids);
        word.remove_prefix(at);
        at = word.find(kMark, 1);
      }
    }
    encode_word(word, cache, ids);
  }
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
  check(id.has_value(), "the text has a character that the vocabulary lacks, and so is its unk_token \"", *options_.unk_token,
        "\" lacking");
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
