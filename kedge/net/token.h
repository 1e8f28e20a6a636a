#pragma once
// The word that callers of a server show, kept in a file so that neither command lines nor configurations tell it.
#include <string>
#include <string_view>

namespace kedge {

// The file's text without white space at its end; `key` opens the UsageError about an empty one.
[[nodiscard]] std::string read_token_file(const std::string& file, const std::string& key);

// Is this the value of an Authorization header that shows the token? Takes as long whichever byte differs.
[[nodiscard]] bool shows_token(std::string_view authorization, std::string_view token);
[[nodiscard]] std::string authorization_of(const std::string& token);

}  // namespace kedge
