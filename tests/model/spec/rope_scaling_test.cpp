#include "kedge/model/spec/rope_scaling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

RopeConfig parse(const char* json, int64_t head_dim = 8, int64_t max_positions = 64) {
  return parse_rope(Json::parse(json), head_dim, max_positions, "config.json");
}

std::string fault(const char* json, int64_t head_dim = 8) {
  return error_of([&] { return parse(json, head_dim); });
}

void expect_near(const std::vector<float>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6 * wanted[i]) << i;
}

TEST(Rope, PlainFrequenciesFallByPowersOfTheta) {
  const RopeConfig rope = parse("{}");
  EXPECT_EQ(rope.type, RopeType::plain);
  EXPECT_EQ(rope.dim, 8);
  expect_near(inverse_frequencies(rope, 10), {1, 0.1, 0.01, 0.001});
  expect_near(inverse_frequencies(parse(R"({"rope_theta": 16})"), 10), {1, 0.5, 0.25, 0.125});
}

TEST(Rope, TransformersFourAndFiveSpellItDifferentlyAndMeanTheSame) {
  const RopeConfig four = parse(R"({"rope_theta": 500000.0, "rope_scaling": {"type": "linear", "factor": 4.0}})");
  const RopeConfig five = parse(R"({"rope_parameters": {"rope_type": "linear", "rope_theta": 500000.0, "factor": 4.0}})");
  EXPECT_EQ(four, five);
  EXPECT_EQ(parse(R"({"rope_scaling": null, "rope_theta": 7.0})"),
            parse(R"({"rope_parameters": {"rope_type": "default", "rope_theta": 7.0}})"));
}

// Model cards say to add rope_scaling; transformers 5 has written rope_parameters before. The base too is then that beside rope_scaling.
TEST(Rope, OfBothSpellingsRopeScalingCounts) {
  const std::string both =
      R"("rope_parameters": {"rope_type": "default", "rope_theta": 7.0}, "rope_scaling": {"type": "linear", "factor": 4.0)";
  EXPECT_EQ(parse(("{" + both + "}}").c_str()), parse(R"({"rope_scaling": {"type": "linear", "factor": 4.0}})"));
  EXPECT_EQ(parse(("{" + both + R"(, "rope_theta": 9.0}})").c_str()).theta, 9);
  EXPECT_EQ(parse(("{\"rope_theta\": 8.0, " + both + "}}").c_str()).theta, 8);
  EXPECT_EQ(parse(R"({"rope_parameters": {"rope_theta": 7.0}, "rope_scaling": {}})").theta, 7);
}

TEST(Rope, LinearDividesEveryFrequency) {
  expect_near(inverse_frequencies(parse(R"({"rope_scaling": {"rope_type": "linear", "factor": 4}})"), 10), {0.25, 0.025, 0.0025, 0.00025});
}

// theta' = theta * (factor * length / max - (factor - 1))^(dim / (dim - 2)): 10000 * (2 * 128 / 64 - 1)^(8/6).
TEST(Rope, DynamicStretchesOnlyBeyondTheModelsOwnLength) {
  const RopeConfig rope = parse(R"({"rope_scaling": {"rope_type": "dynamic", "factor": 2}})");
  expect_near(inverse_frequencies(rope, 64), {1, 0.1, 0.01, 0.001});
  const double theta = 10000 * std::pow(3.0, 8.0 / 6.0);
  expect_near(inverse_frequencies(rope, 128), {1, std::pow(theta, -0.25), std::pow(theta, -0.5), std::pow(theta, -0.75)});
}

// Length before stretching 64, factors 1 and 4: pairs with a wavelength below 16 stay, above 64 are divided by 8. Frequencies 1 and 0.1
// have wavelengths 6.28 and 62.8: the second is mixed with weight (64 / 62.83 - 1) / 3 = 0.0061979.
TEST(Rope, Llama3KeepsFastPairsDividesSlowOnesAndMixesBetween) {
  const RopeConfig rope = parse(R"({"rope_parameters": {"rope_type": "llama3", "rope_theta": 10000, "factor": 8, "low_freq_factor": 1,
    "high_freq_factor": 4, "original_max_position_embeddings": 64}})");
  const double smooth = (64 / (2 * M_PI / 0.1) - 1) / 3;
  expect_near(inverse_frequencies(rope, 10), {1, (1 - smooth) * 0.1 / 8 + smooth * 0.1, 0.01 / 8, 0.001 / 8});
}

