#include "kedge/net/http.h"

#include <algorithm>
#include <charconv>

#include "kedge/core/error.h"
#include "kedge/core/numbers.h"
#include "kedge/net/kserve.h"
#include "kedge/net/request_error.h"

namespace kedge {
namespace {

constexpr std::string_view kScheme = "http://";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = lower(c);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

std::string decode(std::string_view part, std::string_view target) {
  std::string text;
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] != '%') {
      text += part[i];
      continue;
    }
    const int high = i + 2 < part.size() ? hex_digit(part[i + 1]) : -1, low = i + 2 < part.size() ? hex_digit(part[i + 2]) : -1;
    check_request(high >= 0 && low >= 0, "the path ", target, " has a % without two hex digits after it");
    text += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return text;
}

}  // namespace

std::optional<HttpAddress> read_http_address(std::string_view url) {
  if (!url.starts_with(kScheme)) return std::nullopt;
  url.remove_prefix(kScheme.size());
  HttpAddress address;
  const size_t slash = std::min(url.find('/'), url.size());
  if (slash < url.size()) address.target = url.substr(slash);
  url = url.substr(0, slash);
  const size_t colon = url.rfind(':');
  const bool has_port = colon != std::string_view::npos && url.find(']', colon) == std::string_view::npos;
  const bool is_port = !has_port || (read_integer(url.substr(colon + 1), address.port) && address.port > 0 && address.port < 65536);
  if (has_port) url = url.substr(0, colon);
  if (url.starts_with('[') && url.ends_with(']')) url = url.substr(1, url.size() - 2);
  address.host = url;
  if (!is_port || url.empty()) return std::nullopt;
  return address;
}

HttpAddress parse_http_address(const std::string& url, const std::string& key) {
  check(url.starts_with(kScheme), key, ": expected an address like http://host:port/path (TLS is not supported) found ", url);
  const std::optional<HttpAddress> address = read_http_address(url);
  check(address.has_value(), key, ": expected an address like http://host:port/path, found ", url);
  return *address;
}

std::optional<std::string> find_header(const HttpHeaders& headers, std::string_view name) {
  const auto same = [&](const std::pair<std::string, std::string>& header) {
    return std::equal(header.first.begin(), header.first.end(), name.begin(), name.end(),
                      [](char a, char b) { return lower(a) == lower(b); });
  };
  const auto found = std::find_if(headers.begin(), headers.end(), same);
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

std::optional<int64_t> find_count(const HttpHeaders& headers, std::string_view name) {
  const std::optional<std::string> text = find_header(headers, name);
  if (!text) return std::nullopt;
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
  check_request(error == std::errc() && end == text->data() + text->size() && text->front() != '-', "the header ", name,
                ": expected a count, found \"", *text, "\"");
  return count;
}

std::vector<std::string> path_parts(std::string_view target) {
  std::string_view path = target.substr(0, target.find('?'));
  check_request(path.starts_with('/'), "the path ", target, " does not begin with a slash");
  path.remove_prefix(1);
  std::vector<std::string> parts;
  while (true) {
    const size_t slash = path.find('/');
    parts.push_back(decode(path.substr(0, slash), target));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

std::vector<std::pair<std::string, std::string>> query_parts(std::string_view target) {
  std::vector<std::pair<std::string, std::string>> parts;
  const size_t mark = target.find('?');
  std::string_view rest = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  const auto text_of = [&](std::string_view part) {
    std::string text(part);
    std::replace(text.begin(), text.end(), '+', ' ');
    return decode(text, target);
  };
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.size(), pair.find('='));
    std::string name = text_of(pair.substr(0, equals));
    const bool is_new = std::none_of(parts.begin(), parts.end(), [&](const auto& part) { return part.first == name; });
    check_request(is_new, "the query of ", target, " has ", name, " twice");
    parts.emplace_back(std::move(name), text_of(pair.substr(std::min(pair.size(), equals + 1))));
  }
  return parts;
}

HttpResponse error_response(int status, std::string_view text) {
  return {status, {{"Content-Type", "application/json"}}, error_body(text)};
}

}  // namespace kedge
