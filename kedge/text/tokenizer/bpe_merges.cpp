#include "kedge/text/tokenizer/bpe_merges.h"

#include <algorithm>
#include <array>
#include <functional>

namespace kedge {
namespace {

constexpr size_t kShort = 48;  // up to here a plain search for the lowest rank beats a heap

uint64_t pair_of(TokenId left, TokenId right) { return uint64_t{static_cast<uint32_t>(left)} << 32U | static_cast<uint32_t>(right); }

size_t hash_pair(uint64_t pair) {
  pair *= 0x9E3779B97F4A7C15U;
  return pair ^ (pair >> 32U);
}

uint32_t rank_of(uint64_t rank_and_merged) { return static_cast<uint32_t>(rank_and_merged >> 32U); }
TokenId merged_of(uint64_t rank_and_merged) { return static_cast<TokenId>(rank_and_merged & 0xFFFFFFFFU); }

// Working memory of a long word, kept from word to word.
struct Chain {
  std::vector<int32_t> previous, next;
  std::vector<uint64_t> merge;  // of each symbol with its right neighbour
  std::vector<uint64_t> queue;  // rank << 32 | position, smallest on top; entries may be out of date
};

}  // namespace

BpeMerges::BpeMerges(std::span<const Merge> merges) {
  if (merges.empty()) return;
  size_t size = 16;
  while (size < merges.size() * 2) size *= 2;
  slots_.resize(size);
  for (const Merge& merge : merges) {
    const uint64_t pair = pair_of(merge.left, merge.right);
    size_t slot = hash_pair(pair) & (size - 1);
    while (slots_[slot].pair != kFree && slots_[slot].pair != pair) slot = (slot + 1) & (size - 1);
    slots_[slot] = {pair, uint64_t{merge.rank} << 32U | static_cast<uint32_t>(merge.merged)};
  }
}

uint64_t BpeMerges::find(TokenId left, TokenId right) const {
  const uint64_t pair = pair_of(left, right);
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash_pair(pair) & mask; slots_[slot].pair != kFree; slot = (slot + 1) & mask)
    if (slots_[slot].pair == pair) return slots_[slot].rank_and_merged;
  return kNothing;
}

void BpeMerges::apply(TokenIds& ids) const {
  if (ids.size() < 2 || slots_.empty()) return;
  if (ids.size() <= kShort) {
    apply_short(ids);
  } else {
    apply_long(ids);
  }
}

void BpeMerges::apply_short(TokenIds& ids) const {
  std::array<uint64_t, kShort> merge{};  // of each symbol with its right neighbour
  size_t size = ids.size();
  for (size_t i = 0; i + 1 < size; ++i) merge[i] = find(ids[i], ids[i + 1]);
  while (size > 1) {
    size_t best = 0;
    uint32_t best_rank = kNoRank;
    for (size_t i = 0; i + 1 < size; ++i) {
      if (rank_of(merge[i]) < best_rank) {
        best_rank = rank_of(merge[i]);
        best = i;
      }
    }
    if (best_rank == kNoRank) break;
    ids[best] = merged_of(merge[best]);
    std::copy(ids.begin() + static_cast<ptrdiff_t>(best) + 2, ids.begin() + static_cast<ptrdiff_t>(size),
              ids.begin() + static_cast<ptrdiff_t>(best) + 1);
    std::copy(merge.begin() + best + 2, merge.begin() + size, merge.begin() + best + 1);
    size -= 1;
    if (best > 0) merge[best - 1] = find(ids[best - 1], ids[best]);
    if (best + 1 < size) merge[best] = find(ids[best], ids[best + 1]);
  }
  ids.resize(size);
}

void BpeMerges::apply_long(TokenIds& ids) const {
  thread_local Chain chain;
  const auto size = static_cast<int32_t>(ids.size());
  chain.previous.resize(ids.size());
  chain.next.resize(ids.size());
  chain.merge.assign(ids.size(), kNothing);
  chain.queue.clear();
  const auto at = [](int32_t i) { return static_cast<size_t>(i); };
  const auto look_up = [&](int32_t i) {
    const int32_t right = chain.next[at(i)];
    chain.merge[at(i)] = right < size ? find(ids[at(i)], ids[at(right)]) : kNothing;
    return rank_of(chain.merge[at(i)]);
  };
  const auto entry = [](uint32_t rank, int32_t i) { return uint64_t{rank} << 32U | static_cast<uint32_t>(i); };
  for (int32_t i = 0; i < size; ++i) {
    chain.previous[at(i)] = i - 1;
    chain.next[at(i)] = i + 1;
    if (const uint32_t rank = look_up(i); rank != kNoRank) chain.queue.push_back(entry(rank, i));
  }
  std::make_heap(chain.queue.begin(), chain.queue.end(), std::greater<>());
  const auto push = [&](int32_t i) {
    if (const uint32_t rank = look_up(i); rank != kNoRank) {
      chain.queue.push_back(entry(rank, i));
      std::push_heap(chain.queue.begin(), chain.queue.end(), std::greater<>());
    }
  };
  while (!chain.queue.empty()) {
    std::pop_heap(chain.queue.begin(), chain.queue.end(), std::greater<>());
    const uint64_t top = chain.queue.back();
    chain.queue.pop_back();
    const auto left = static_cast<int32_t>(top & 0xFFFFFFFFU);
    if (rank_of(chain.merge[at(left)]) != rank_of(top)) continue;  // out of date
    const int32_t right = chain.next[at(left)];
    ids[at(left)] = merged_of(chain.merge[at(left)]);
    chain.merge[at(right)] = kNothing;
    chain.next[at(left)] = chain.next[at(right)];
    if (chain.next[at(left)] < size) chain.previous[at(chain.next[at(left)])] = left;
    push(left);
    if (chain.previous[at(left)] >= 0) push(chain.previous[at(left)]);
  }
  size_t kept = 0;
  for (int32_t i = 0; i < size; i = chain.next[at(i)]) ids[kept++] = ids[at(i)];
  ids.resize(kept);
}

}  // namespace kedge
