#pragma once
// Bytes written as specifications show them: "65 00 c0 3f".
#include <sstream>
#include <string>

namespace kedge::testing {

inline std::string from_hex(const std::string& text) {
  std::istringstream in(text);
  std::string bytes;
  for (std::string byte; in >> byte;) bytes += static_cast<char>(std::stoi(byte, nullptr, 16));
  return bytes;
}

}  // namespace kedge::testing
