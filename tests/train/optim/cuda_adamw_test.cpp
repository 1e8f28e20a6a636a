// AdamW on a GPU beside the CPU. Skipped where there is none.
#include "kedge/train/optim/cuda_adamw.h"

#include <gtest/gtest.h>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/train/optim/optimizer.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;
using testing::relative_error;
using testing::same_bits;

class AdamWOnTheGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  }
  static at::Device gpu() { return {at::kCUDA, 0}; }
};

AdamWTensors after_steps(at::Device device, int64_t size, at::ScalarType moments, bool published) {
  const AdamWTensors t{normals({size}, 1).to(device), at::empty({size}, at::TensorOptions(device)),
                       at::zeros({size}, at::TensorOptions(device).dtype(moments)),
                       at::zeros({size}, at::TensorOptions(device).dtype(moments)),
                       published ? at::zeros({size}, at::TensorOptions(device).dtype(at::kBFloat16)) : Tensor()};
  for (int64_t step = 1; step <= 4; ++step) {
    t.gradient.copy_(normals({size}, 10 + static_cast<uint64_t>(step)));
    adamw_update(t, {.lr = 0.01, .eps = 1e-6, .weight_decay = 0.1, .step = step, .grad_scale = 0.5});
  }
  return t;
}

// A moment in bf16 may be rounded to the other neighbour where fused and separate multiplications differ by a bit; the weights then move
// by 2^-8 of a step of 0.01.
TEST_F(AdamWOnTheGpu, StepsAreThoseOfTheCpu) {
  for (const int64_t size : {1, 37, 1000, 300'001})
    for (const at::ScalarType moments : {at::kFloat, at::kBFloat16})
      for (const bool published : {false, true}) {
        SCOPED_TRACE(kedge::str(size, " ", c10::toString(moments)));
        const AdamWTensors wanted = after_steps(at::kCPU, size, moments, published), found = after_steps(gpu(), size, moments, published);
        const double limit = moments == at::kFloat ? 1e-6 : 0x1p-7;
        EXPECT_LT(relative_error(found.first, wanted.first), limit);
        EXPECT_LT(relative_error(found.second, wanted.second), limit);
        EXPECT_LT(testing::largest_difference(found.master, wanted.master), moments == at::kFloat ? 1e-6 : 4 * 0.01 * 0x1p-7);
        if (published) {
          EXPECT_TRUE(same_bits(found.published, found.master.to(at::kBFloat16)));
        }
      }
}

TEST_F(AdamWOnTheGpu, MomentsInHostMemoryChangeNoBit) {
  const auto run = [](bool offload) {
    Parameters parameters({{"w", {300, 7}, true, ParameterSpec::Init::normal}, {"n", {5}, false, ParameterSpec::Init::ones}},
                          {.dtype = at::kBFloat16, .device = gpu(), .trainable = true});
    parameters.initialise(1, 0.5);
    Optimizer optimizer({.offload_adam_states = offload}, parameters);
    EXPECT_EQ(optimizer.first_moment().is_cuda(), !offload);
    for (uint64_t step = 0; step < 3; ++step) {
      parameters.flat_gradient().copy_(normals(parameters.flat_gradient().sizes(), step));
      optimizer.step(0.01);
    }
    return parameters.flat_master().cpu();
  };
  EXPECT_TRUE(same_bits(run(false), run(true)));
}

TEST(AdamWWithoutAGpu, TheStubSaysWhatToBuild) {
  if (num_cuda_devices() > 0) GTEST_SKIP() << "there is a CUDA device";
  EXPECT_THROW(cuda::adamw_update({}, factors_of({})), std::exception);
}

}  // namespace
}  // namespace kedge
