#include "kedge/net/own_host.h"

#include <arpa/inet.h>

#include <algorithm>

#include "kedge/core/identity.h"

namespace kedge {
namespace {

bool is_address(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

}  // namespace

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && is_address(std::string(host)));
}

bool is_own_host(std::string_view host) {
  if (host.starts_with('[')) {  // [::1]:6006
    const size_t end = host.find(']');
    const std::string_view port = end == std::string_view::npos ? host : host.substr(end + 1);
    return (port.empty() || port.starts_with(':')) && is_address(std::string(host.substr(1, end - 1)));
  }
  const std::string name = in_lower_case(host.substr(0, host.find(':'))), own = in_lower_case(host_name());
  if (name.empty()) return false;
  return is_address(name) || name.find('.') == std::string::npos || (!own.empty() && (name == own || name.starts_with(own + ".")));
}

}  // namespace kedge
