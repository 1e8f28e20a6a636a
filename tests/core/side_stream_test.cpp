#include "kedge/core/side_stream.h"

#include <gtest/gtest.h>

#include <vector>

#include "kedge/core/device.h"

namespace kedge {
namespace {

std::vector<at::Device> devices() {
  std::vector<at::Device> all = {at::Device(at::kCPU)};
  if (num_cuda_devices() > 0) all.emplace_back(at::kCUDA, 0);
  return all;
}

// Work at the side sees what was queued before its moment, and what waits for it sees its results: many times, so that on a GPU a missing
// wait shows.
TEST(SideStream, WorkBeginsAfterItsMomentAndIsWaitedFor) {
  for (const at::Device device : devices()) {
    SideStream side(device);
    const Tensor given = at::zeros({1 << 20}, at::TensorOptions(device)), found = at::zeros({1 << 20}, at::TensorOptions(device));
    for (int round = 1; round <= 50; ++round) {
      given.add_(1);
      const SideStream::Moment end = side.run(side.now(), [&] { found.copy_(given * 2); });
      side.wait(end);
      const Tensor sum = found + given;
      given.add_(0);
      EXPECT_EQ(sum.min().item<float>(), 3.0F * static_cast<float>(round));
      EXPECT_EQ(sum.max().item<float>(), 3.0F * static_cast<float>(round));
    }
  }
}

TEST(SideStream, AMomentThatWasNeverTakenHasPassed) {
  for (const at::Device device : devices()) {
    SideStream side(device);
    int done = 0;
    side.wait(side.run({}, [&] { ++done; }));
    side.wait({});
    EXPECT_EQ(done, 1);
  }
}

}  // namespace
}  // namespace kedge
