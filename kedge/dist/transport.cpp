#include "kedge/dist/transport.h"

#include <algorithm>
#include <vector>

#include "kedge/core/error.h"

namespace kedge {

void Transport::all_gather(const Tensor& mine, const Tensor& all) {
  const std::vector<Tensor> to(static_cast<size_t>(size()), mine);
  exchange(to, all.chunk(size()));
}

void Transport::fast_reduce_scatter(const Tensor& parts, const Tensor& own) {
  const Tensor received = at::empty_like(parts);
  exchange(parts.chunk(size()), received.chunk(size()));
  sum_in_order(received.chunk(size()), own);
}

Tensor piece_of(const Tensor& row, int64_t start, int64_t length) {
  const int64_t begin = std::min(start, row.numel());
  return row.narrow(0, begin, std::min(length, row.numel() - begin));
}

void sum_in_order(std::span<const Tensor> parts, const Tensor& to) {
  const bool narrow = to.scalar_type() == at::kBFloat16 || to.scalar_type() == at::kHalf;
  Tensor total = narrow ? parts[0].to(at::kFloat) : to;
  if (!narrow && !to.is_same(parts[0])) to.copy_(parts[0]);
  for (const Tensor& part : parts.subspan(1)) total.add_(part);
  if (narrow) to.copy_(total);
}

}  // namespace kedge
