#include "kedge/net/batch_plan.h"

#include <algorithm>
#include <limits>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// The first requests of one model, as they are collected.
class Batch {
 public:
  explicit Batch(const BatchRules& rules)
      : rules_(rules),
        largest_preferred_(rules.preferred.empty() ? std::numeric_limits<int64_t>::max()
                                                   : *std::max_element(rules.preferred.begin(), rules.preferred.end())) {}

  void add(std::span<const Waiting> queue, size_t index) {
    if (is_closed_) return;
    const Waiting& next = queue[index];
    if (!members_.empty() && !may_join(queue[members_.front()], next)) {
      is_closed_ = true;
      return;
    }
    if (!members_.empty() && rows_ <= largest_preferred_ && rows_ + next.rows > largest_preferred_) num_preferred_ = members_.size();
    members_.push_back(index);
    rows_ += next.rows;
    if (std::find(rules_.preferred.begin(), rules_.preferred.end(), rows_) != rules_.preferred.end()) num_preferred_ = members_.size();
    if (!rules_.merge || !next.merge || (rules_.max_rows > 0 && rows_ >= rules_.max_rows)) is_closed_ = true;
  }
  // No later request can join.
  void close() { is_closed_ = true; }

  // How many of the members to run now; 0: wait.
  [[nodiscard]] size_t num_ready(std::span<const Waiting> queue) const {
    const bool is_late = age_us(queue) >= rules_.max_delay_us;
    if (num_preferred_ > 0 && !is_late) return num_preferred_;
    return is_late || is_closed_ || rows_ >= largest_preferred_ ? members_.size() : 0;
  }
  [[nodiscard]] double wait_us(std::span<const Waiting> queue) const { return rules_.max_delay_us - age_us(queue); }
  [[nodiscard]] const std::vector<size_t>& members() const { return members_; }

 private:
  [[nodiscard]] bool may_join(const Waiting& first, const Waiting& next) const {
    return next.merge && next.shape_key == first.shape_key && (rules_.max_rows == 0 || rows_ + next.rows <= rules_.max_rows);
  }
  [[nodiscard]] double age_us(std::span<const Waiting> queue) const { return queue[members_.front()].age_us; }

  const BatchRules& rules_;
  int64_t largest_preferred_;
  std::vector<size_t> members_;
  int64_t rows_ = 0;
  size_t num_preferred_ = 0;  // members up to the last point at which it may run before the delay is over; 0: there is none
  bool is_closed_ = false;
};

}  // namespace

BatchPlan plan_batch(std::span<const Waiting> queue, std::span<const BatchRules> rules) {
  std::vector<Batch> batches(rules.begin(), rules.end());
  std::vector<size_t> order;  // models by their oldest request
  size_t end = 0;             // of what may run before the first that is alone
  for (; end < queue.size() && !queue[end].alone; ++end) {
    if (!queue[end].may_run) continue;
    ensure(queue[end].model >= 0 && queue[end].model < static_cast<int64_t>(rules.size()), "no model ", queue[end].model);
    const auto model = static_cast<size_t>(queue[end].model);
    if (batches[model].members().empty()) order.push_back(model);
    batches[model].add(queue, end);
  }
  if (order.empty()) return end < queue.size() && queue[end].may_run ? BatchPlan{.take = {end}} : BatchPlan{};

  BatchPlan plan;
  for (const size_t model : order) {
    Batch& batch = batches[model];
    if (end < queue.size()) batch.close();
    if (const size_t count = batch.num_ready(queue); count > 0) {
      const std::vector<size_t>& members = batch.members();
      return {.take = {members.begin(), members.begin() + static_cast<std::ptrdiff_t>(count)}};
    }
    plan.wait_us = std::min(plan.wait_us.value_or(batch.wait_us(queue)), batch.wait_us(queue));
  }
  return plan;
}

}  // namespace kedge
