#include "kedge/engine/runner.h"

#include <gtest/gtest.h>

#include "tests/support/generation.h"
#include "tests/support/model_logits.h"

namespace kedge {
namespace {

using testing::model_logits;

// Logits of every token of some rows, in steps as the scheduler likes, beside one pass over the whole rows.
TEST(Runner, LogitsAreThoseOfTheWholeRows) {
  for (const char* family : testing::kFamilies) {
    SCOPED_TRACE(family);
    const auto model = testing::long_model(family, {});
    const auto rows = testing::prompts_of({130, 5, 66});
    std::vector<Tensor> whole;
    for (const auto& row : rows) whole.push_back(model_logits(*model, pack_rows({&row, 1}, at::kCPU)));
    const KeyValueMemory memory(model->config(), {}, 12);
    for (const int64_t batch_tokens : {1000, 9}) {
      BlockPool blocks(12, kPagedBlock);
      Scheduler scheduler({.max_batch_tokens = batch_tokens, .max_running = 8}, blocks);
      Runner runner(*model, memory, {true, 256});
      for (size_t i = 0; i < rows.size(); ++i) scheduler.add(static_cast<SequenceId>(i), 1, {rows[i][0], rows[i][1]}, 200, "a row");
      double worst = 0;
      size_t left = rows.size();
      while (left > 0) {
        const Step step = scheduler.next();
        const Tensor logits = runner.run(step, scheduler);
        scheduler.computed(step);
        int64_t next = 0;
        for (const StepRow& row : step.rows) {
          if (row.num_draws == 0) continue;
          const auto& all = rows[static_cast<size_t>(row.sequence)];
          const auto length = static_cast<size_t>(row.begin + row.count);
          const Tensor wanted = whole[static_cast<size_t>(row.sequence)].select(0, static_cast<int64_t>(length) - 1);
          worst = std::max(worst, testing::largest_difference(logits.select(0, next++), wanted));
          if (length == all.size()) {
            scheduler.finish(row.sequence);
            --left;
          } else {
            scheduler.extend(row.sequence, row.first_draw);
            scheduler.set_drawn(row.sequence, all[length]);
          }
        }
        EXPECT_EQ(next, logits.size(0));
      }
      // Matrix products of one row and of many differ in the last bits on some CPUs; logits are of the order of one.
      EXPECT_LT(worst, 2e-5);
    }
  }
}

}  // namespace
}  // namespace kedge
