#include "kedge/net/packed_body.h"

#include <gtest/gtest.h>

#include "kedge/net/request_error.h"

#include "tests/support/hex.h"

namespace kedge {
namespace {

using testing::from_hex;

// "hello\n" packed by gzip -n, and by Python's zlib.
const std::string kGzip("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\x00\x20\x30\x3a\x36\x06\x00\x00\x00", 26);
const std::string kDeflate("\x78\x9c\xcb\x48\xcd\xc9\xc9\xe7\x02\x00\x08\x4b\x02\x1f", 14);

// Two million zero bytes, packed by zlib to a thousandth.
const std::string kZeros =
    from_hex("78 da ed c1 01 01 00 00 00 82 20 ff af 6e 48 40 01") + std::string(1937, '\0') + from_hex("6f 06 86 42 00 01");

constexpr int64_t kPlenty = 1000;

std::pair<int, std::string> fault(const std::string& packed, std::string_view encoding, int64_t max_bytes = kPlenty) {
  try {
    static_cast<void>(unpack_body(packed, encoding, max_bytes));
  } catch (const RequestError& error) {
    return {error.status(), error.what()};
  }
  return {200, ""};
}

TEST(PackedBody, BodiesOfBothFormatsUnpack) {
  EXPECT_EQ(unpack_body(kGzip, "gzip", kPlenty), "hello\n");
  EXPECT_EQ(unpack_body(kGzip + kGzip, "gzip", kPlenty), "hello\nhello\n");
  EXPECT_EQ(unpack_body(kDeflate, "deflate", kPlenty), "hello\n");
  EXPECT_EQ(unpack_body(kZeros, "deflate", 2'000'000), std::string(2'000'000, '\0'));
}

TEST(PackedBody, BrokenBodiesAreTheCallersFault) {
  using Answer = std::pair<int, std::string>;
  EXPECT_EQ(fault("", "gzip"), Answer(400, "the packed body: not valid gzip: it is cut off"));
  EXPECT_EQ(fault(kGzip.substr(0, 20), "gzip"), Answer(400, "the packed body: not valid gzip: it is cut off"));
  EXPECT_EQ(fault(kGzip + kGzip.substr(0, 3), "gzip"), Answer(400, "the packed body: not valid gzip: it is cut off"));
  EXPECT_EQ(fault(kDeflate.substr(0, 13), "deflate"), Answer(400, "the packed body: not valid deflate: it is cut off"));
  EXPECT_EQ(fault(kGzip, "deflate"), Answer(400, "the packed body: not valid deflate: incorrect header check"));
  EXPECT_EQ(fault("{\"inputs\":[]}", "gzip"), Answer(400, "the packed body: not valid gzip: incorrect header check"));
  EXPECT_EQ(fault(kGzip + "garbage", "gzip"), Answer(400, "the packed body: not valid gzip: incorrect header check"));
  EXPECT_EQ(fault(kDeflate + "x", "deflate"), Answer(400, "the packed body: not valid deflate: bytes follow after its end"));
  std::string flipped = kDeflate;
  flipped.back() = 'x';  // the check sum
  EXPECT_EQ(fault(flipped, "deflate"), Answer(400, "the packed body: not valid deflate: incorrect data check"));
}

TEST(PackedBody, EncodingsAreThoseOfHttp) {
  using Answer = std::pair<int, std::string>;
  EXPECT_EQ(unpack_body(kGzip, "GZip", kPlenty), "hello\n");
  EXPECT_EQ(unpack_body(kGzip, "x-gzip", kPlenty), "hello\n");
  EXPECT_EQ(fault(kGzip, "br"), Answer(501, "Content-Encoding br is not supported; gzip, deflate and identity are"));
  EXPECT_EQ(fault(kGzip, ""), Answer(501, "Content-Encoding  is not supported; gzip, deflate and identity are"));
}

TEST(PackedBody, NoBodyGrowsBeyondItsLimit) {
  using Answer = std::pair<int, std::string>;
  EXPECT_EQ(fault(kGzip, "gzip", 6), Answer(200, ""));
  EXPECT_EQ(fault(kGzip, "gzip", 5), Answer(413, "the packed body: more than the limit of 5 bytes"));
  EXPECT_EQ(fault(kZeros, "deflate", 1'999'999), Answer(413, "the packed body: more than the limit of 1999999 bytes"));
}

}  // namespace
}  // namespace kedge