// dim 8, theta 10000, length 64: a pair turns t times at 8 ln(64 / (2 pi t)) / (2 ln 10000); t = 32 is below 0 -> 0, t = 1 gives 1.0079
// -> 2. Pair 0 keeps its angle, pair 1 is half stretched, the rest wholly.
TEST(Rope, YarnRampsFromFastToSlowPairsAndScalesAttention) {
  const RopeConfig rope = parse(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 64}})");
  expect_near(inverse_frequencies(rope, 10), {1, 0.5 * 0.1 + 0.5 * 0.025, 0.0025, 0.00025});
  EXPECT_NEAR(rope.attention_factor, 0.1 * std::log(4.0) + 1, 1e-12);
  EXPECT_EQ(parse(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4, "attention_factor": 1.5}})").attention_factor, 1.5);
  const double ratio = (0.1 * 2 * std::log(4.0) + 1) / (0.1 * 0.5 * std::log(4.0) + 1);
  EXPECT_NEAR(parse(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4, "mscale": 2, "mscale_all_dim": 0.5}})").attention_factor, ratio,
              1e-12);
}

TEST(Rope, YarnTakesItsOwnBoundsUnrounded) {
  const RopeConfig rope = parse(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 64,
    "beta_fast": 8, "beta_slow": 0.5, "truncate": false}})");
  EXPECT_EQ(rope.beta_fast, 8);
  EXPECT_EQ(rope.beta_slow, 0.5);
  EXPECT_FALSE(rope.truncate);
  const auto turns = [](double times) { return 8 * std::log(64 / (times * 2 * M_PI)) / (2 * std::log(10000.0)); };
  const double low = turns(8), high = turns(0.5), ramp = (1 - low) / (high - low);
  expect_near(inverse_frequencies(rope, 10), {1, 0.1 * (1 - ramp) + 0.025 * ramp, 0.0025, 0.00025});
}

TEST(Rope, APartOfTheChannelsIsRefused) {
  const std::string why = " is not supported: transformers rotates all channels of this family";
  EXPECT_EQ(fault(R"({"partial_rotary_factor": 0.5})"), "config.json: partial_rotary_factor 0.5" + why);
  EXPECT_EQ(fault(R"({"rope_parameters": {"partial_rotary_factor": 0.25}})"), "config.json: partial_rotary_factor 0.25" + why);
  EXPECT_EQ(parse(R"({"partial_rotary_factor": 1.0})"), parse("{}"));
}

TEST(Rope, WhatMakesNoSenseIsNamed) {
  EXPECT_EQ(fault(R"({"rope_scaling": {"rope_type": "longrope", "factor": 2}})"),
            "config.json: rope_scaling.rope_type: \"longrope\" is not supported; known are default, linear, dynamic, yarn and llama3");
  EXPECT_EQ(fault(R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})"),
            "config.json: rope_parameters.full_attention: rotary settings for each kind of layer are not supported");
  EXPECT_EQ(fault(R"({"rope_parameters": 3})"), "config.json: rope_parameters: expected an object, found 3");
  EXPECT_EQ(fault(R"({"rope_theta": "big"})"), "config.json: rope_theta: expected a number, found \"big\"");
  EXPECT_EQ(fault(R"({"rope_parameters": {"rope_theta": "big"}})"),
            "config.json: rope_parameters.rope_theta: expected a number, found \"big\"");
  EXPECT_EQ(fault(R"({"original_max_position_embeddings": true, "rope_scaling": {"rope_type": "linear", "factor": 2}})"),
            "config.json: original_max_position_embeddings: expected a number, found true");
  EXPECT_EQ(fault(R"({"rope_theta": 1})"), "config.json: rope_scaling: rope_theta is 1, expected more than 1");
  EXPECT_EQ(fault("{}", 5), "config.json: rope_scaling: 5 channels of a head would be rotated; expected an even number of them");
  EXPECT_EQ(fault(R"({"rope_scaling": {"rope_type": "linear"}})"), "config.json: rope_scaling: no \"factor\" field");
  EXPECT_EQ(fault(R"({"rope_scaling": {"rope_type": "linear", "factor": 0.5}})"), "config.json: rope_scaling.factor: 0.5 is below 1");
  EXPECT_EQ(fault(R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}})"),
            "config.json: rope_scaling: expected 0 < low_freq_factor < high_freq_factor, found 4 and 4");
  EXPECT_EQ(fault(R"({"rope_scaling": {"rope_type": "yarn", "factor": 8, "original_max_position_embeddings": 0}})"),
            "config.json: rope_scaling.original_max_position_embeddings: 0 is not a length");
}

}  // namespace
}  // namespace kedge
