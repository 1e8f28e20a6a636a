#pragma once
// Words with a value each, from a file of tab-separated columns: the word, its value, and ignored columns. Independent of rewards.
#include <string>
#include <string_view>
#include <unordered_map>

#include "kedge/core/files.h"

namespace kedge {

// Safe to use from several threads.
class Lexicon {
 public:
  // For a word that occurs twice the last value counts. A line without a number in its second column is a UsageError by file and line.
  explicit Lexicon(const Path& file);

  // Over the words of the lower-cased text, which are runs of a to z with single apostrophes inside. Unknown words count 0.
  [[nodiscard]] double sum(std::string_view text) const;  // valid UTF-8

  [[nodiscard]] size_t size() const { return values_.size(); }

 private:
  std::unordered_map<std::string, double> values_;
};

}  // namespace kedge
