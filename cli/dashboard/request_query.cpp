#include "cli/dashboard/request_query.h"

#include <algorithm>
#include <charconv>

#include "kedge/net/http.h"
#include "kedge/net/request_error.h"

namespace kedge::cli {
namespace {

template <typename T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(value) : std::nullopt;
}

int64_t count_of(std::string_view text, std::string_view name) {
  const std::optional<int64_t> value = number_of<int64_t>(text);
  check_request(value && *value >= 0, name, ": expected a number of at least 0, found \"", text, "\"");
  return *value;
}

}  // namespace

RequestQuery::RequestQuery(std::string_view target) : parts_(query_parts(target)) {}

const std::string* RequestQuery::find(std::string_view name) const {
  const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const auto& part) { return part.first == name; });
  return found == parts_.end() ? nullptr : &found->second;
}

std::string RequestQuery::text(std::string_view name) const {
  const std::string* found = find(name);
  return found == nullptr ? "" : *found;
}

bool RequestQuery::flag(std::string_view name) const {
  const std::string value = text(name);
  const bool is_set = value == "1" || value == "true";
  check_request(is_set || value.empty() || value == "0" || value == "false", name, ": expected 0 or 1, found \"", value, "\"");
  return is_set;
}

int64_t RequestQuery::integer(std::string_view name, const Bounds& bounds) const {
  const std::string* found = find(name);
  if (found == nullptr) return bounds.usual;
  const std::optional<int64_t> value = number_of<int64_t>(*found);
  check_request(value && *value >= bounds.low && *value <= bounds.high, name, ": expected a number from ", bounds.low, " to ", bounds.high,
                ", found \"", *found, "\"");
  return *value;
}

std::optional<int64_t> RequestQuery::count(std::string_view name) const {
  const std::string* found = find(name);
  return found == nullptr || found->empty() ? std::nullopt : std::optional(count_of(*found, name));
}

double RequestQuery::share(std::string_view name) const {
  const std::string* found = find(name);
  if (found == nullptr) return 0;
  const std::optional<double> value = number_of<double>(*found);
  check_request(value && *value >= 0 && *value < 1, name, ": expected a number from 0 to below 1, found \"", *found, "\"");
  return *value;
}

std::vector<int64_t> RequestQuery::counts(std::string_view name) const {
  const std::string value = text(name);
  std::vector<int64_t> all;
  for (std::string_view rest = value; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    all.push_back(count_of(one, name));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  }
  return all;
}

}  // namespace kedge::cli
