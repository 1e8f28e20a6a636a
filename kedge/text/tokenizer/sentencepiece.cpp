#include "kedge/text/tokenizer/sentencepiece.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/core/utf8.h"
#include "kedge/text/tokenizer/byte_level.h"

namespace kedge {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";

// A character that is in no piece is a negative number during the merges.
TokenId unknown_symbol(char32_t code) { return -2 - static_cast<TokenId>(code); }
char32_t code_of_stranger(TokenId symbol) { return static_cast<char32_t>(-2 - symbol); }

bool mergeable(SentencePieceModel::PieceType type) {
  using PieceType = SentencePieceModel::PieceType;
  return type == PieceType::normal || type == PieceType::user_defined || type == PieceType::unused;
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(std::string_view bytes, const std::string& origin)
    : model_(SentencePieceModel::parse(bytes, origin)), text_(model_, origin) {
  check(model_.pieces.size() <= static_cast<size_t>(Vocab::kMaxId), origin, ": ", model_.pieces.size(), " pieces are too many");
  vocab_.reserve(model_.pieces.size());
  for (size_t id = 0; id < model_.pieces.size(); ++id)
    ensure(vocab_.add(model_.pieces[id].text, static_cast<TokenId>(id)), "pieces are unique");
  for (unsigned byte = 0; byte < 256; ++byte) byte_ids_[byte] = vocab_.find(byte_token(static_cast<uint8_t>(byte))).value_or(-1);
  if (model_.algorithm == SentencePieceModel::Algorithm::bpe) {
    build_merges(origin);
  } else {
    build_search();
  }
}

// SentencePiece merges two neighbours when their text together is a piece, the piece of the highest score first. So every cut
// of a piece into two symbols is a merge, and the order of scores is the rank.
void SentencePieceTokenizer::build_merges(const std::string& origin) {
  std::vector<float> scores;
  symbols_ = vocab_;
  for (const auto& piece : model_.pieces) {
    if (!mergeable(piece.type)) continue;
    scores.push_back(piece.score);
    for (std::string_view rest = piece.text; !rest.empty(); rest.remove_prefix(utf8_length(rest)))
      if (const auto character = rest.substr(0, utf8_length(rest)); !symbols_.find(character))
        ensure(symbols_.add(character, symbols_.end_id()), "a new character has no symbol yet");
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<BpeMerges::Merge> merges;
  for (size_t id = 0; id < model_.pieces.size(); ++id) {
    const auto& piece = model_.pieces[id];
    if (!mergeable(piece.type)) continue;
    const auto rank = static_cast<uint32_t>(std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>()) - scores.begin());
    const std::string_view text = piece.text;
    for (size_t at = utf8_length(text); at < text.size(); at += utf8_length(text.substr(at))) {
      const auto left = symbols_.find(text.substr(0, at));
      const auto right = symbols_.find(text.substr(at));
      if (!left || !right) continue;
      check(piece.type != PieceType::unused, origin, ": piece ", id, " \"", text, "\" is unused but can be merged, which is not supported");
      merges.push_back({*left, *right, rank, static_cast<TokenId>(id)});
    }
  }
  merges_ = BpeMerges(merges);
  std::vector<char32_t> known;
  for (const auto& piece : model_.pieces)
    if (mergeable(piece.type) && utf8_length(piece.text) == piece.text.size()) known.push_back(utf8_decode(piece.text));
  cuts_ = BpeCuts(known);
  for (const auto& piece : model_.pieces)
    if (mergeable(piece.type)) cuts_.add_token(piece.text);
}

void SentencePieceTokenizer::build_search() {
  std::vector<UnigramSearch<float>::Piece> pieces;
  float worst = std::numeric_limits<float>::max();
  for (size_t id = 0; id < model_.pieces.size(); ++id) {
    const auto& piece = model_.pieces[id];
    if (piece.type == PieceType::normal) worst = std::min(worst, piece.score);
    if (piece.type != PieceType::normal && piece.type != PieceType::user_defined) continue;
    // A user-defined symbol gets a bonus for its length, so that it always wins.
    const float score =
        piece.type == PieceType::normal ? piece.score : static_cast<float>(0.1 * (static_cast<double>(piece.text.size()) - 1));
    pieces.push_back({piece.text, static_cast<TokenId>(id), score});
  }
  search_ = UnigramSearch<float>(pieces, worst - UnigramSearch<float>::kUnknownPenalty);
}

void SentencePieceTokenizer::add_tokens(std::vector<AddedToken> tokens) {
  for (AddedToken& token : tokens) token.normalized = false;  // nothing normalizes text before it is searched for them
  added_.add(tokens, vocab_, Normalizer());
}

void SentencePieceTokenizer::encode_text(std::string_view text, bool match_special, TokenIds& ids) const {
  added_.split(text, AddedTokens::Pass::raw, match_special, [&](const AddedTokens::Stretch& stretch) {
    if (stretch.id) {
      ids.push_back(*stretch.id);
    } else {
      const bool dummy_space = model_.add_dummy_prefix && (stretch.start == 0 || space_after_added_);
      encode_normalized(text_.normalize(text.substr(stretch.start, stretch.end - stretch.start), dummy_space), ids);
    }
  });
}

void SentencePieceTokenizer::encode_normalized(std::string_view text, TokenIds& ids) const {
  if (model_.algorithm == SentencePieceModel::Algorithm::unigram) return encode_unigram(text, ids);
  WordCache::Table& cache = cache_.local();
  if (text_.symbols().empty()) return encode_bpe(text, cache, ids);
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const auto symbol = text_.symbols().longest(text.substr(at));
    if (symbol.length == 0) {
      at += utf8_length(text.substr(at));
      continue;
    }
    encode_bpe(text.substr(done, at - done), cache, ids);
    ids.push_back(symbol.value);
    done = at += symbol.length;
  }
  encode_bpe(text.substr(done), cache, ids);
}

void SentencePieceTokenizer::encode_bpe(std::string_view text, WordCache::Table& cache, TokenIds& ids) const {
  cuts_.each_part(text, [&](std::string_view part) { encode_bpe_word(part, cache, ids); });
}

void SentencePieceTokenizer::encode_bpe_word(std::string_view word, WordCache::Table& cache, TokenIds& ids) const {
  if (word.empty()) return;
  if (const auto known = cache.find(word); !known.empty()) {
    ids.insert(ids.end(), known.begin(), known.end());
    return;
  }
  thread_local TokenIds symbols;
  symbols.clear();
  for (std::string_view rest = word; !rest.empty();) {
    const std::string_view character = rest.substr(0, utf8_length(rest));
    rest.remove_prefix(character.size());
    const auto symbol = symbols_.find(character);
    symbols.push_back(symbol ? *symbol : unknown_symbol(utf8_decode(character)));
  }
  merges_.apply(symbols);
  const size_t old_size = ids.size();
  bool after_unknown = false;
  for (const TokenId symbol : symbols) {
    const bool known = symbol >= 0 && vocab_.has(symbol) && symbol != static_cast<TokenId>(model_.unk_id);
    if (known) {
      ids.push_back(symbol);
    } else {
      std::string character;
      if (symbol < 0) utf8_append(character, code_of_stranger(symbol));
      append_unknown(symbol < 0 ? std::string_view(character) : symbols_.token(symbol), after_unknown, ids);
    }
    after_unknown = !known;
  }
  cache.store(word, std::span(ids).subspan(old_size));
}

void SentencePieceTokenizer::encode_unigram(std::string_view text, TokenIds& ids) const {
  thread_local std::vector<UnigramSearch<float>::Segment> segments;
  segments.clear();
  search_.run(text, segments);
  bool after_unknown = false;
  for (const auto& segment : segments) {
    const bool unknown = segment.id == UnigramSearch<float>::kUnknown;
    if (unknown) {
      append_unknown(text.substr(segment.start, segment.end - segment.start), after_unknown, ids);
    } else {
      ids.push_back(segment.id);
    }
    after_unknown = unknown;
  }
}

// The bytes of an unknown character, or one unknown piece for a run of them.
void SentencePieceTokenizer::append_unknown(std::string_view text, bool after_unknown, TokenIds& ids) const {
  if (model_.byte_fallback) {
    for (const char byte : text) ids.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
  } else if (!after_unknown) {
    ids.push_back(static_cast<TokenId>(model_.unk_id));
  }
}

// Decodes as SentencePiece, except that bytes that form no character are kept.
class SentencePieceTokenizer::Decoder : public IdDecoder {
 public:
  explicit Decoder(const SentencePieceTokenizer& tokenizer) : tokenizer_(tokenizer), model_(tokenizer.model_) {}

