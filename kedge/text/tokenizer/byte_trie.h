#pragma once
// Strings of bytes, each with a number: which of them starts here? For added tokens, user-defined symbols and unigram pieces.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace kedge {

class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;

  ByteTrie() = default;
  // Numbers must not be negative. Empty strings are left out; of equal strings the last one counts.
  explicit ByteTrie(std::vector<std::pair<std::string_view, int32_t>> entries);

  [[nodiscard]] bool empty() const { return nodes_.size() <= 1; }

  struct Match {
    size_t length = 0;  // 0: nothing starts here
    int32_t value = kNone;
  };
  // The longest entry that `text` starts with.
  [[nodiscard]] Match longest(std::string_view text) const;

  // Calls found(length, value) for every entry that `text` starts with, short ones first.
  template <typename Found>
  void each_prefix(std::string_view text, Found&& found) const {
    if (text.empty() || nodes_.empty()) return;
    uint32_t node = roots_[static_cast<uint8_t>(text[0])];
    for (size_t length = 1; node != 0; ++length) {
      if (nodes_[node].value != kNone) found(length, nodes_[node].value);
      if (length == text.size()) return;
      node = child(node, static_cast<uint8_t>(text[length]));
    }
  }

 private:
  struct Node {
    uint32_t first_child = 0;
    uint16_t num_children = 0;
    uint8_t byte = 0;  // on the way from its parent
    int32_t value = kNone;
  };

  [[nodiscard]] uint32_t child(uint32_t node, uint8_t byte) const {
    const Node& parent = nodes_[node];
    for (uint32_t i = parent.first_child; i < parent.first_child + parent.num_children; ++i)
      if (nodes_[i].byte == byte) return i;
    return 0;
  }

  std::vector<Node> nodes_;  // nodes_[0] is the root; a node's children are contiguous
  std::array<uint32_t, 256> roots_{};
};

}  // namespace kedge
