// Recorded work on a GPU. Skipped where there is none.
#include "kedge/engine/cuda_graph.h"

#include <gtest/gtest.h>

#include "kedge/core/device.h"

namespace kedge {
namespace {

TEST(CudaGraphs, WorkIsRecordedOnceAKeyAndReadsNewNumbers) {
  if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  const Tensor in = at::ones({4}, at::TensorOptions(at::Device(at::kCUDA, 0)));
  CudaGraphs graphs;
  int calls = 0;
  const auto run = [&](int64_t factor) {
    return graphs.run({factor}, [&] {
      ++calls;
      return in * factor + 1;
    });
  };
  for (int64_t i = 1; i < 6; ++i) {
    in.fill_(static_cast<double>(i));
    EXPECT_EQ(run(2)[0].item<double>(), static_cast<double>(2 * i + 1));
    EXPECT_EQ(run(3)[3].item<double>(), static_cast<double>(3 * i + 1));
  }
  EXPECT_EQ(calls, 4);  // called and recorded, for each key
  // Everything is dropped, and recorded again.
  for (int again = 1; again < 4; ++again) {
    graphs.clear();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(2)[0].item<double>(), 11.0);
    EXPECT_EQ(calls, 4 + 2 * again);
  }
}

TEST(CudaGraphs, WithoutCudaWorkIsDone) {
  if (num_cuda_devices() > 0) GTEST_SKIP() << "there is a CUDA device";
  CudaGraphs graphs;
  EXPECT_EQ(graphs.run({1}, [] { return at::ones({1}); })[0].item<double>(), 1.0);
}

}  // namespace
}  // namespace kedge
