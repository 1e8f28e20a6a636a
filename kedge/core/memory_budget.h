#pragma once
// How much memory something may take, as users write it: "4GiB", "512 MiB", "1000000" or, as a fraction of the free memory, "0.5".
#include <cstdint>
#include <string>
#include <string_view>

namespace kedge {

// In bytes, given how many are free. `where` opens the error.
[[nodiscard]] int64_t memory_budget(std::string_view text, int64_t free_bytes, std::string_view where);

}  // namespace kedge
