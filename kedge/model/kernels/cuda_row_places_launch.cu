#include "kedge/model/kernels/cuda_row_places_launch.h"

namespace kedge::cuda {
namespace {

__global__ void row_places_kernel(const RowPlacesLaunch l) {
  for (int i = static_cast<int>(threadIdx.x); i <= l.room; i += static_cast<int>(blockDim.x)) {
    const int row = min(i, l.rows);
    const int32_t q = l.offsets_q[row], k = l.offsets_k[row];
    if (i < l.room) {
      const int next = min(i + 1, l.rows);
      l.out[i] = l.offsets_q[next] - q;
      l.out[l.stride + i] = l.offsets_k[next] - k;
    }
    for (int w = 0; w < l.num_widths; ++w) l.out[(2 + w) * l.stride + i] = (l.of_keys[w] ? k : q) * l.widths[w];
  }
}

}  // namespace

void launch_row_places(const RowPlacesLaunch& l, cudaStream_t stream) { row_places_kernel<<<1, 256, 0, stream>>>(l); }

}  // namespace kedge::cuda
