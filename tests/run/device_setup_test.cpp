#include "kedge/run/device_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/tiny_training.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(Compute, AsManyRanksAsWereAskedFor) {
  ComputeConfig compute;
  compute.accelerator = "cpu";
  EXPECT_EQ(open_mesh(compute).world.size(), 1);
  compute.devices = 1;
  EXPECT_EQ(open_mesh(compute).world.size(), 1);
  compute.devices = 2;
  compute.num_nodes = 3;
  EXPECT_EQ(error_of([&] { return open_mesh(compute).world.size(); }),
            "trainer.devices x trainer.num_nodes: 6 ranks, but 1 was started; mpirun -n N starts more");
}

TEST(Compute, AsManyMachinesAsWereAskedFor) {
  ComputeConfig compute;
  compute.accelerator = "cpu";
  compute.num_nodes = 1;
  EXPECT_EQ(open_mesh(compute).world.size(), 1);
  compute.num_nodes = 2;
  EXPECT_EQ(error_of([&] { return open_mesh(compute).world.size(); }), "trainer.num_nodes: 2, but one rank was started on 1 machine");
}

TEST(Compute, PrecisionIsTheDevicesBestUnlessItIsNamed) {
  ComputeConfig compute;
  EXPECT_EQ(dtype_of(compute, at::kCPU), at::kFloat);
  EXPECT_EQ(dtype_of(compute, at::kCUDA), at::kBFloat16);
  compute.precision = "bf16";
  EXPECT_EQ(dtype_of(compute, at::kCPU), at::kBFloat16);
  compute.precision = "16";
  EXPECT_THAT(error_of([&] { return training_storage(compute, {}, at::kCPU).trainable; }),
              HasSubstr("trainer.precision: 16 is not supported"));
}

TEST(Compute, WhatLiesBelowAdaptersIsFrozen) {
  ComputeConfig compute;
  NetworkConfig network;
  EXPECT_TRUE(training_storage(compute, network, at::kCPU).trainable);
  const auto plain = testing::byte_model();
  add_trained_adapters(*plain, network);
  EXPECT_EQ(plain->adapters(), nullptr);
  network.peft.peft_scheme = PeftScheme::lora;
  EXPECT_FALSE(training_storage(compute, network, at::kCPU).trainable);
  const auto adapted = testing::byte_model({}, {.trainable = false});
  add_trained_adapters(*adapted, network);
  EXPECT_NE(adapted->adapters(), nullptr);
}

}  // namespace
}  // namespace kedge
