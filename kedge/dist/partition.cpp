#include "kedge/dist/partition.h"

#include "kedge/core/error.h"

namespace kedge {

Share share_of(int64_t size, int rank, int num_ranks) {
  ensure(rank >= 0 && rank < num_ranks, "rank ", rank, " of ", num_ranks);
  return {size * rank / num_ranks, size * (rank + 1) / num_ranks};
}

}  // namespace kedge
