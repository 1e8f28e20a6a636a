// Replaces regex.cpp if PCRE2 is not installed.
#include "kedge/core/error.h"
#include "kedge/text/unicode/regex.h"

namespace kedge {

bool has_regex() { return false; }

struct Regex::Compiled {};

Regex::Regex() = default;
Regex::Regex(std::string_view expression, std::string_view where) {
  throw UsageError(
      str(where, ": the expression ", expression, " needs PCRE2, and kedge was built without it: install libpcre2-dev and build again"));
}
Regex Regex::perl(std::string_view expression, std::string_view where, Extent) { return {expression, where}; }
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

void Regex::for_each_match(std::string_view, const std::function<void(size_t, size_t)>&) const {}
bool Regex::matches(std::string_view) const { return false; }

}  // namespace kedge
