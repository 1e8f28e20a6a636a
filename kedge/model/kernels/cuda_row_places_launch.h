#pragma once
// Where the rows of a batch are in several tensors, as cuDNN takes it. On raw pointers: nvcc compiles no torch headers.
#include <cuda_runtime_api.h>

#include <cstdint>

namespace kedge::cuda {

constexpr int kMostWidths = 8;

// From rows + 1 offsets in tokens: the lengths of `room` rows, those behind the last one empty, and for each width, room + 1 offsets in
// numbers. Every part begins at a multiple of `stride` in `out`: lengths of queries, lengths of keys, then the widths.
struct RowPlacesLaunch {
  const int32_t *offsets_q, *offsets_k;
  int rows, room, stride;
  int num_widths;
  int widths[kMostWidths];
  bool of_keys[kMostWidths];
  int32_t* out;
};
void launch_row_places(const RowPlacesLaunch& launch, cudaStream_t stream);

}  // namespace kedge::cuda
