#include "kedge/data/files/data_prefix.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kedge/config/nearest.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

constexpr std::array<const char*, 3> kSplits = {"train", "validation", "test"};

std::optional<double> number_in(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// A weight may come quoted from a command line.
std::optional<double> weight_in(const Json& value) {
  if (value.is_number()) return value.as_number("");
  return value.is_text() ? number_in(value.as_text("")) : std::nullopt;
}

Path path_in(const Json& value, std::string_view key) {
  const std::string& path = value.as_text(key);
  check(!path.empty(), key, ": an empty path");
  return path;
}

}  // namespace

std::vector<WeightedFile> parse_files(const Json& value, std::string_view key) {
  if (value.is_text()) return {{1, path_in(value, key)}};
  check(value.is_array(), key, ": expected a path or a list of weights and paths, found ", name_of(value.kind()));
  const Json::Array& items = value.as_array(key);
  check(!items.empty(), key, ": an empty list; expected a path");
  if (items.size() == 1) return {{1, path_in(items[0], key)}};
  std::vector<WeightedFile> files;
  for (size_t i = 0; i < items.size(); i += 2) {
    const auto weight = weight_in(items[i]);
    check(weight.has_value(), key, ": several files alternate weights and paths, [0.3, a.jsonl, 0.7, b.jsonl]; found ", items[i].dump(),
          " where a weight is expected");
    check(*weight > 0, key, ": a weight of ", items[i].dump(), "; expected a number above 0");
    check(i + 1 < items.size(), key, ": no path after the weight ", items[i].dump());
    files.push_back({*weight, path_in(items[i + 1], key)});
  }
  return files;
}

DataPrefix parse_data_prefix(const Json& prefix, const std::optional<std::string>& splits_string, std::string_view key) {
  DataPrefix parsed;
  check(!prefix.is_null(), key, ": not set; expected {train: [FILE], validation: [FILE], test: [FILE]}, or a list with splits_string");
  if (!prefix.is_object()) {
    check(splits_string.has_value(), key, ": a list of files needs splits_string, such as \"98,1,1\"");
    parsed.cut_files = parse_files(prefix, key);
    parsed.shares = parse_splits(*splits_string, key);
    return parsed;
  }
  if (splits_string) log_warn_of_job(key, ": names a file for each split; splits_string \"", *splits_string, "\" is ignored");
  for (const auto& [split, value] : prefix.as_object(key)) {
    check(std::find(kSplits.begin(), kSplits.end(), split) != kSplits.end() || split.starts_with("validation"), key, ": no split \"", split,
          "\"; expected train, validation, test, or a name that begins with validation",
          nearest_hint(split, {kSplits.begin(), kSplits.end()}));
    const std::string where = str(key, ".", split);
    check(!value.is_null(), where, ": null; expected [FILE]");
    parsed.files[split] = parse_files(value, where);
  }
  for (const char* split : kSplits) check(parsed.files.contains(split), key, ": no \"", split, "\"; expected train, validation and test");
  return parsed;
}

std::array<double, 3> parse_splits(std::string_view splits_string, std::string_view key) {
  std::array<double, 3> shares{};
  size_t count = 0;
  double total = 0;
  std::string_view rest = splits_string;
  while (true) {
    const size_t end = std::min(rest.find_first_of(",/"), rest.size());
    const auto number = number_in(rest.substr(0, end));
    check(number && *number >= 0 && count < 3, key, ": splits_string \"", splits_string,
          "\"; expected three numbers of at least 0 separated by , or /, such as \"98,1,1\"");
    shares[count++] = *number;
    total += *number;
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  check(count == 3, key, ": splits_string \"", splits_string, "\" has ", count, count == 1 ? " number" : " numbers", "; expected three");
  check(total > 0 && std::isfinite(total), key, ": splits_string \"", splits_string, "\" leaves no rows to any split");
  for (double& share : shares) share /= total;
  return shares;
}

std::array<int64_t, 4> split_borders(const std::array<double, 3>& shares, int64_t size) {
  std::array<int64_t, 4> borders{};
  for (size_t i = 0; i < 3; ++i)
    borders[i + 1] = borders[i] + static_cast<int64_t>(std::nearbyint(shares[i] * static_cast<double>(size)));  // halves to even
  const int64_t excess = borders[3] - size;
  // The last border falls on the last row; the others move with it, but not out of the file.
  for (size_t i = 1; i < 4; ++i) borders[i] = std::clamp<int64_t>(borders[i] - excess, 0, size);
  return borders;
}

}  // namespace kedge
