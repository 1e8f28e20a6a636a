// What ops, attention and whole models compute on a GPU, beside the CPU. Skipped where there is none.
#include "kedge/model/kernels/cuda_kernels.h"

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <tuple>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/model/adapted_linear.h"

#include "tests/support/model_logits.h"
#include "tests/support/plain_network.h"
#include "tests/support/shared_rows.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::ids_below;
using testing::model_logits;
using testing::normals;
using testing::relative_error;
using testing::same_bits;

constexpr double kFp32 = 1e-5;
// Both sides compute in fp32 and round once; where the fp32 numbers fall on two sides of a middle, they differ by a unit of 8 bits.
constexpr double kBf16 = 0x1p-7;
double limit_of(at::ScalarType dtype) { return dtype == at::kFloat ? kFp32 : kBf16; }

using Results = std::vector<Tensor>;
using Calculation = std::function<Results(at::Device)>;

class OnTheGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  }

  // `run` gives on the GPU what it gives on the CPU.
  static void compare(double limit, const Calculation& run) {
    const Results wanted = run(at::kCPU), found = run(gpu());
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(found[i].is_cuda()) << i;
      EXPECT_EQ(found[i].scalar_type(), wanted[i].scalar_type()) << i;
      EXPECT_LT(relative_error(found[i], wanted[i]), limit) << "result " << i;
    }
  }
  static at::Device gpu() { return {at::kCUDA, 0}; }
};

const std::vector<std::pair<int64_t, int64_t>> kShapes = {{1, 37}, {7, 3}, {300, 37}, {5, 64}, {1000, 130}, {3, 5000}};

struct NormCase {
  at::ScalarType dtype;
  int64_t rows, size;
  bool centred, beside;
};

Results norm_and_back(const NormCase& one, at::Device device) {
  const auto random = [&](at::IntArrayRef sizes, uint64_t seed) { return normals(sizes, seed, 1, one.dtype).to(device); };
  const auto zeros = [&] { return at::zeros({one.size}, at::TensorOptions(device)); };
  const NormWeights weights{random({one.size}, 3),
                            one.centred ? random({one.size}, 4) : Tensor(),
                            zeros(),
                            one.centred ? zeros() : Tensor(),
                            one.centred ? NormKind::layer : NormKind::rms,
                            1e-5};
  const Tensor x = random({one.rows, one.size}, 1) * 2 + 0.5, dout = random({one.rows, one.size}, 2);
  const Normed normed = norm(x, weights);
  EXPECT_TRUE(same_bits(norm_again(x, normed, weights), normed.out));
  const Tensor dx = norm_backward(dout, x, normed, weights, one.beside ? random({one.rows, one.size}, 5) : Tensor());
  Results results = {normed.out, normed.rstd, dx, weights.weight_gradient};
  if (one.centred) results.push_back(weights.bias_gradient);
  return results;
}

TEST_F(OnTheGpu, Norms) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const auto& [rows, size] : kShapes)
      for (const bool centred : {false, true})
        for (const bool beside : {false, true}) {
          SCOPED_TRACE(kedge::str(c10::toString(dtype), " ", rows, " x ", size, centred ? " layer" : " rms"));
          const NormCase one{dtype, rows, size, centred, beside};
          compare(limit_of(dtype), [&](at::Device device) { return norm_and_back(one, device); });
        }
}

// 48, 160, 240 and 235 KiB of sums: as much as a block has without asking, more than an RTX card's, and twice more than any GPU's.
TEST_F(OnTheGpu, NormsOfRowsWiderThanSharedMemory) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const NormCase& one : {NormCase{dtype, 3, 12288, false, false}, NormCase{dtype, 3, 20480, true, true},
                                NormCase{dtype, 270, 30720, true, false}, NormCase{dtype, 3, 60001, false, true}}) {
      SCOPED_TRACE(kedge::str(c10::toString(dtype), " ", one.rows, " x ", one.size));
      compare(limit_of(dtype), [&](at::Device device) { return norm_and_back(one, device); });
    }
}

