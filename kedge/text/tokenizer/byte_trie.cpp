#include "kedge/text/tokenizer/byte_trie.h"

#include <algorithm>

namespace kedge {

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, int32_t>> entries) {
  std::erase_if(entries, [](const auto& entry) { return entry.first.empty(); });
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // Breadth first, so that children are contiguous. An open node is a run of entries that share its path.
  struct Open {
    uint32_t node;
    size_t first, last, depth;
  };
  nodes_.emplace_back();
  std::vector<Open> level = {{0, 0, entries.size(), 0}};
  while (!level.empty()) {
    std::vector<Open> below;
    for (Open open : level) {
      while (open.first < open.last && entries[open.first].first.size() == open.depth)
        nodes_[open.node].value = entries[open.first++].second;
      nodes_[open.node].first_child = static_cast<uint32_t>(nodes_.size());
      for (size_t start = open.first; start < open.last;) {
        const char byte = entries[start].first[open.depth];
        size_t end = start;
        while (end < open.last && entries[end].first[open.depth] == byte) ++end;
        below.push_back({static_cast<uint32_t>(nodes_.size()), start, end, open.depth + 1});
        nodes_.push_back({0, 0, static_cast<uint8_t>(byte), kNone});
        nodes_[open.node].num_children += 1;
        start = end;
      }
    }
    level = std::move(below);
  }
  for (uint32_t i = nodes_[0].first_child; i < nodes_[0].first_child + nodes_[0].num_children; ++i) roots_[nodes_[i].byte] = i;
}

ByteTrie::Match ByteTrie::longest(std::string_view text) const {
  Match match;
  each_prefix(text, [&](size_t length, int32_t value) { match = {length, value}; });
  return match;
}

}  // namespace kedge
