#pragma once
// Log-probabilities of responses under a reference policy, kept by content: in memory, and on disk where a folder is given. A value
// belongs to its row's ids and to the weights that computed it, so other data, other templates or other weights never find it.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

// The name of a row: a hash of its ids and of where its response begins.
[[nodiscard]] std::string response_key(const TokenIds& ids, int64_t num_prompt_tokens);

struct KeptLogprob {
  std::string key;
  float logprob = 0;
};

// As text, a line for each, and back. The text ends with its own hash; nothing if it is damaged.
[[nodiscard]] std::string logprobs_text(const std::vector<KeptLogprob>& values);
[[nodiscard]] std::optional<std::vector<KeptLogprob>> read_logprobs(std::string_view text);

// Not thread-safe.
class ReferenceCache {
 public:
  [[nodiscard]] std::optional<float> find(const std::string& key) const;
  void add(const std::vector<KeptLogprob>& values);
  [[nodiscard]] size_t size() const { return values_.size(); }
  void clear() { values_.clear(); }

 private:
  std::unordered_map<std::string, float> values_;
};

// A folder of such values, of one reference: a file for every piece of work, complete or absent, so that a killed run loses little
// and several runs may share it.
class ReferenceFolder {
 public:
  // `weights` names the reference; every reference has its own folder below `parent`.
  ReferenceFolder(const Path& parent, std::string_view weights);
  // All that it has. A damaged file is left out, with a warning: its values are computed again.
  [[nodiscard]] std::vector<KeptLogprob> read() const;
  void write(const std::vector<KeptLogprob>& values) const;
  [[nodiscard]] const Path& path() const { return path_; }

 private:
  Path path_;
};

}  // namespace kedge
