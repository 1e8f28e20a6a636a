#pragma once
// What tells this machine from others, and names that nobody else has.
#include <cstddef>
#include <string>

namespace kedge {

[[nodiscard]] std::string host_name();  // empty: it has none
// Of the kernel since it was started: machines of a cluster may all be called "localhost", but have different ones. Empty: not known.
[[nodiscard]] std::string boot_id();

// So many bytes of the system's source of randomness, in hex. For tokens and ids, not for training (core/random.h).
[[nodiscard]] std::string random_hex(size_t num_bytes);

}  // namespace kedge
