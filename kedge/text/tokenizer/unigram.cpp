#include "kedge/text/tokenizer/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/core/utf8.h"
#include "kedge/text/tokenizer/byte_level.h"

namespace kedge {
namespace {

template <typename Score>
struct Ending {  // the best way to end a piece at a place
  Score sum = 0;
  int32_t start = -1;
  TokenId id = 0;
};

// Sums grow with the text; SentencePiece keeps single precision from running out by starting again from zero.
void keep_small(std::vector<Ending<float>>& endings, size_t start, size_t frontier) {
  constexpr float kLimit = 100000.0F;
  const float sum = endings[start].sum;
  if (sum >= -kLimit && sum <= kLimit) return;
  for (size_t i = start; i <= frontier; ++i)
    if (i == start || endings[i].start != -1) endings[i].sum -= sum;
  endings[start].sum = 0;
}
void keep_small(std::vector<Ending<double>>&, size_t, size_t) {}

}  // namespace

template <typename Score>
UnigramSearch<Score>::UnigramSearch(std::span<const Piece> pieces, Score unknown_score) : unknown_score_(unknown_score) {
  std::vector<std::pair<std::string_view, int32_t>> entries;
  for (const Piece& piece : pieces) {
    entries.emplace_back(piece.text, piece.id);
    if (static_cast<size_t>(piece.id) >= scores_.size()) scores_.resize(static_cast<size_t>(piece.id) + 1);
    scores_[static_cast<size_t>(piece.id)] = piece.score;
  }
  trie_ = ByteTrie(std::move(entries));
}

template <typename Score>
void UnigramSearch<Score>::run(std::string_view text, std::vector<Segment>& segments) const {
  thread_local std::vector<Ending<Score>> endings;
  endings.assign(text.size() + 1, {});
  size_t frontier = 0;
  for (size_t start = 0; start < text.size();) {
    keep_small(endings, start, frontier);
    const Score so_far = endings[start].sum;
    const size_t one_char = utf8_length(text.substr(start));
    const auto offer = [&](size_t length, TokenId id, Score score) {
      Ending<Score>& ending = endings[start + length];
      const Score sum = score + so_far;
      frontier = std::max(frontier, start + length);
      if (ending.start == -1 || sum > ending.sum) ending = {sum, static_cast<int32_t>(start), id};
    };
    bool char_is_piece = false;
    trie_.each_prefix(text.substr(start), [&](size_t length, int32_t id) {
      offer(length, id, scores_[static_cast<size_t>(id)]);
      char_is_piece |= length == one_char;
    });
    if (!char_is_piece) offer(one_char, kUnknown, unknown_score_);
    start += one_char;
  }
  const size_t old_size = segments.size();
  for (size_t end = text.size(); end > 0;) {
    const Ending<Score>& ending = endings[end];
    segments.push_back({static_cast<size_t>(ending.start), end, ending.id});
    end = static_cast<size_t>(ending.start);
  }
  std::reverse(segments.begin() + static_cast<ptrdiff_t>(old_size), segments.end());
}

template class UnigramSearch<float>;
template class UnigramSearch<double>;

UnigramModel::UnigramModel(Pieces pieces, std::optional<TokenId> unk_id, bool byte_fallback, std::string_view where)
    : unk_id_(unk_id), byte_fallback_(byte_fallback) {
  check(!unk_id || (*unk_id >= 0 && static_cast<size_t>(*unk_id) < pieces.size()), where, ".unk_id: ", unk_id.value_or(0),
        " is not an id of the ", pieces.size(), " pieces");
  vocab_.reserve(pieces.size());
  double worst = std::numeric_limits<double>::infinity();
  std::vector<UnigramSearch<double>::Piece> searched;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto& [text, score] = pieces[i];
    check(std::isfinite(score), where, ".vocab[", i, "]: the score is not a number");
    check(vocab_.add(text, static_cast<TokenId>(i)), where, ".vocab[", i, "]: the piece \"", text,
          "\" occurs twice, or there are too many");
    scores_.push_back(score);
    worst = std::min(worst, score);
    searched.push_back({text, static_cast<TokenId>(i), score});
  }
  search_ = UnigramSearch<double>(searched, worst - UnigramSearch<double>::kUnknownPenalty);
}

void UnigramModel::encode(std::string_view text, std::span<const WordSpan> words, TokenIds& ids) const {
  WordCache::Table& cache = cache_.local();
  for (const WordSpan& span : words) {
    const std::string_view word = text.substr(span.start, span.end - span.start);
    if (word.empty()) continue;
    if (const auto known = cache.find(word); !known.empty()) {
      ids.insert(ids.end(), known.begin(), known.end());
      continue;
    }
    const size_t old_size = ids.size();
    encode_word(word, ids);
    cache.store(word, std::span(ids).subspan(old_size));
  }
}

void UnigramModel::encode_word(std::string_view word, TokenIds& ids) const {
  thread_local std::vector<UnigramSearch<double>::Segment> segments;
  segments.clear();
  search_.run(word, segments);
  for (size_t i = 0; i < segments.size();) {
    auto segment = segments[i++];
    const auto unknown = [&](TokenId id) { return id == UnigramSearch<double>::kUnknown || id == unk_id_; };
    if (!unknown(segment.id)) {
      ids.push_back(segment.id);
      continue;
    }
    check(unk_id_.has_value(), "the text has a character that is not in the vocabulary, and the tokenizer has no unk_id");
    for (; i < segments.size() && unknown(segments[i].id); ++i) segment.end = segments[i].end;  // a run of unknown characters is one
    append_unknown(word.substr(segment.start, segment.end - segment.start), ids);
  }
}

void UnigramModel::append_unknown(std::string_view text, TokenIds& ids) const {
  if (const auto id = vocab_.find(text)) {
    ids.push_back(*id);
    return;
  }
  const size_t old_size = ids.size();
  for (const char byte : text) {
    const auto id = byte_fallback_ ? vocab_.find(byte_token(static_cast<uint8_t>(byte))) : std::nullopt;
    if (!id) {
      ids.resize(old_size);
      ids.push_back(*unk_id_);
      return;
    }
    ids.push_back(*id);
  }
}

void UnigramModel::add_to(Fingerprint& fingerprint) const {
  for (TokenId id = 0; id < vocab_.end_id(); ++id) {
    fingerprint.add(int64_t{id});
    fingerprint.add(vocab_.token(id));
    fingerprint.add(shortest(scores_[static_cast<size_t>(id)]));
  }
}

}  // namespace kedge
