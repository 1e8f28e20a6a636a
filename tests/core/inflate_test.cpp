#include "kedge/core/inflate.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

// "hello\n" packed by gzip -n, and by Python's zlib.
const std::string kGzip("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\x00\x20\x30\x3a\x36\x06\x00\x00\x00", 26);
const std::string kDeflate("\x78\x9c\xcb\x48\xcd\xc9\xc9\xe7\x02\x00\x08\x4b\x02\x1f", 14);

TEST(Inflate, BytesMayComeOneByOne) {
  for (const auto& [packed, packing] : {std::pair(kGzip + kGzip, Packing::gzip), std::pair(kDeflate, Packing::deflate)}) {
    Inflater inflater(packing);
    std::string text;
    for (const char& byte : packed) inflater.unpack({&byte, 1}, [&](std::string_view piece) { text += piece; });
    inflater.finish();
    EXPECT_EQ(text, packing == Packing::gzip ? "hello\nhello\n" : "hello\n");
  }
}

}  // namespace
}  // namespace kedge