// Heads of sizes that have a kernel, and of one that has none.
TEST_F(OnTheGpu, NormsOfHeads) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t dim : {32, 48, 64, 128, 256})
      for (const auto& [rows, num_q, num_k] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {7, 4, 2}, {900, 16, 8}}) {
        SCOPED_TRACE(kedge::str(c10::toString(dtype), " ", rows, " x (", num_q, " + ", num_k, ") heads of ", dim));
        const auto run = [&, rows = rows, num_q = num_q, num_k = num_k](at::Device device) -> Results {
          const auto random = [&](at::IntArrayRef sizes, uint64_t seed) { return normals(sizes, seed, 1, dtype).to(device); };
          const auto zeros = [&] { return at::zeros({dim}, at::TensorOptions(device)); };
          const NormWeights q{random({dim}, 3), {}, zeros(), {}, NormKind::rms, 1e-5},
              k{random({dim}, 4), {}, zeros(), {}, NormKind::rms, 1e-6};
          const HeadNorms norms{.q = q, .k = k, .num_q = num_q, .num_k = num_k, .dim = dim};
          const Tensor qkv = random({rows, (num_q + 2 * num_k) * dim}, 1) * 2 + 0.5, dqkv = random(qkv.sizes(), 2);
          const HeadNormed normed = norm_heads(qkv, norms);
          norm_heads_backward_(dqkv, qkv, normed.q, normed.k, norms);
          return {normed.out, normed.q.rstd, normed.k.rstd, dqkv, q.weight_gradient, k.weight_gradient};
        };
        compare(limit_of(dtype), run);
      }
}

TEST_F(OnTheGpu, Gates) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const auto& [rows, size] : kShapes)
      for (const Activation activation : {Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::relu2})
        for (const bool gated : {true, false}) {
          SCOPED_TRACE(kedge::str(c10::toString(dtype), " ", rows, " x ", size, " ", name_of(activation), gated ? " gated" : ""));
          const auto run = [&, rows = rows, size = size](at::Device device) -> Results {
            const Tensor in = normals({rows, gated ? 2 * size : size}, 1, 3, dtype).to(device);
            const Tensor dout = normals({rows, size}, 2, 1, dtype).to(device);
            const GateGradient gradient = gate_backward(dout, in, {activation, gated});
            return {gate(in, {activation, gated}), gradient.gate_up, gradient.out};
          };
          compare(dtype == at::kFloat ? kFp32 : 2 * kBf16, run);  // compositions of ATen operators round twice
        }
}

TEST_F(OnTheGpu, Rotations) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const auto& [num_heads, head_dim, dim] :
         {std::tuple(3, 10, 6), std::tuple(8, 64, 64), std::tuple(1, 2, 2), std::tuple(5, 37, 36)}) {
      const auto run = [&, heads = num_heads, size = head_dim, turned = dim](at::Device device) -> Results {
        const Tensor x = normals({70, heads * size + 11}, 1, 1, dtype).to(device), angles = normals({70, turned / 2}, 2, 3).to(device);
        const Rotation rotation{angles.cos(), angles.sin(), heads, size, turned};
        const Tensor forward = x.clone(), backward = x.clone();
        rotate_(forward, rotation, false);
        rotate_(backward, rotation, true);
        EXPECT_TRUE(same_bits(forward.narrow(1, heads * size, 11), x.narrow(1, heads * size, 11)));
        return {forward, backward};
      };
      compare(limit_of(dtype), run);
    }
}

TEST_F(OnTheGpu, AddedRows) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    compare(kFp32, [&](at::Device device) -> Results {
      const Tensor table = at::ones({20, 37}, at::TensorOptions(device));
      add_rows_(table, ids_below(20, 300, 1).to(device), normals({300, 37}, 2, 1, dtype).to(device));
      return {table};
    });
}

