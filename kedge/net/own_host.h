#pragma once
// Names and addresses of this machine, as in requests. Independent of sockets.
#include <string>
#include <string_view>

namespace kedge {

// Is it a loopback address? 127.*, ::1, localhost.
[[nodiscard]] bool is_loopback(std::string_view host);

// May a Host header have this value? An address in digits, a name without dots (which no public domain is), or this machine's name with any
// domain after it; any port. A DNS rebinding attack has none of these.
[[nodiscard]] bool is_own_host(std::string_view host);

}  // namespace kedge
