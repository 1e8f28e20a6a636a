#include "kedge/algo/supervised/reference_cache.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "kedge/core/content_hash.h"
#include "kedge/core/error.h"
#include "kedge/core/fingerprint.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

constexpr std::string_view kFirstLine = "kedge reference log-probabilities 1\n", kEnd = "end ";

std::string_view bytes_of(const TokenIds& ids) { return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(TokenId)}; }

std::optional<KeptLogprob> read_line(std::string_view line) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  KeptLogprob value{std::string(line.substr(0, blank)), 0};
  const std::string_view number = line.substr(blank + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value.logprob);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return value;
}

}  // namespace

// Two hashes of different kinds, 128 bits together: a wrong value would go unnoticed.
std::string response_key(const TokenIds& ids, int64_t num_prompt_tokens) {
  Fingerprint print;
  print.add(bytes_of(ids));
  print.add(num_prompt_tokens);
  return print.hex() + content_hash(str(bytes_of(ids), num_prompt_tokens));
}

std::string logprobs_text(const std::vector<KeptLogprob>& values) {
  std::string text(kFirstLine);
  for (const KeptLogprob& value : values) {
    std::array<char, 32> digits{};  // enough to give the same bits back
    const int length = std::snprintf(digits.data(), digits.size(), "%.9g", static_cast<double>(value.logprob));
    text += str(value.key, " ", std::string_view(digits.data(), static_cast<size_t>(length)), "\n");
  }
  return text + str(kEnd, content_hash(text), "\n");
}

std::optional<std::vector<KeptLogprob>> read_logprobs(std::string_view text) {
  const size_t end = text.rfind(kEnd);
  if (!text.starts_with(kFirstLine) || end == std::string_view::npos || text[end - 1] != '\n') return std::nullopt;
  const std::string_view body = text.substr(0, end);
  if (text.substr(end) != str(kEnd, content_hash(body), "\n")) return std::nullopt;
  std::vector<KeptLogprob> values;
  for (size_t at = kFirstLine.size(); at < body.size();) {
    const size_t next = body.find('\n', at);
    const auto value = read_line(body.substr(at, next - at));
    if (!value) return std::nullopt;
    values.push_back(*value);
    at = next + 1;
  }
  return values;
}

std::optional<float> ReferenceCache::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

void ReferenceCache::add(const std::vector<KeptLogprob>& values) {
  for (const KeptLogprob& value : values) values_.emplace(value.key, value.logprob);
}

ReferenceFolder::ReferenceFolder(const Path& parent, std::string_view weights) : path_(parent / weights) {}

std::vector<KeptLogprob> ReferenceFolder::read() const {
  std::vector<KeptLogprob> all;
  if (!is_folder(path_)) return all;
  for (const Path& file : list_folder(path_)) {
    if (file.extension() != ".txt") continue;
    const auto values = read_logprobs(read_text(file));
    if (values) {
      all.insert(all.end(), values->begin(), values->end());
    } else {
      log_warn(file.string(), ": damaged; its reference log-probabilities are computed again");
    }
  }
  return all;
}

void ReferenceFolder::write(const std::vector<KeptLogprob>& values) const {
  if (values.empty()) return;
  make_folder(path_);
  const std::string text = logprobs_text(values);
  write_atomic(path_ / (content_hash(text) + ".txt"), text);
}

}  // namespace kedge