  void push(TokenId id, std::string& out) override {
    const size_t old_size = out.size();
    if (id >= static_cast<TokenId>(model_.pieces.size())) {
      if (tokenizer_.added_.has(id)) out.append(tokenizer_.added_.token(id).content);
    } else {
      push_piece(model_.pieces[static_cast<size_t>(id)], out);
    }
    any_text_ |= out.size() > old_size;
  }
  void finish(std::string&) override {}

 private:
  void push_piece(const SentencePieceModel::Piece& piece, std::string& out) {
    if (piece.type == PieceType::control) return;
    if (piece.type == PieceType::unknown) return static_cast<void>(out.append(model_.unk_surface));
    if (piece.type == PieceType::byte) return out.push_back(static_cast<char>(*byte_of_token(piece.text)));
    std::string_view text = piece.text;
    // The dummy space, and with remove_extra_whitespaces every space before the first text.
    if (!any_text_ && !space_taken_ && (model_.add_dummy_prefix || model_.remove_extra_whitespaces) && text.starts_with(kMark)) {
      text.remove_prefix(kMark.size());
      space_taken_ = !model_.remove_extra_whitespaces;
    }
    for (size_t at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark)) {
      out.append(text.substr(0, at)).push_back(' ');
      text.remove_prefix(at + kMark.size());
    }
    out.append(text);
  }

