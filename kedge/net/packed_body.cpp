#include "kedge/net/packed_body.h"

#include <algorithm>
#include <utility>

#include "kedge/core/inflate.h"
#include "kedge/net/request_error.h"

namespace kedge {
namespace {

Packing packing_of(std::string_view encoding) {
  std::string name(encoding);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (name == "gzip" || name == "x-gzip") return Packing::gzip;
  if (name == "deflate") return Packing::deflate;
  throw RequestError(501, str("Content-Encoding ", encoding, " is not supported; gzip, deflate and identity are"));
}

}  // namespace

std::string unpack_body(std::string_view body, std::string_view encoding, int64_t max_bytes,
                        const std::function<void(int64_t more)>& admit) {
  if (!can_inflate()) throw RequestError(501, "this server cannot unpack bodies: it was built without zlib; send them as they are");
  const Packing packing = packing_of(encoding);
  std::string unpacked;
  try {
    Inflater inflater(packing);
    inflater.unpack(body, [&](std::string_view piece) {
      if (std::cmp_greater(unpacked.size() + piece.size(), max_bytes))
        throw RequestError(413, str("the packed body: more than the limit of ", max_bytes, " bytes"));
      if (admit) admit(static_cast<int64_t>(piece.size()));
      unpacked += piece;
    });
    inflater.finish();
  } catch (const UsageError& error) {
    throw RequestError(400, str("the packed body: ", error.what()));
  }
  return unpacked;
}

}  // namespace kedge
