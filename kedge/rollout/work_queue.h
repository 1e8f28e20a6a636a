#pragma once
// A queue of prompts for all ranks, so that fast ranks do more: rank 0 serves it over HTTP.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kedge/dist/group.h"
#include "kedge/net/work_balancer.h"

namespace kedge {

struct WorkQueueOptions {
  int64_t port = 0;   // 0: any free port
  int64_t piece = 8;  // handed out at a time
};

// Created by all ranks together. On one machine the queue listens on the loopback only; callers
// must send a token that rank 0 creates and broadcasts.
class WorkQueue {
 public:
  WorkQueue(Group group, const WorkQueueOptions& options);

  // All ranks: fills the queue with slots 0 ... size-1.
  void fill(int64_t size);
  // This rank's next slots; none: nothing is left.
  [[nodiscard]] std::vector<int64_t> take() const;
  [[nodiscard]] int64_t piece() const { return piece_; }

 private:
  Group group_;
  int64_t piece_;
  std::unique_ptr<WorkBalancer> balancer_;  // rank 0's
  WorkAddress address_;
};

}  // namespace kedge
