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

TEST(CudaDevice, HasAPlaceOnTheBusAndAStream) {
  if (num_cuda_devices() > 0) {
    EXPECT_NE(cuda_bus_id(0).find(':'), std::string::npos);
    EXPECT_EQ(current_cuda_stream(0), current_cuda_stream(0));
  } else {
    EXPECT_NE(testing::error_of<Error>([] { return cuda_bus_id(0); }).find("CUDA"), std::string::npos);
    EXPECT_NE(testing::error_of<Error>([] { return current_cuda_stream(0); }).find("CUDA"), std::string::npos);
  }
}

TEST(CudaDevice, MemoryIsKnownBeforeTheFirstTensor) {
  if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  EXPECT_GT(free_cuda_bytes(), 0);
  EXPECT_NO_THROW(reset_peak_cuda_bytes());
  EXPECT_EQ(peak_cuda_bytes(), 0);
}

}  // namespace
}  // namespace kedge
