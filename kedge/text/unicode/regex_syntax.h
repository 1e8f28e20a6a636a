#pragma once
// Rewrites a regular expression as tokenizer files have them (Oniguruma's Ruby syntax) into one that PCRE2 matches in the same way: same
// Unicode classes, anchors and quantifiers. Includes no PCRE2 header; the code points of a property come from a function.
#include <functional>
#include <string>
#include <string_view>

#include "kedge/text/unicode/code_set.h"

namespace kedge {

// The code points PCRE2 itself counts to \p{name}: "L", "Nd", "sc:Han".
using PropertyLookup = std::function<CodeSet(const std::string& name)>;

// A construct that may match differently is a UsageError that opens with `where` and names it.
[[nodiscard]] std::string to_pcre2(std::string_view expression, std::string_view where, const PropertyLookup& pcre2_set);

}  // namespace kedge
