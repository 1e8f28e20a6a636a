#include "kedge/text/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/tokenizer/byte_level.h"
#include "kedge/text/tokenizer/split_scanner.h"

namespace kedge {
namespace {

using Pair = std::pair<TokenId, TokenId>;

struct PairHash {
  size_t operator()(const Pair& pair) const {
    return (uint64_t{static_cast<uint32_t>(pair.first)} << 32U | static_cast<uint32_t>(pair.second)) * 0x9E3779B97F4A7C15U;
  }
};

struct Word {
  TokenIds symbols;
  int64_t count = 0;
};

// A pair as it was when it was queued; the count may have fallen since.
struct Candidate {
  int64_t count = 0;
  Pair pair;

  friend bool operator<(const Candidate& a, const Candidate& b) { return a.count != b.count ? a.count < b.count : b.pair < a.pair; }
};

class Trainer {
 public:
  Trainer(std::span<const std::string> texts, const BpeTraining& training) : training_(training) {
    for (const std::string& token : training.special_tokens) {
      check(!token.empty() && !ids_.contains(token), "a special token is empty or occurs twice: \"", token, "\"");
      add_token(token);
    }
    std::set<std::u32string::value_type> alphabet;
    for (unsigned byte = 0; byte < 256; ++byte) alphabet.insert(byte_to_char(static_cast<uint8_t>(byte)));
    for (const char32_t code : alphabet) {
      std::string token;
      utf8_append(token, code);
      byte_ids_[*char_to_byte(code)] = add_token(token);
    }
    count_words(texts);
    for (size_t i = 0; i < words_.size(); ++i)
      for (size_t k = 0; k + 1 < words_[i].symbols.size(); ++k) change({words_[i].symbols[k], words_[i].symbols[k + 1]}, 1, i);
    queue_changed();
  }

  void run() {
    while (static_cast<int64_t>(tokens_.size()) < training_.vocab_size && !queue_.empty()) {
      Candidate best = queue_.top();
      queue_.pop();
      if (best.count != counts_[best.pair]) {
        best.count = counts_[best.pair];
        queue_.push(best);
        continue;
      }
      if (best.count < std::max<int64_t>(1, training_.min_count)) break;
      const TokenId merged = add_token(tokens_[static_cast<size_t>(best.pair.first)] + tokens_[static_cast<size_t>(best.pair.second)]);
      merges_.emplace_back(Json::Array{tokens_[static_cast<size_t>(best.pair.first)], tokens_[static_cast<size_t>(best.pair.second)]});
      for (const size_t word : std::exchange(places_[best.pair], {})) merge(word, best.pair, merged);
      queue_changed();
    }
  }

  TokenizerFiles files() {
    ByteLevelParts parts;
    for (size_t id = 0; id < tokens_.size(); ++id) parts.vocab.append(tokens_[id], static_cast<int64_t>(id));
    parts.merges = std::move(merges_);
    parts.special = training_.special_tokens;
    return make_byte_level_files(std::move(parts), training_.roles);
  }

 private:
  TokenId add_token(const std::string& token) {
    const auto [place, is_new] = ids_.emplace(token, static_cast<TokenId>(tokens_.size()));
    if (is_new) tokens_.push_back(token);
    return place->second;
  }

  void count_words(std::span<const std::string> texts) {
    std::map<std::string, int64_t, std::less<>> counts;
    std::vector<WordSpan> spans;
    const SplitScanner scan = find_split_scanner(kGpt2Expression);
    for (size_t i = 0; i < texts.size(); ++i) {
      const size_t valid = utf8_valid_prefix(texts[i]);
      check(valid == texts[i].size(), "text ", i, " is not UTF-8 at byte ", valid);
      spans.clear();
      scan(texts[i], 0, spans);
      for (const WordSpan& span : spans) {
        const auto word = std::string_view(texts[i]).substr(span.start, span.end - span.start);
        const auto found = counts.find(word);
        found == counts.end() ? static_cast<void>(counts.emplace(word, 1)) : static_cast<void>(++found->second);
      }
    }
    for (const auto& [text, count] : counts) {
      Word word{{}, count};
      for (const char byte : text) word.symbols.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
      words_.push_back(std::move(word));
    }
  }

  void change(const Pair& pair, int64_t by, size_t word) {
    counts_[pair] += by * words_[word].count;
    if (by < 0) return;
    auto& places = places_[pair];
    if (places.empty() || places.back() != word) places.push_back(word);  // words come in order, so this leaves no doubles
    changed_.insert(pair);
  }

  void queue_changed() {
    for (const Pair& pair : changed_)
      if (counts_[pair] > 0) queue_.push({counts_[pair], pair});
    changed_.clear();
  }

  void merge(size_t index, const Pair& pair, TokenId merged) {
    TokenIds& symbols = words_[index].symbols;
    size_t kept = 0;
    for (size_t i = 0; i < symbols.size(); ++i) {
      const bool here = i + 1 < symbols.size() && symbols[i] == pair.first && symbols[i + 1] == pair.second;
      if (here) {
        if (kept > 0) change({symbols[kept - 1], pair.first}, -1, index), change({symbols[kept - 1], merged}, 1, index);
        if (i + 2 < symbols.size()) change({pair.second, symbols[i + 2]}, -1, index), change({merged, symbols[i + 2]}, 1, index);
        ++i;
      }
      symbols[kept++] = here ? merged : symbols[i];
    }
    symbols.resize(kept);
  }

  const BpeTraining& training_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, TokenId> ids_;
  std::array<TokenId, 256> byte_ids_{};
  std::vector<Word> words_;
  std::unordered_map<Pair, int64_t, PairHash> counts_;
  std::unordered_map<Pair, std::vector<size_t>, PairHash> places_;  // the words that contain, or contained, a pair
  std::set<Pair> changed_;
  std::priority_queue<Candidate> queue_;
  Json::Array merges_;
};

}  // namespace

TokenizerFiles train_bpe(std::span<const std::string> texts, const BpeTraining& training) {
  const auto smallest = static_cast<int64_t>(256 + training.special_tokens.size());
  check(training.vocab_size >= smallest, "a vocabulary of ", training.vocab_size, " is too small: ", smallest,
        " or more are needed for bytes and special tokens");
  Trainer trainer(texts, training);
  trainer.run();
  return trainer.files();
}

}  // namespace kedge
