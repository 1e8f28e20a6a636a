#pragma once
// Three kinds of errors, caught once, in main: user errors (exit 2), runtime and I/O errors (exit 1) and bugs in kedge (exit 1).
#include <sstream>
#include <stdexcept>
#include <string>

namespace kedge {

// Text of all the parts, one after another: str("found ", 3, " rows"). Write kedge::str where a part is of a torch type,
// because torch has its own str.
template <typename... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// A runtime error: a full disk, an unreachable server.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A user error: a wrong key, a broken file. Names the place, what was found and what was expected.
class UsageError : public Error {
 public:
  using Error::Error;
};

// A bug: something happened that must not.
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
