#include "kedge/model/spec/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/model/spec/parameter_layout.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

int64_t num_parameters(const ModelConfig& config) {
  int64_t total = 0;
  for (const ParameterSpec& spec : make_parameters(config, {}).specs) total += spec.size();
  return total;
}

TEST(Shapes, TheNamedOnesHaveTheParametersTheyAreKnownFor) {
  // SmolLM 135M, Llama 3.2 1B, Llama 3 8B, Qwen2.5 and Qwen3 as published; the others by hand:
  // tiny: layer 64 + (4 + 2 * 2) * 16 * 64 + 64 * 64 + 64 + 3 * 192 * 64 = 49,280; 2 layers + 2 * 512 * 64 + 64.
  // nano: layer 512 + (8 + 2 * 4) * 64 * 512 + 512 * 512 + 512 + 3 * 1376 * 512 = 2,900,992; 8 layers + 2 * 8192 * 512 + 512.
  const std::vector<std::pair<const char*, int64_t>> wanted = {{"tiny", 164160},
                                                               {"nano", 31597056},
                                                               {"30m", 31597056},
                                                               {"135m", 134515008},
                                                               {"0.6b", 596049920},
                                                               {"1b", 1235814400},
                                                               {"4b", 4022468096},
                                                               {"8b", 8030261248},
                                                               {"qwen2.5-0.5b", 494032768},
                                                               {"qwen2.5-1.5b", 1543714304},
                                                               {"qwen2.5-3b", 3085938688},
                                                               {"qwen2.5-7b", 7615616512},
                                                               {"qwen3-0.6b", 596049920},
                                                               {"qwen3-1.7b", 1720574976},
                                                               {"qwen3-4b", 4022468096},
                                                               {"qwen3-8b", 8190735360}};
  for (const auto& [name, parameters] : wanted) EXPECT_EQ(num_parameters(shape_config(name)), parameters) << name;
}

TEST(Shapes, EveryNamedOneIsAConfigJsonOfItsSizes) {
  for (const NamedShape& entry : named_shapes()) {
    const ModelConfig config = shape_config(entry.name);
    EXPECT_EQ(config.family, entry.shape.family);
    EXPECT_EQ(config.hidden_size, entry.shape.hidden_size);
    EXPECT_EQ(config.num_layers, entry.shape.num_layers);
    EXPECT_EQ(config.mlp_size, entry.shape.mlp_size);
    EXPECT_EQ(config.max_positions, entry.shape.max_positions);
    EXPECT_EQ(config.tied, entry.shape.tied);
    EXPECT_EQ(config.rope.theta, entry.shape.rope_theta);
    EXPECT_EQ(config.norm_eps, entry.shape.norm_eps);
    EXPECT_EQ(config.source.find("architectures"), nullptr) << "set when the model is saved";
  }
  EXPECT_EQ(shape_config("1b").head_dim, 64);
  EXPECT_EQ(shape_config("8b").head_dim, 128);
  EXPECT_EQ(shape_config("0.6b").head_dim, 128);
  EXPECT_EQ(shape_config("qwen2.5-0.5b").head_dim, 64);
  EXPECT_TRUE(shape_config("qwen2.5-7b").qkv_bias);
  EXPECT_EQ(shape_config("qwen3-1.7b").head_dim, 128);
  EXPECT_FALSE(shape_config("qwen3-8b").qkv_bias);
}

TEST(Shapes, AnyShapeCanBeOfAnyFamily) {
  for (const Family family : {Family::llama, Family::mistral, Family::qwen2, Family::qwen3, Family::gpt2}) {
    ModelShape shape = find_shape("tiny", "--shape");
    shape.family = family;
    const ModelConfig config = parse_model_config(shape_json(shape), "config.json");
    EXPECT_EQ(config.family, family);
    EXPECT_EQ(config.head_dim, 16);
    EXPECT_EQ(config.num_kv_heads, family == Family::gpt2 ? 4 : 2);
    EXPECT_FALSE(config.tied);
    EXPECT_THAT(config.windows, ::testing::Each(0));
  }
}

TEST(Shapes, AnUnknownNameAndSizesThatDoNotGoTogetherAreRefused) {
  EXPECT_EQ(error_of([] { return find_shape("tinny", "--shape"); }),
            "--shape: no shape \"tinny\"; nearest: tiny; there are tiny, nano, 30m, 135m, 0.6b, qwen3-0.6b, 1b, 4b, qwen3-4b, 8b, "
            "qwen2.5-0.5b, qwen2.5-1.5b, qwen2.5-3b, qwen2.5-7b, qwen3-1.7b, qwen3-8b");
  EXPECT_THAT(error_of([] { return find_shape("qwen3-0.6", "--shape"); }), HasSubstr("nearest: qwen3-0.6b"));
  EXPECT_THAT(error_of([] { return find_shape("", "--shape"); }), HasSubstr("no shape \"\""));
  ModelShape shape = find_shape("tiny", "--shape");
  shape.num_heads = 7;
  EXPECT_EQ(error_of([&] { return shape_json(shape); }), "hidden size 64 is not a multiple of 7 heads, and no head dimension is given");
  shape.head_dim = 8;
  EXPECT_EQ(error_of([&] { return parse_model_config(shape_json(shape), "x"); }),
            "x: num_attention_heads 7 is not a multiple of num_key_value_heads 2");
}

}  // namespace
}  // namespace kedge