TEST_F(OnTheGpu, LogitStatsAndTheirGradients) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const at::ScalarType out : {at::kFloat, at::kBFloat16})
      for (const auto& [rows, vocab] : {std::pair(1, 37), std::pair(300, 37), std::pair(9, 1000), std::pair(3, 50257), std::pair(2, 2)})
        for (const auto& [entropy, temperature] :
             {std::pair(false, 1.0), std::pair(true, 1.0), std::pair(false, 0.6), std::pair(true, 1.5)}) {
          if (dtype == at::kBFloat16 && out == at::kFloat) continue;  // nobody asks for it
          SCOPED_TRACE(kedge::str(c10::toString(dtype), " to ", c10::toString(out), " ", rows, " x ", vocab, entropy ? " entropy" : "",
                                  " at ", temperature));
          const auto run = [&, num_rows = rows, size = vocab, entropy = entropy, temperature = temperature](at::Device device) -> Results {
            // As spread as at a temperature of 1: of a probability next to 1, what is missing has few digits on either side.
            // The CPU writes a gradient over its logits, and in bf16 rounds that of the target twice: here it has room to round once.
            const Tensor given = normals({num_rows, size}, 1, 3 * temperature, dtype).to(device);
            const Tensor logits = device.is_cpu() ? given.to(at::kFloat) : given;
            const Tensor targets = ids_below(size, num_rows, 2).to(device);
            const LogitStats stats = logit_stats(logits, targets, entropy, temperature);
            const Tensor dlogprob = normals({num_rows}, 3).to(device), dentropy = entropy ? normals({num_rows}, 4).to(device) : Tensor();
            const at::ScalarType type = device.is_cpu() ? at::kFloat : out;  // the CPU gives it in the logits' own type alone
            const Tensor gradient = logit_gradient(logits.clone(), targets, stats, dlogprob, dentropy, type);
            Results results = {stats.logprob, stats.log_sum, gradient.to(out)};
            if (entropy) results.push_back(stats.entropy);
            return results;
          };
          compare(out == at::kFloat ? kFp32 : kBf16, run);
        }
}

TEST_F(OnTheGpu, HugeLogitsStayFinite) {
  compare(kFp32, [](at::Device device) -> Results {
    const Tensor logits = at::tensor({1e4, -1e4, 0.0, 1e4, 0.0, 0.0}).to(at::kFloat).view({2, 3}).to(device);
    const Tensor targets = testing::longs({1, 0}).to(device), ones = at::ones({2}, at::TensorOptions(device));
    const LogitStats stats = logit_stats(logits, targets, true);
    return {stats.logprob, stats.entropy, logit_gradient(logits.clone(), targets, stats, ones, ones, at::kFloat)};
  });
}

TEST_F(OnTheGpu, LinearLayersAndTheirGradients) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    compare(limit_of(dtype), [&](at::Device device) -> Results {
      const auto random = [&](at::IntArrayRef sizes, uint64_t seed) { return normals(sizes, seed, 1, dtype).to(device); };
      const Tensor x = random({50, 40}, 1), weight = random({24, 40}, 2), bias = random({24}, 3), beside = random({50, 24}, 4);
      const Tensor gradient = at::ones({24, 40}, at::TensorOptions(device)), bias_gradient = at::ones({24}, at::TensorOptions(device));
      add_weight_gradient(gradient, beside, x);
      add_bias_gradient(bias_gradient, beside);
      return {linear(x, weight, bias), linear(x, weight, bias, beside), gradient, bias_gradient};
    });
}

