#pragma once
// Numbers out of texts, by one rule everywhere: configuration files, flags, the machine's own files. The whole text, or false.
#include <cstdint>
#include <string_view>

namespace kedge {

[[nodiscard]] bool read_integer(std::string_view text, int64_t& value);  // 12, +12, -12
[[nodiscard]] bool read_number(std::string_view text, double& value);    // 1e-6, .5, .inf; no NaN

}  // namespace kedge
