#pragma once
// Bodies of requests that come packed.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kedge {

// A whole body; `encoding` as HTTP's Content-Encoding names it. RequestError: 400 where it is broken, 413 where it unpacks to more than
// `max_bytes`, 501 for an encoding that is not known. `admit` is called before the result grows by so many bytes, and may throw.
[[nodiscard]] std::string unpack_body(std::string_view body, std::string_view encoding, int64_t max_bytes,
                                      const std::function<void(int64_t more)>& admit = {});

}  // namespace kedge
