#include "kedge/config/nearest.h"

#include <algorithm>
#include <tuple>

namespace kedge {
namespace {

constexpr size_t kLongestName = 200;  // longer texts are not mistyped keys, and the table below would grow

std::string_view last_part(std::string_view dotted) { return dotted.substr(dotted.rfind('.') + 1); }

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) table[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) table[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({replaced, table[i - 1][j] + 1, table[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
    }
  return table[a.size()][b.size()];
}

std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates, size_t limit) {
  if (name.empty() || name.size() > kLongestName) return {};
  struct Scored {
    size_t distance;
    size_t whole;  // between equally near last parts, the nearer path
    const std::string* candidate;
  };
  std::vector<Scored> close;
  for (const std::string& candidate : candidates) {
    const size_t whole = edit_distance(name, candidate);
    const size_t last = edit_distance(last_part(name), last_part(candidate));
    const size_t allowed = std::max<size_t>(1, last_part(name).size() / 3);
    if (last <= allowed || whole <= allowed) close.push_back({std::min(last, whole), whole, &candidate});
  }
  std::sort(close.begin(), close.end(), [](const Scored& a, const Scored& b) {
    return std::tie(a.distance, a.whole, *a.candidate) < std::tie(b.distance, b.whole, *b.candidate);
  });
  std::vector<std::string> names;
  for (const Scored& scored : close)
    if (names.size() < limit) names.push_back(*scored.candidate);
  return names;
}

std::string nearest_hint(std::string_view name, const std::vector<std::string>& candidates) {
  std::string hint;
  for (const std::string& candidate : nearest(name, candidates)) hint += (hint.empty() ? "; nearest: " : ", ") + candidate;
  return hint;
}

}  // namespace kedge