// Without dropout their products are scaled and added where they belong, to some columns of a matrix; with it, outputs are dropped first.
TEST_F(OnTheGpu, AdaptersAndTheirGradients) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const double dropout : {0.0, 0.4})
      compare(dtype == at::kFloat ? kFp32 : 4 * kBf16, [&](at::Device device) -> Results {  // a CPU rounds what is added, and its sum
        const auto random = [&](at::IntArrayRef sizes, uint64_t seed) { return normals(sizes, seed, 1, dtype).to(device); };
        const auto zeros = [&](at::IntArrayRef sizes) { return at::zeros(sizes, at::TensorOptions(device)); };
        std::vector<AdapterView> adapters;
        for (const auto& [row, rows, scale] : {std::tuple(8, 16, 0.3), {24, 40, 2.0}})
          adapters.push_back({random({8, 64}, 5), random({rows, 8}, 6), zeros({8, 64}), zeros({rows, 8}), row, rows, scale, dropout,
                              static_cast<uint64_t>(row)});
        const LinearView view{random({72, 64}, 1), random({72}, 2), {}, {}, &adapters};
        const Tensor x = random({50, 64}, 3), dy = random({50, 72}, 4);
        const DropoutSeed seed = 7;
        const std::vector<Tensor> inner = inner_gradients(dy, view, seed);
        Results results = {adapted_linear(x, view, seed), linear_input_gradient(dy, view, seed, inner)};
        add_linear_gradients(dy, x, view, seed, inner);
        for (const AdapterView& adapter : adapters) results.push_back(adapter.a_gradient), results.push_back(adapter.b_gradient);
        return results;
      });
}

// Flash attention rounds probabilities, and in the backward their gradients, to bf16 on the way: two roundings more than ours.
TEST_F(OnTheGpu, AttentionEqualsThePlainFormulation) {
  const std::vector<int64_t> lengths = {1, 33, 129, 8};
  std::vector<std::vector<int32_t>> rows;
  for (const int64_t length : lengths) rows.emplace_back(static_cast<size_t>(length), 0);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t head_dim : {5, 16, 37, 64, 128, 200})
      for (const auto& [heads, kv_heads] : {std::pair(4, 4), std::pair(4, 2), std::pair(3, 1)})
        for (const int64_t window : {0, 1, 7, 100}) {
          SCOPED_TRACE(kedge::str(c10::toString(dtype), " ", heads, "/", kv_heads, " heads of ", head_dim, ", window ", window));
          const AttentionShape shape{heads, kv_heads, head_dim, window};
          const Tensor qkv = normals({171, (heads + 2 * kv_heads) * head_dim}, 1, 1, dtype),
                       dout = normals({171, heads * head_dim}, 2, 1, dtype);
          const PackedBatch batch = pack_rows(rows, gpu());
          const Attended found = attention(qkv.to(gpu()), batch, shape);
          const Tensor dqkv = attention_backward(dout.to(gpu()), qkv.to(gpu()), found, batch, shape);
          const Tensor qkv_leaf = testing::leaf(qkv);
          const Tensor wanted = testing::plain_attention(qkv_leaf, lengths, shape);
          backward((wanted * dout.to(at::kDouble)).sum());
          EXPECT_LT(relative_error(found.out, wanted), dtype == at::kFloat ? kFp32 : kBf16);
          EXPECT_LT(relative_error(dqkv, qkv_leaf.grad()), dtype == at::kFloat ? kFp32 : 2 * kBf16);
        }
}

