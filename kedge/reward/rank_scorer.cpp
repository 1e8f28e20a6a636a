#include "kedge/reward/rank_scorer.h"

#include "kedge/core/log.h"
#include "kedge/reward/rank_rows.h"

namespace kedge {

Tensor RankScorer::compute(std::span<const TokenIds> rows) const {
  return compute_shared(data_, rows, RowResult::of_row, [this](std::span<const TokenIds> own) {
    Tensor rewards;
    orders_.carry_out("computing rewards", [&] { rewards = scorer_.score(own); });
    return rewards;
  });
}

Tensor RankScorer::score(std::span<const TokenIds> rows) const {
  if (orders_.world().size() > 1) orders_.give(rows_to_bytes(rows));
  return compute(rows);
}

void RankScorer::stop() const { orders_.give(""); }

void RankScorer::follow() const {
  while (true) {
    const std::string order = orders_.next();
    if (order.empty()) return;
    const std::vector<TokenIds> rows = read_rows(order);
    try {
      static_cast<void>(compute(rows));
    } catch (const std::exception& error) {
      log_debug("a batch failed: ", error.what());  // rank 0 tells the caller
    }
  }
}

}  // namespace kedge
