#include "kedge/net/token.h"

#include <algorithm>
#include <cctype>

#include "kedge/core/error.h"
#include "kedge/core/files.h"

namespace kedge {

std::string read_token_file(const std::string& file, const std::string& key) {
  std::string token = read_text(file);
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back())) != 0) token.pop_back();
  check(!token.empty(), key, ": ", file, " is empty");
  return token;
}

bool shows_token(std::string_view authorization, std::string_view token) {
  const std::string wanted = authorization_of(std::string(token));
  unsigned difference = authorization.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(authorization.size(), wanted.size()); ++i)
    difference |= static_cast<unsigned char>(authorization[i]) ^ static_cast<unsigned char>(wanted[i]);
  return difference == 0;
}

std::string authorization_of(const std::string& token) { return "Bearer " + token; }

}  // namespace kedge
