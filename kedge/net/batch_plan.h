#pragma once
// Which of the waiting requests a server runs next, and together. A pure function: independent of threads, clocks and tensors.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kedge {

struct Waiting {
  int64_t model = 0;  // into the rules
  int64_t rows = 1;
  std::string_view shape_key = {};  // input names and the shapes of a row: only equal ones may be merged
  double age_us = 0;
  bool may_run = true;
  bool alone = false;  // never merged, and nothing after it runs before it
  bool merge = true;
};

struct BatchRules {
  std::vector<int64_t> preferred = {};  // rows at which a batch need not wait for more
  double max_delay_us = 0;              // how long the oldest may wait for a batch
  int64_t max_rows = 0;                 // of a merged batch; 0: unlimited
  bool merge = true;
};

struct BatchPlan {
  std::vector<size_t> take = {};       // into the queue, in order; empty: wait
  std::optional<double> wait_us = {};  // check again after this; none: when something arrives or may run
};

// `queue` is in the order of arrival, over all models of a server. The oldest request that may run decides which model is next; while it
// waits for a batch, another model whose batch is ready goes first. A batch consists of the first requests of its model: it ends at the
// first request that cannot join, skips those of other models and those that may not run yet, and never reaches past one that is `alone`,
// even if that one may not run yet. Linear in the length of the queue.
[[nodiscard]] BatchPlan plan_batch(std::span<const Waiting> queue, std::span<const BatchRules> rules);

}  // namespace kedge
