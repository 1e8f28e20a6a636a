#pragma once
// Compressed bodies of requests.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kedge {

// A complete body; `encoding` as in HTTP's Content-Encoding. RequestError: 400 if it is invalid, 413 if it unpacks to more than
// `max_bytes`, 501 for an encoding that is not known. `admit` is called before the result grows by that many bytes, and may throw.
[[nodiscard]] std::string unpack_body(std::string_view body, std::string_view encoding, int64_t max_bytes,
                                      const std::function<void(int64_t more)>& admit = {});

}  // namespace kedge
