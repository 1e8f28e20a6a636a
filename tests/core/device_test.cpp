#include "kedge/core/device.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

TEST(Device, NamesReadBack) {
  EXPECT_EQ(name_of(parse_device("cpu", "--device")), "cpu");
  EXPECT_EQ(name_of(at::Device(at::kCUDA, 1)), "cuda:1");
  EXPECT_EQ(name_of(parse_device("auto", "--device")), num_cuda_devices() > 0 ? "cuda:0" : "cpu");
}

TEST(Device, RefusesWhatIsNotThere) {
  EXPECT_EQ(error_of([] { return parse_device("gpu", "--device"); }), "--device: expected auto, cpu, cuda or cuda:N, found \"gpu\"");
  EXPECT_EQ(error_of([] { return parse_device("cuda:x", "--device"); }), "--device: expected auto, cpu, cuda or cuda:N, found \"cuda:x\"");
  EXPECT_EQ(error_of([] { return parse_device("cuda:99", "--device"); }).find("--device: cuda:99 asked for, but "), 0U);
}

TEST(Dtype, EverySpellingMeansTheSame) {
  for (const char* name : {"bf16", "bfloat16", "bf16-mixed", "torch.bfloat16", "BF16"})
    EXPECT_EQ(parse_dtype(name, "precision"), at::kBFloat16);
  for (const char* name : {"fp32", "float32", "32", "32-true"}) EXPECT_EQ(parse_dtype(name, "precision"), at::kFloat);
  EXPECT_EQ(name_of(at::kHalf), "fp16");
  EXPECT_EQ(name_of(at::kLong), "int64");
}

TEST(Dtype, AnUnknownNameIsRefused) {
  EXPECT_EQ(error_of([] { return parse_dtype("fp8", "trainer.precision"); }),
            "trainer.precision: expected fp32, bf16 or fp16, found \"fp8\"");
  EXPECT_EQ(error_of([] { return parse_dtype("", "trainer.precision"); }), "trainer.precision: expected fp32, bf16 or fp16, found \"\"");
}

}  // namespace
}  // namespace kedge