// With the same rows that have a prompt each. An answer's output is joined from two roundings to bf16, and a gradient added from two.
TEST_F(OnTheGpu, AttentionToASharedPrompt) {
  const testing::SharedRows rows = testing::shared_rows({{63, {1, 2, 9}}, {64, {70, 8}}, {20, {5}}, {130, {17, 200, 64}}}, 31, gpu());
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t head_dim : {5, 16, 64, 128})
      for (const auto& [heads, kv_heads] : {std::pair(4, 4), std::pair(4, 2), std::pair(3, 1)})
        for (const int64_t window : {0, 100, 1000}) {  // inside a prompt, and longer than all rows
          SCOPED_TRACE(kedge::str(c10::toString(dtype), " ", heads, "/", kv_heads, " heads of ", head_dim, ", window ", window));
          const AttentionShape shape{heads, kv_heads, head_dim, window};
          const int64_t tokens = rows.shared.num_tokens();
          const Tensor qkv = normals({tokens, (heads + 2 * kv_heads) * head_dim}, 1, 1, dtype).to(gpu()),
                       dout = normals({tokens, heads * head_dim}, 2, 1, dtype).to(gpu());
          const Tensor apart = qkv.index_select(0, rows.places),
                       dapart = dout.index_select(0, rows.places).masked_fill(rows.is_copy.unsqueeze(1), 0);
          const Attended found = attention(qkv, rows.shared, shape), wanted = attention(apart, rows.apart, shape);
          EXPECT_LT(relative_error(found.out.index_select(0, rows.places), wanted.out), dtype == at::kFloat ? kFp32 : 2 * kBf16);
          const Tensor copies = attention_backward(dapart, apart, wanted, rows.apart, shape).to(at::kFloat);
          EXPECT_LT(relative_error(attention_backward(dout, qkv, found, rows.shared, shape),
                                   at::zeros({tokens, qkv.size(1)}, copies.options()).index_add(0, rows.places, copies)),
                    dtype == at::kFloat ? kFp32 : 4 * kBf16);
        }
}

// A whole model: log-probabilities and gradients of answers that share prompts, against rows of their own. bf16 as in Bf16ModelsAreClose.
TEST_F(OnTheGpu, SharedPromptsThroughWholeModels) {
  const testing::SharedRows rows = testing::shared_rows({{9, {4, 2, 7}}, {20, {3, 30}}, {5, {6}}, {1, {2, 2, 2, 2}}}, 31, gpu());
  for (const char* family : {testing::kTinyLlama, testing::kTinyMistral, testing::kTinyQwen3, testing::kTinyGpt2})
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
      for (const bool checkpoint : {false, true}) {
        SCOPED_TRACE(kedge::str(family, " ", c10::toString(dtype)));
        const auto look = [&](const PackedBatch& batch, const PredictedTokens& predicted) {
          const auto model = testing::tiny_model(family, {.dtype = dtype, .device = gpu(), .trainable = true});
          const Tensor logprobs = model_logprobs(*model, batch, predicted, {}, {.checkpoint = checkpoint, .dropout_seed = {}}).logprobs;
          backward((logprobs * normals(logprobs.sizes(), 7).to(gpu())).sum());
          return std::pair(logprobs.detach(), model->parameters().flat_gradient().clone());
        };
        const auto [apart, wanted] = look(rows.apart, rows.apart_predicted);
        const auto [shared, found] = look(rows.shared, rows.shared_predicted);
        EXPECT_LT((shared - apart).abs().max().item<double>(), dtype == at::kFloat ? 1e-4 : 0.1);
        EXPECT_LT((found - wanted).norm().item<double>() / wanted.norm().item<double>(), dtype == at::kFloat ? 1e-4 : 0.05);
      }
}

TEST_F(OnTheGpu, ARowsBitsDoNotDependOnTheRowsBeside) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t size : {37, 64, 3000}) {
      const auto run = [&](int64_t rows) -> Results {
        const auto random = [&](int64_t width, uint64_t seed) {
          return normals({200, width}, seed, 1, dtype).narrow(0, 0, rows).contiguous().to(gpu());
        };
        const Tensor x = random(size, 1), d = random(size, 2), ids = ids_below(size, 200, 3).narrow(0, 0, rows).contiguous().to(gpu());
        const NormWeights weights{
            normals({size}, 4, 1, dtype).to(gpu()), normals({size}, 5, 1, dtype).to(gpu()), {}, {}, NormKind::layer, 1e-5};
        const Normed normed = norm(x, weights);
        const GateGradient gradient = gate_backward(d, random(2 * size, 6), {});
        const LogitStats stats = logit_stats(x, ids, true);
        return {normed.out,
                norm_backward(d, x, normed, weights, d),
                gradient.out,
                gradient.gate_up,
                stats.logprob,
                stats.entropy,
                logit_gradient(x.clone(), ids, stats, stats.logprob, stats.entropy, dtype)};
      };
      const Results all = run(200);
      for (const int64_t rows : {1, 3, 150}) {
        const Results few = run(rows);
        for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(few[i], all[i].narrow(0, 0, rows))) << i << " of " << rows;
      }
    }
}

