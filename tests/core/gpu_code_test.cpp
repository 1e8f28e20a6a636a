#include "kedge/core/gpu_code.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

// What packages and scripts/build cuda compile for (CMakeLists.txt).
constexpr std::string_view kPackage = "80-real;86-real;89-real;90a-real;100-real;120-real;80-virtual";

std::string code_of(int major, int minor, std::string_view architectures = kPackage) {
  return describe(gpu_code_for({major, minor}, architectures));
}

TEST(GpuCode, EveryGenerationThatIsNamedHasInstructionsOfItsOwn) {
  EXPECT_EQ(code_of(8, 0), "kernels compiled for sm_80");
  EXPECT_EQ(code_of(8, 6), "kernels compiled for sm_86");
  EXPECT_EQ(code_of(8, 9), "kernels compiled for sm_89");
  EXPECT_EQ(code_of(9, 0), "kernels compiled for sm_90a");
  EXPECT_EQ(code_of(10, 0), "kernels compiled for sm_100");
  EXPECT_EQ(code_of(12, 0), "kernels compiled for sm_120");
}

TEST(GpuCode, ALaterCardOfAGenerationRunsTheNewestBeforeIt) {
  EXPECT_EQ(code_of(8, 7), "kernels compiled for sm_86");
  EXPECT_EQ(code_of(10, 3), "kernels compiled for sm_100");
  EXPECT_EQ(code_of(12, 1), "kernels compiled for sm_120");
}

TEST(GpuCode, TheDriverCompilesForWhatCameLater) {
  EXPECT_EQ(code_of(11, 0), "kernels compiled by the driver from PTX of compute_80");
  EXPECT_EQ(code_of(13, 0), "kernels compiled by the driver from PTX of compute_80");
  EXPECT_EQ(code_of(9, 0, "80-virtual"), "kernels compiled by the driver from PTX of compute_80");
  EXPECT_EQ(code_of(12, 0, "80-virtual 90-virtual"), "kernels compiled by the driver from PTX of compute_90");
}

TEST(GpuCode, WhatIsForOneArchitectureRunsThereAlone) {
  EXPECT_EQ(code_of(9, 0, "90a"), "kernels compiled for sm_90a");
  EXPECT_EQ(code_of(10, 0, "90a"), "this kedge has no kernels for it");
  EXPECT_EQ(code_of(10, 3, "100a-real 100f-virtual"), "kernels compiled by the driver from PTX of compute_100f");
  EXPECT_EQ(code_of(12, 0, "90"), "kernels compiled by the driver from PTX of compute_90");
}

TEST(GpuCode, ACardThatIsTooOldIsRefusedByNameWithWhatIsWanted) {
  EXPECT_EQ(code_of(7, 5), "too old: compute capability 8.0 or newer is required");
  EXPECT_EQ(
      error_of([] {
        return check_gpu({"Tesla T4", {7, 5}}, kPackage, "--device: cuda:0"), 0;
      }),
      "--device: cuda:0 is a Tesla T4 of compute capability 7.5; 8.0 or newer is required (A100, RTX 30 and later), whose tensor cores "
      "multiply bf16");
  EXPECT_NO_THROW(check_gpu({"NVIDIA H200", {9, 0}}, kPackage, "--device: cuda:0"));
}

TEST(GpuCode, ABuildForOtherCardsSaysHowToBuildForThisOne) {
  EXPECT_EQ(error_of([] {
              return check_gpu({"NVIDIA A100", {8, 0}}, "90a-real", "--device: cuda:1"), 0;
            }),
            "--device: cuda:1 is a NVIDIA A100 of compute capability 8.0, and this kedge was compiled for 90a-real alone; build it with "
            "KEDGE_CUDA_ARCHITECTURES=80");
}

TEST(GpuCode, WhatIsNoArchitectureIsPassedOver) {
  EXPECT_EQ(code_of(9, 0, "native;;all"), "this kedge has no kernels for it");
  EXPECT_EQ(code_of(9, 0, ""), "this kedge has no kernels for it");
}

}  // namespace
}  // namespace kedge
