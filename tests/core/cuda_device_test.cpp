#include "kedge/core/cuda_device.h"

#include <gtest/gtest.h>

#include "kedge/core/device.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

TEST(CudaDevice, IsDescribedOrRefusedByName) {
  if (num_cuda_devices() > 0) {
    EXPECT_NE(describe_cuda_device(0).find("sm_"), std::string::npos);
  } else {
    EXPECT_NE(testing::error_of<Error>([] { return describe_cuda_device(0); }).find("CUDA"), std::string::npos);
  }
}

}  // namespace
}  // namespace kedge
