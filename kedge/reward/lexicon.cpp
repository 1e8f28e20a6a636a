#include "kedge/reward/lexicon.h"

#include <charconv>

#include "kedge/core/error.h"
#include "kedge/text/unicode/python_unicode.h"

namespace kedge {
namespace {

bool is_lower(std::string_view text, size_t at) { return at < text.size() && text[at] >= 'a' && text[at] <= 'z'; }

std::string_view cut_front(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view front = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return front;
}

bool read_value(std::string_view text, double& value) {
  text = py_strip(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

}  // namespace

Lexicon::Lexicon(const Path& file) {
  const std::string content = read_text(file);
  std::string_view rest = content;
  for (int64_t number = 1; !rest.empty(); ++number) {
    std::string_view line = cut_front(rest, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    std::string_view columns = line;
    const std::string_view word = cut_front(columns, '\t');
    double value = 0;
    check(read_value(cut_front(columns, '\t'), value), file.string(), ":", number, ": expected a word, a tab and a number, found ", line);
    values_.insert_or_assign(std::string(word), value);
  }
  check(!values_.empty(), file.string(), ": no words in it");
}

double Lexicon::sum(std::string_view text) const {
  const std::string lowered = py_lower(text);
  double total = 0;
  for (size_t at = 0; at < lowered.size();) {
    size_t end = at;
    while (is_lower(lowered, end) || (end > at && lowered[end] == '\'' && is_lower(lowered, end + 1))) ++end;
    if (end > at)
      if (const auto found = values_.find(lowered.substr(at, end - at)); found != values_.end()) total += found->second;
    at = end > at ? end : at + 1;
  }
  return total;
}

}  // namespace kedge
