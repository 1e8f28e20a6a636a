#pragma once
// A stretch of text by its bytes.
#include <cstddef>

namespace kedge {

struct TextSpan {
  size_t begin = 0, end = 0;
  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};

}  // namespace kedge
