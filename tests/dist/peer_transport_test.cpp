// What needs no second rank; transport_cuda_test.cpp has the rest.
#include "kedge/dist/peer_transport.h"

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>

#include "kedge/core/device.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

TEST(PeerTransport, IsRefusedWithoutAGpu) {
  const std::string error = testing::error_of<Error>([] { return make_peer_transport(Group::single(), at::kCPU); });
  EXPECT_TRUE(error.starts_with("this kedge was built without CUDA") ||
              error == "ranks read each other's memory on GPUs only, found the device cpu")
      << error;
}

TEST(PeerTransport, OneRankCopiesItsOwnPart) {
  if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  const at::Device device(at::kCUDA, 0);
  const std::shared_ptr<Transport> transport = make_peer_transport(Group::single(), device);
  EXPECT_EQ(transport->name(), "peer");
  EXPECT_EQ(transport->size(), 1);
  const std::vector<Tensor> to{at::full({1'000'001}, 7.0F, device)}, from{at::zeros({1'000'001}, device)};
  transport->exchange(to, from);
  EXPECT_TRUE(at::equal(to[0], from[0]));
  const Tensor all = at::zeros({1'000'001}, device);
  transport->all_gather(to[0], all);
  EXPECT_TRUE(at::equal(to[0], all));
}

}  // namespace
}  // namespace kedge
