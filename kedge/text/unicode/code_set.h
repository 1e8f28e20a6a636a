#pragma once
// A set of code points as sorted ranges: the value of a regular expression's character class.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/text/unicode/unicode_table.h"

namespace kedge {

class CodeSet {
 public:
  CodeSet() = default;
  // Ranges in any order, overlapping or not.
  explicit CodeSet(std::vector<CodeRange> ranges);

  static CodeSet all();
  static CodeSet spaces();  // White_Space: \s

  [[nodiscard]] const std::vector<CodeRange>& ranges() const { return ranges_; }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] bool contains(char32_t code) const;

  [[nodiscard]] CodeSet without(const CodeSet& other) const;
  [[nodiscard]] CodeSet complement() const;
  [[nodiscard]] CodeSet united(const CodeSet& other) const;
  [[nodiscard]] CodeSet common(const CodeSet& other) const;

  friend bool operator==(const CodeSet& a, const CodeSet& b);

 private:
  std::vector<CodeRange> ranges_;  // sorted, disjoint, not touching
};

// Code points of a general category by its short name, "L" or "Lu"; nothing when there is no such category.
[[nodiscard]] std::optional<CodeSet> category_set(std::string_view name);

}  // namespace kedge
