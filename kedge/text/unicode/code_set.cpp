#include "kedge/text/unicode/code_set.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "kedge/text/unicode/unicode.h"

namespace kedge {
namespace {

constexpr std::array<std::string_view, 29> kCategoryNames = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                                             "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                                             "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};

template <typename Wanted>
CodeSet collect(Wanted&& wanted) {
  std::vector<CodeRange> ranges;
  for (char32_t code = 0; code < kNumCodePoints; ++code) {
    if (!wanted(code)) continue;
    if (!ranges.empty() && ranges.back().last + 1 == code) {
      ranges.back().last = code;
    } else {
      ranges.push_back({code, code});
    }
  }
  return CodeSet(std::move(ranges));
}

}  // namespace

CodeSet::CodeSet(std::vector<CodeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  for (const CodeRange& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

CodeSet CodeSet::all() { return CodeSet({{0, kNumCodePoints - 1}}); }

CodeSet CodeSet::spaces() {
  static const CodeSet kSpaces = collect([](char32_t code) { return char_table().is_space(code); });
  return kSpaces;
}

bool CodeSet::contains(char32_t code) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), code, [](char32_t value, const CodeRange& range) { return value < range.first; });
  return after != ranges_.begin() && code <= std::prev(after)->last;
}

CodeSet CodeSet::complement() const {
  CodeSet out;
  char32_t next = 0;
  for (const CodeRange& range : ranges_) {
    if (range.first > next) out.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next < kNumCodePoints) out.ranges_.push_back({next, kNumCodePoints - 1});
  return out;
}

CodeSet CodeSet::united(const CodeSet& other) const {
  std::vector<CodeRange> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CodeSet(std::move(both));
}

CodeSet CodeSet::common(const CodeSet& other) const { return complement().united(other.complement()).complement(); }

CodeSet CodeSet::without(const CodeSet& other) const { return common(other.complement()); }

bool operator==(const CodeSet& a, const CodeSet& b) {
  return std::equal(a.ranges_.begin(), a.ranges_.end(), b.ranges_.begin(), b.ranges_.end(),
                    [](const CodeRange& x, const CodeRange& y) { return x.first == y.first && x.last == y.last; });
}

std::optional<CodeSet> category_set(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, CodeSet, std::less<>> known;  // each takes a look at every code point there is
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(name); found != known.end()) return found->second;
  if (name.empty() ||
      std::none_of(kCategoryNames.begin(), kCategoryNames.end(), [&](std::string_view category) { return category.starts_with(name); }))
    return std::nullopt;
  const CharTable& table = char_table();
  CodeSet set = collect([&](char32_t code) { return kCategoryNames.at(static_cast<size_t>(table.category(code))).starts_with(name); });
  return known.emplace(name, std::move(set)).first->second;
}

}  // namespace kedge
