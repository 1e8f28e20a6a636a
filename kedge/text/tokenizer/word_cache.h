#pragma once
// Caches the ids of words. Bounded, and separate for each thread: no locks. A word that does not fit is not kept.
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kedge/text/tokenizer/vocab.h"

namespace kedge {

class WordCache {
 public:
  class Table {
   public:
    // The ids of the word; an empty span if it is not known.
    [[nodiscard]] std::span<const TokenId> find(std::string_view word) const {
      if (word.size() > kMaxBytes) return {};
      const Entry& entry = entries_[slot(word)];
      if (entry.num_bytes != word.size() || std::memcmp(entry.bytes.data(), word.data(), word.size()) != 0) return {};
      return {entry.ids.data(), entry.num_ids};
    }
    void store(std::string_view word, std::span<const TokenId> ids);

   private:
    static constexpr size_t kMaxBytes = 30;
    static constexpr size_t kMaxIds = 8;
    static constexpr size_t kNumEntries = size_t{1} << 15U;
    struct Entry {  // a cache line
      uint8_t num_bytes = 0;
      uint8_t num_ids = 0;
      std::array<char, kMaxBytes> bytes{};
      std::array<TokenId, kMaxIds> ids{};
    };

    static size_t slot(std::string_view word) { return hash_bytes(word) & (kNumEntries - 1); }

    std::vector<Entry> entries_ = std::vector<Entry>(kNumEntries);
  };

  WordCache();

  // This thread's table for this cache. Stays valid until the thread uses several other caches.
  [[nodiscard]] Table& local() const;

 private:
  uint64_t number_;  // no two caches of a process share one
};

}  // namespace kedge
