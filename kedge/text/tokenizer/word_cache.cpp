#include "kedge/text/tokenizer/word_cache.h"

#include <algorithm>
#include <atomic>

namespace kedge {

void WordCache::Table::store(std::string_view word, std::span<const TokenId> ids) {
  if (word.empty() || word.size() > kMaxBytes || ids.empty() || ids.size() > kMaxIds) return;
  Entry& entry = entries_[slot(word)];
  entry.num_bytes = static_cast<uint8_t>(word.size());
  entry.num_ids = static_cast<uint8_t>(ids.size());
  std::copy(word.begin(), word.end(), entry.bytes.begin());
  std::copy(ids.begin(), ids.end(), entry.ids.begin());
}

WordCache::WordCache() {
  static std::atomic<uint64_t> next{1};
  number_ = next++;
}

WordCache::Table& WordCache::local() const {
  constexpr size_t kMaxTables = 4;  // two megabytes each
  struct Owned {
    uint64_t number;
    std::unique_ptr<Table> table;
  };
  thread_local std::vector<Owned> tables;  // the most recently used first
  auto found = std::find_if(tables.begin(), tables.end(), [&](const Owned& owned) { return owned.number == number_; });
  if (found == tables.end()) {
    if (tables.size() == kMaxTables) tables.pop_back();
    tables.push_back({number_, std::make_unique<Table>()});
    found = std::prev(tables.end());
  }
  std::rotate(tables.begin(), found, std::next(found));
  return *tables.front().table;
}

}  // namespace kedge
