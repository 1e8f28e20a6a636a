#pragma once
// Three kinds of errors, caught once, in main: the user's (exit 2), the world's (exit 1) and our own (a bug, exit 1).
#include <sstream>
#include <stdexcept>
#include <string>

namespace kedge {

// Text of all the parts, one after another: str("found ", 3, " rows"). Write kedge::str where a part is of a torch type,
// because torch has a str of its own.
template <typename... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// The world's: a disk that is full, a server that went away.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The user's: a wrong key, a broken file. Names the place, what was found and what was wanted.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Ours: something that cannot happen did.
class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

template <typename... Parts>
void check(bool condition, const Parts&... parts) {
  if (!condition) throw UsageError(kedge::str(parts...));
}

template <typename... Parts>
void ensure(bool condition, const Parts&... parts) {
  if (!condition) throw Bug(kedge::str(parts...));
}

inline constexpr int kExitOk = 0;
inline constexpr int kExitWorld = 1;
inline constexpr int kExitUsage = 2;

}  // namespace kedge
