#pragma once
// The bearer token of a server, kept in a file so that neither command lines nor configurations contain it.
#include <string>
#include <string_view>

#include "kedge/core/identity.h"

namespace kedge {

// The one line of a file: printable ASCII, at most 512 bytes, so that no other file is sent as a token by mistake. `key` opens the
// UsageError about anything else. A file that others may read is logged as a warning.
[[nodiscard]] std::string read_token_file(const std::string& file, const std::string& key);

// A new one: 256 bits.
[[nodiscard]] inline std::string random_token() { return random_hex(32); }

// Equal? Constant-time comparison.
[[nodiscard]] bool is_same_token(std::string_view shown, std::string_view token);

// Is this the value of an Authorization header with the token?
[[nodiscard]] bool shows_token(std::string_view authorization, std::string_view token);
[[nodiscard]] std::string authorization_of(const std::string& token);

}  // namespace kedge