  const SentencePieceTokenizer& tokenizer_;
  const SentencePieceModel& model_;
  bool any_text_ = false;
  bool space_taken_ = false;
};

std::unique_ptr<IdDecoder> SentencePieceTokenizer::start_decoding() const { return std::make_unique<Decoder>(*this); }

TokenId SentencePieceTokenizer::vocab_size() const { return std::max(vocab_.end_id(), added_.end_id()); }

std::string SentencePieceTokenizer::token_of(TokenId id) const {
  return std::string(added_.has(id) ? added_.token(id).content : vocab_.token(id));
}

std::optional<TokenId> SentencePieceTokenizer::id_of(std::string_view token) const {
  const auto id = added_.find(token);
  return id ? id : vocab_.find(token);
}

bool SentencePieceTokenizer::is_special(TokenId id) const {
  if (added_.has(id)) return added_.is_special(id);
  return vocab_.has(id) && (type_of(id) == PieceType::control || type_of(id) == PieceType::unknown);
}

SpecialIds SentencePieceTokenizer::own_special() const {
  const auto control = [&](std::string_view piece) {
    const auto id = vocab_.find(piece);
    return id && type_of(*id) == PieceType::control ? id : std::nullopt;
  };
  SpecialIds special;
  special.bos = control(model_.bos_piece);
  special.eos = control(model_.eos_piece);
  special.pad = control(model_.pad_piece);
  special.unk = static_cast<TokenId>(model_.unk_id);
  return special;
}

std::string SentencePieceTokenizer::fingerprint() const {
  Fingerprint fingerprint;
  for (size_t id = 0; id < model_.pieces.size(); ++id) {
    const auto& piece = model_.pieces[id];
    fingerprint.add(static_cast<int64_t>(id));
    fingerprint.add(piece.text);
    fingerprint.add(shortest(double{piece.score}));
    fingerprint.add(static_cast<int64_t>(piece.type));
  }
  added_.add_to(fingerprint);
  return fingerprint.hex();
}

}  // namespace kedge
