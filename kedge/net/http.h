#pragma once
// HTTP requests, responses and addresses. Independent of sockets.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kedge {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";
  HttpHeaders headers = {};
  std::string body = {};
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers = {};
  std::string body = {};
};

struct HttpAddress {
  std::string host;
  int64_t port = 80;
  std::string target = "/";
};
// "http://host[:port][/path]", where an IPv6 host may be in brackets; nothing for any other text.
[[nodiscard]] std::optional<HttpAddress> read_http_address(std::string_view url);
// The same; a UsageError that starts with `key` for any other text.
[[nodiscard]] HttpAddress parse_http_address(const std::string& url, const std::string& key);

// The value of a header, whose name may be written in any case; the first if there are several.
[[nodiscard]] std::optional<std::string> find_header(const HttpHeaders& headers, std::string_view name);

// A header that is a count: digits alone, at most 63 bits. Empty optional: missing; a RequestError (400) for anything else.
[[nodiscard]] std::optional<int64_t> find_count(const HttpHeaders& headers, std::string_view name);

// A target without its query, cut at the slashes, %XX decoded: "/v2/models/a%20b" is {"v2", "models", "a b"}. A slash at the end leaves an
// empty last part. RequestError (400) for a % that is not followed by two hex digits, and for a target that does not begin with a slash.
[[nodiscard]] std::vector<std::string> path_parts(std::string_view target);

// The query after the question mark of a target, %XX decoded and + a blank: "/a?x=1&y=b+c" is {{"x", "1"}, {"y", "b c"}}; a name without
// "=" has an empty value. RequestError (400) as above, and for a name that occurs twice.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> query_parts(std::string_view target);

// {"error": TEXT} with that status.
[[nodiscard]] HttpResponse error_response(int status, std::string_view text);

}  // namespace kedge
