#include "kedge/train/checkpoint/checkpoint_name.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

std::string name_of(std::string_view pattern, const std::map<std::string, double>& numbers = {}) {
  return checkpoint_name(pattern, numbers, "filename");
}

// spec/models-data-ops.md 13.3 and spec/trainers.md 15
TEST(CheckpointName, ThoseOfTheSpec) {
  EXPECT_EQ(name_of("megatron_gpt--{val_loss:.3f}-{step}-{consumed_samples}-{epoch}",
                    {{"val_loss", 0.6123}, {"step", 100}, {"consumed_samples", 6400}, {"epoch", 0}}),
            "megatron_gpt--val_loss=0.612-step=100-consumed_samples=6400-epoch=0");
  EXPECT_EQ(name_of("megatron_gpt-{step}-{consumed_samples}-{ppo_optimization_step}-{epoch}-{val_rewards:.3f}",
                    {{"step", 10}, {"consumed_samples", 5120}, {"ppo_optimization_step", 80}, {"epoch", 0}, {"val_rewards", 1.234}}),
            "megatron_gpt-step=10-consumed_samples=5120-ppo_optimization_step=80-epoch=0-val_rewards=1.234");
}

TEST(CheckpointName, Numbers) {
  EXPECT_EQ(name_of("a{x}", {{"x", -3}}), "ax=-3");
  EXPECT_EQ(name_of("a{x}", {{"x", 9007199254740991.0}}), "ax=9007199254740991");
  EXPECT_EQ(name_of("a{x}", {{"x", 0.25}}), "ax=0.250000");
  EXPECT_EQ(name_of("a{x:.0f}", {{"x", 2.6}}), "ax=3");
  EXPECT_EQ(name_of("a-{x:.2f}"), "a-x=nan");
  EXPECT_EQ(name_of("plain"), "plain");
}

// Lightning's patterns are Python's formats.
TEST(CheckpointName, IntegersOfAWidth) {
  EXPECT_EQ(name_of("a{x:02d}", {{"x", 3}}), "ax=03");
  EXPECT_EQ(name_of("a{x:04d}", {{"x", 12345}}), "ax=12345");
  EXPECT_EQ(name_of("a{x:4d}", {{"x", 12}}), "ax=  12");
  EXPECT_EQ(name_of("a{x:d}", {{"x", -3}}), "ax=-3");
  EXPECT_EQ(name_of("a{x:d}", {{"x", 2.6}}), "ax=3");
  EXPECT_EQ(name_of("a{x:02d}"), "ax=nan");
}

TEST(CheckpointName, PatternsThatCannotBeRead) {
  EXPECT_EQ(error_of([] { return name_of("a{x"); }), "filename: \"a{x\" opens a { that is never closed");
  EXPECT_EQ(error_of([] { return name_of("a{}"); }), "filename: \"a{}\" has braces without a name");
  for (const char* format : {"f", ".", ".f", ".3", "3f", ".3g", ".99f", ".-1f", ".d", "-4d", "x4d", "99d", "4"})
    for (const double known : {1.0, std::nan("")})  // the check at the start of a run knows no number
      EXPECT_EQ(error_of([&] {
                  return name_of(str("a{x:", format, "}"), {{"x", known}});
                }),
                str("filename: \"", format, "\" is not a format; expected one such as .3f or 04d"));
  EXPECT_EQ(error_of([] { return name_of("a/b"); }), "filename: \"a/b\" is not a valid name for a checkpoint's folder");
  EXPECT_EQ(error_of([] { return name_of(".a"); }), "filename: \".a\" is not a valid name for a checkpoint's folder");
  EXPECT_EQ(error_of([] { return name_of(""); }), "filename: \"\" is not a valid name for a checkpoint's folder");
}

}  // namespace
}  // namespace kedge
