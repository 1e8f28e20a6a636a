#include "kedge/net/http.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"
#include "kedge/net/request_error.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

TEST(Http, AddressesHaveAHostAPortAndATarget) {
  const HttpAddress full = parse_http_address("http://rm01:5000/get_reward?x=1", "url");
  EXPECT_EQ(full.host, "rm01");
  EXPECT_EQ(full.port, 5000);
  EXPECT_EQ(full.target, "/get_reward?x=1");
  const HttpAddress bare = parse_http_address("http://rm01", "url");
  EXPECT_EQ(bare.port, 80);
  EXPECT_EQ(bare.target, "/");
  const HttpAddress ipv6 = parse_http_address("http://[::1]:5000", "url");
  EXPECT_EQ(ipv6.host, "::1");
  EXPECT_EQ(ipv6.port, 5000);
  for (const char* url : {"https://rm01/", "rm01:5000", "http://", "http://:80/", "http://rm01:x/", "http://rm01:0/", "http://rm01:70000/"})
    EXPECT_EQ(error_of<UsageError>([&] { (void)parse_http_address(url, "reward.sources.a.url"); }).substr(0, 31),
              "reward.sources.a.url: expected ")
        << url;
}

TEST(Http, HeaderNamesAreFoundInAnyCase) {
  const HttpHeaders headers = {{"content-LENGTH", "12"}, {"X", "first"}, {"x", "second"}};
  EXPECT_EQ(find_header(headers, "Content-Length"), "12");
  EXPECT_EQ(find_header(headers, "X"), "first");
  EXPECT_EQ(find_header(headers, "Content-Lengt"), std::nullopt);
}

TEST(Http, CountsAreDigitsAlone) {
  EXPECT_EQ(find_count({{"N", "0"}}, "n"), 0);
  EXPECT_EQ(find_count({{"N", "9223372036854775807"}}, "n"), 9223372036854775807);
  EXPECT_EQ(find_count({}, "n"), std::nullopt);
  for (const char* text : {"", "-1", "-0", "+1", "1 ", " 1", "1.0", "0x10", "9223372036854775808", "ten"})
    EXPECT_EQ(error_of<RequestError>([&] {
                (void)find_count({{"N", text}}, "N");
              }),
              kedge::str("the header N: expected a count, found \"", text, "\""))
        << text;
}

TEST(Http, PathsAreCutAtSlashesAndDecoded) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(path_parts("/v2/models/a%20b%2Fc/infer?x=/y"), (Parts{"v2", "models", "a b/c", "infer"}));
  EXPECT_EQ(path_parts("/v2/"), (Parts{"v2", ""}));
  EXPECT_EQ(path_parts("/"), (Parts{""}));
  for (const char* target : {"/a%", "/a%2", "/a%zz/b", "v2", "", "*"})
    EXPECT_EQ(error_of<RequestError>([&] { (void)path_parts(target); }).substr(0, 8), "the path") << target;
}

TEST(Http, QueriesAreCutIntoNamesAndValues) {
  using Parts = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(query_parts("/a?x=1&y=b+c%3D%26&z=&w"), (Parts{{"x", "1"}, {"y", "b c=&"}, {"z", ""}, {"w", ""}}));
  EXPECT_EQ(query_parts("/a?x=1=2&&y=%2B"), (Parts{{"x", "1=2"}, {"y", "+"}}));
  EXPECT_EQ(query_parts("/a"), (Parts{}));
  EXPECT_EQ(query_parts("/a?"), (Parts{}));
  EXPECT_EQ(query_parts("/a?="), (Parts{{"", ""}}));
  EXPECT_EQ(error_of<RequestError>([] { (void)query_parts("/a?x=1&%78=2"); }), "the query of /a?x=1&%78=2 has x twice");
  for (const char* target : {"/a?x=%", "/a?%zz=1", "/a?x=%4"})
    EXPECT_EQ(error_of<RequestError>([&] { (void)query_parts(target); }).substr(0, 8), "the path") << target;
}

TEST(Http, ErrorsAreJson) {
  const HttpResponse response = error_response(404, "no model named \"reward\"");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, R"({"error":"no model named \"reward\""})");
  EXPECT_EQ(find_header(response.headers, "content-type"), "application/json");
}

}  // namespace
}  // namespace kedge