constexpr std::array kFamilies = {testing::kTinyLlama, testing::kTinyMistral, testing::kTinyQwen3, testing::kTinyGpt2};

TEST_F(OnTheGpu, WholeModelsAndTheirGradients) {
  for (const char* family : kFamilies)
    for (const bool checkpoint : {false, true})
      compare(1e-4, [&](at::Device device) -> Results {  // fp32 through two layers
        const auto model = testing::tiny_model(family, {.device = device, .trainable = true});
        const PackedBatch batch = testing::batch_of({13, 1, 20, 6}, device);
        const Tensor loss = testing::token_loss(*model, batch, {.checkpoint = checkpoint, .dropout_seed = {}});
        backward(loss);
        return {model_logits(*model, batch), loss.detach(), model->parameters().flat_gradient()};
      });
}

// Roundings to bf16 add up like noise along ten of them: see the decoder's own test.
TEST_F(OnTheGpu, Bf16ModelsAreClose) {
  for (const char* family : kFamilies) {
    const auto gradient = [&](at::Device device, at::ScalarType dtype) {
      const auto model = testing::tiny_model(family, {.dtype = dtype, .device = device, .trainable = true});
      backward(testing::token_loss(*model, testing::batch_of({13, 1, 20, 6}, device)));
      return model->parameters().flat_gradient().cpu();
    };
    const Tensor wanted = gradient(at::kCPU, at::kFloat), found = gradient(gpu(), at::kBFloat16);
    EXPECT_LT((found - wanted).norm().item<double>() / wanted.norm().item<double>(), 0.05) << family;
  }
}

// Matrix products may choose other kernels for other numbers of rows: the difference is told, and bounded by what rounding explains (bf16
// keeps 8 bits of states and logits of a few units).
TEST_F(OnTheGpu, ATokensLogprobHardlyDependsOnTheBatch) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    double worst = 0;
    for (const char* family : kFamilies) {
      const auto model = testing::tiny_model(family, {.dtype = dtype, .device = gpu()});
      worst = std::max(worst, testing::difference_to_rows_alone(*model, testing::rows_of({13, 1, 20, 6, 60})));
    }
    std::cout << name_of(dtype) << ": largest difference between log-probabilities alone and in a batch: " << worst << "\n";
    EXPECT_LT(worst, dtype == at::kFloat ? 1e-5 : 0.1);
  }
}

TEST_F(OnTheGpu, AdaptersWithDropout) {
  compare(1e-4, [](at::Device device) -> Results {
    const auto model = testing::tiny_model(testing::kTinyLlama, {.device = device});
    LoraConfig lora;
    lora.adapter_dim = 4;
    lora.adapter_dropout = 0.3;
    lora.target_modules = {"all"};
    model->add_adapters(lora, true);
    testing::scatter_weights(model->adapters()->parameters(), 50, 0.2);
    backward(testing::token_loss(*model, testing::batch_of({13, 6}, device), {.checkpoint = true, .dropout_seed = 5}));
    return {model->adapters()->parameters().flat_gradient()};
  });
}

TEST(WithoutAGpu, TheKernelsSayWhatToBuild) {
  if (num_cuda_devices() > 0) GTEST_SKIP() << "there is a CUDA device";
  const Tensor x = normals({2, 4}, 1);
  EXPECT_THROW(cuda::kernels.silu_gate(x, at::empty({2, 2})), std::exception);
}

}  // namespace
}  // namespace kedge
