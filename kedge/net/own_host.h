#pragma once
// Names and addresses of this machine, as requests have them. Knows no sockets.
#include <string>
#include <string_view>

namespace kedge {

[[nodiscard]] std::string own_host_name();

// Does nobody elsewhere reach a server that listens there, or whom a client calls there? 127.*, ::1, localhost.
[[nodiscard]] bool is_loopback(std::string_view host);

// May a Host header have this value? An address in digits, a name without dots (which no public domain is), or this machine's name with any
// domain behind it; any port. A page elsewhere that makes a browser ask us under its own name (DNS rebinding) has none of these.
[[nodiscard]] bool is_own_host(std::string_view host);

}  // namespace kedge
