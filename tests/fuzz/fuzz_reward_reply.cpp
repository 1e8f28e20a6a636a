// Bytes as a reward command's reply: the first byte says how many rows were asked for. Only UsageError may come out, and every row has
// a finite reward or an error.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "kedge/core/error.h"
#include "kedge/reward/reward_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t num_rows = data[0] % 4U;
  const kedge::RewardExchange exchange{.id = 1, .num_rows = num_rows == 0 ? 1 : num_rows, .batched = num_rows != 0};
  try {
    const auto rows = kedge::parse_reward_reply({reinterpret_cast<const char*>(data) + 1, size - 1}, exchange);
    if (rows.size() != exchange.num_rows) std::abort();
    for (const kedge::RowReward& row : rows) {
      if (!std::isfinite(row.value) || (row.failed() && !row.parts.empty())) std::abort();
      for (const auto& [name, value] : row.parts)
        if (!std::isfinite(value)) std::abort();
    }
  } catch (const kedge::UsageError&) {
  }
  return 0;
}
