#pragma once
// How often one text is in another.
#include <string>

namespace kedge::testing {

inline size_t count_of(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

}  // namespace kedge::testing
