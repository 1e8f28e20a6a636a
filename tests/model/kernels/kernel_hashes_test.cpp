// The bits of every CPU kernel, as hashes kept here: the same table holds for AVX-512, AVX2 and aarch64, with g++ and any number of
// threads. A change that means to change bits prints the new table with KEDGE_PRINT_KERNEL_HASHES=1; bench/aarch64_tests shows on x86_64
// that aarch64 agrees. CPUs without fused multiply-add, which no kernel is tuned for, are left out.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "kedge/core/bit_hash.h"
#include "kedge/engine/cpu_paged_attention.h"
#include "kedge/engine/sampling.h"
#include "kedge/model/kernels/cpu_activations.h"
#include "kedge/model/kernels/cpu_attention.h"
#include "kedge/model/kernels/cpu_kernels.h"
#include "kedge/model/kernels/cpu_linear.h"
#include "kedge/model/kernels/cpu_products.h"
#include "kedge/train/optim/adamw.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kBFloat16};

using testing::ids_below;
using testing::normals;

const std::map<std::string, std::string> kHashes = {
    // clang-format off
    {"linear, 1 rows", "ee074488efb5ade9"},
    {"gradient of x, 1 rows", "d3ca138e9e80ae52"},
    {"gradient of weights, 1 rows", "13d0681329230770"},
    {"linear, 7 rows", "00392ba6688f523a"},
    {"gradient of x, 7 rows", "a85380ec4d35e02c"},
    {"gradient of weights, 7 rows", "66eb73045c998fc3"},
    {"linear, 300 rows", "da829a62f87a792d"},
    {"gradient of x, 300 rows", "d527a8c3c90a3b39"},
    {"gradient of weights, 300 rows", "13a1a460068540f9"},
    {"rms norm", "a502dd02b098d0dc"},
    {"rms norm backward", "f01c5371b09bc937"},
    {"layer norm", "7d25e8bc3c1f253a"},
    {"layer norm backward", "2348a7a5b983ff8c"},
    {"layer norm bias", "5657ef22637d21a7"},
    {"rms norm, bf16", "3edab6247bdb154f"},
    {"rms norm backward, bf16", "5b3fbcc9dfa67bdd"},
    {"layer norm, bf16", "8c79be6badcbfc73"},
    {"layer norm backward, bf16", "89f7e698e8f036c1"},
    {"layer norm bias, bf16", "615056bf6bd7bd7f"},
    {"gate", "418290da360538a0"},
    {"gate backward", "6c68ed9b5728737b"},
    {"gate, bf16", "5792f98cdd1c4d47"},
    {"gate backward, bf16", "82596bfcf788823b"},
    {"gelu", "e9bcbd2802003614"},
    {"gelu tanh", "739f790a3f244b4e"},
    {"relu", "b70ba8376119da4e"},
    {"relu2", "728990cee1db71fc"},
    {"silu", "bbf0166547692f2b"},
    {"gelu, bf16", "e68d11cb864bb1ad"},
    {"gelu tanh, bf16", "cdead5c6f3932bed"},
    {"relu, bf16", "dc86d7d2aac01902"},
    {"relu2, bf16", "f3c2ca5ac41194fb"},
    {"silu, bf16", "fc0f54c9b9a157d2"},
    {"rotation", "d415476e31b714b2"},
    {"rotation backwards", "8652ce0d6238b806"},
    {"rotation, bf16", "1e8dde08cf55450f"},
    {"rotation backwards, bf16", "dc36d9bcd1299b64"},
    {"rows added to a table", "8ba1fde7fc96462b"},
    {"sum of rows", "97b87df915c9cd58"},
    {"rows added to a table, bf16", "4360b9b14209dce6"},
    {"sum of rows, bf16", "36a2612b8e9ea83c"},
    {"log-probs, 13 tokens", "59126daa96526439"},
    {"gradient of logits, 13 tokens", "6436a4bd70aeb223"},
    {"log-probs, 2049 tokens", "87a0358f954f0a79"},
    {"gradient of logits, 2049 tokens", "7a11f0a0eb14cca8"},
    {"log-probs, 13 tokens, bf16", "df1c7c9068697540"},
    {"gradient of logits, 13 tokens, bf16", "eed94019642a06d0"},
    {"log-probs, 2049 tokens, bf16", "6debfb1a385b33b1"},
    {"gradient of logits, 2049 tokens, bf16", "71d243535c781c3b"},
    {"attention, heads of 16", "acdae20531322f11"},
    {"attention backward, heads of 16", "9c2a3b5f1f73fae2"},
    {"attention, heads of 64", "7133c6a7471c42a8"},
    {"attention backward, heads of 64", "5e4d565f5c5cdfa4"},
    {"attention, heads of 23", "520ec5ea0e5937ae"},
    {"attention backward, heads of 23", "3aa766e82f8aa464"},
    {"attention, heads of 16, bf16", "b5d1f986af4a9c8d"},
    {"attention backward, heads of 16, bf16", "4c294b99d88ed5e9"},
    {"attention, heads of 64, bf16", "e191d93b81867bc2"},
    {"attention backward, heads of 64, bf16", "5d38ae075ff6bfdb"},
    {"attention, heads of 23, bf16", "ee8aecea932f023a"},
    {"attention backward, heads of 23, bf16", "2b74a69ac2fdb935"},
    {"paged attention, heads of 16", "d46d9ded916cec11"},
    {"paged attention, heads of 64", "0e326576e752ea71"},
    {"paged attention, heads of 23", "067549b41a45b1f0"},
    {"paged attention, heads of 16, bf16", "42972727644efade"},
    {"paged attention, heads of 64, bf16", "5337662454f9b8ca"},
    {"paged attention, heads of 23, bf16", "d97dec57f4be5c62"},
    {"sampling, all rules", "3d2145fb87e2975d"},
    {"sampling, greedy", "3eecb22f2481596a"},
    {"sampling, plain", "52f269345eab572c"},
    {"sampling, tempered", "4b1aeafd22dc52b1"},
    {"sampling, top p", "94984611ca66b9db"},
    {"AdamW", "59f0e70cd2df9244"},
    {"AdamW, bf16", "84c37af5e0b2ad6d"},
    // clang-format on
};

std::string hash_of(std::initializer_list<Tensor> tensors) {
  std::string bytes;
  for (const Tensor& tensor : tensors) bytes.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  return bit_hash(bytes);
}

// Compares, or prints where asked to.
void expect_bits(const std::string& name, std::initializer_list<Tensor> tensors) {
  const std::string found = hash_of(tensors);
  if (std::getenv("KEDGE_PRINT_KERNEL_HASHES") != nullptr) {
    std::cout << "    {\"" << name << "\", \"" << found << "\"},\n";
    return;
  }
  const auto known = kHashes.find(name);
  EXPECT_EQ(found, known == kHashes.end() ? "none in the table" : known->second) << name;
}

std::string name_of(const std::string& kernel, at::ScalarType dtype) { return kernel + (dtype == at::kFloat ? "" : ", bf16"); }

class KernelHashes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cpu::vector_units().size() == 1) GTEST_SKIP() << "this CPU has no fused multiply-add";
  }
};

constexpr at::ScalarType kHashedTypes[] = {at::kFloat, at::kBFloat16};

TEST_F(KernelHashes, OfProducts) {
  for (const auto& [rows, in, num_out] : std::vector<std::array<int64_t, 3>>{{1, 37, 19}, {7, 130, 65}, {300, 515, 97}}) {
    const Tensor x = normals({rows, in}, 1), weight = normals({num_out, in}, 2), bias = normals({num_out}, 3),
                 dy = normals({rows, num_out}, 4);
    const Tensor y = normals({rows, num_out}, 5), dx = at::zeros_like(x), gradient = normals({num_out, in}, 6);
    cpu::linear(x, weight, y, {bias, y});
    cpu::multiply(dy, weight, dx);
    cpu::add_weight_gradient(gradient, dy, x);
    const std::string shape = std::to_string(rows) + " rows";
    expect_bits("linear, " + shape, {y});
    expect_bits("gradient of x, " + shape, {dx});
    expect_bits("gradient of weights, " + shape, {gradient});
  }
}

TEST_F(KernelHashes, OfNorms) {
  for (const at::ScalarType dtype : kHashedTypes)
    for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
      constexpr int64_t kNumRows = 300, kSize = 77;
      const Tensor x = normals({kNumRows, kSize}, 1, 1, dtype), dout = normals({kNumRows, kSize}, 2, 1, dtype);
      NormWeights weights{normals({kSize}, 3, 1, dtype), {}, at::zeros({kSize}, at::kFloat), {}, kind, 1e-5};
      if (kind == NormKind::layer) weights.bias = normals({kSize}, 4, 1, dtype), weights.bias_gradient = at::zeros({kSize}, at::kFloat);
      Normed saved;
      cpu::kernels.norm(x, weights, saved);
      const Tensor dx = at::zeros_like(x), dx_beside = at::zeros_like(x);
      cpu::kernels.norm_backward(dout, x, saved, weights, {}, dx);
      cpu::kernels.norm_backward(dout, x, saved, weights, x, dx_beside);
      const std::string name = kind == NormKind::rms ? "rms norm" : "layer norm";
      expect_bits(name_of(name, dtype), {saved.out, saved.rstd});
      expect_bits(name_of(name + " backward", dtype), {dx, dx_beside, weights.weight_gradient});
      if (kind == NormKind::layer) expect_bits(name_of(name + " bias", dtype), {saved.mean, weights.bias_gradient});
    }
}

TEST_F(KernelHashes, OfGates) {
  for (const at::ScalarType dtype : kHashedTypes) {
    const Tensor gate_up = normals({9, 2 * 83}, 1, 4, dtype), dout = normals({9, 83}, 2, 1, dtype);
    const Tensor out = at::zeros_like(dout), again = at::zeros_like(dout), dgate_up = at::zeros_like(gate_up);
    cpu::kernels.silu_gate(gate_up, out);
    cpu::kernels.silu_gate_backward(dout, gate_up, dgate_up, again);
    expect_bits(name_of("gate", dtype), {out});
    expect_bits(name_of("gate backward", dtype), {dgate_up, again});
  }
}

TEST_F(KernelHashes, OfActivations) {
  const std::map<std::string, Activation> all = {{"silu", Activation::silu},
                                                 {"gelu", Activation::gelu},
                                                 {"gelu tanh", Activation::gelu_tanh},
                                                 {"relu", Activation::relu},
                                                 {"relu2", Activation::relu2}};
  for (const at::ScalarType dtype : kDtypes)
    for (const auto& [name, activation] : all) {
      const Tensor x = normals({1003}, 1, 3, dtype), dout = normals({1003}, 2, 1, dtype), out = at::zeros_like(x), dx = at::zeros_like(x);
      cpu::activate(x, activation, out);
      cpu::activate_backward(dout, x, activation, dx);
      expect_bits(name_of(name, dtype), {out, dx});
    }
}

TEST_F(KernelHashes, OfRotations) {
  for (const at::ScalarType dtype : kHashedTypes)
    for (const bool backwards : {false, true}) {
      const Tensor x = normals({11, 6 * 24}, 1, 1, dtype);
      cpu::kernels.rotate(x, {normals({11, 9}, 2), normals({11, 9}, 3), 4, 24, 18}, backwards);
      expect_bits(name_of(backwards ? "rotation backwards" : "rotation", dtype), {x});
    }
}

TEST_F(KernelHashes, OfRowSums) {
  for (const at::ScalarType dtype : kHashedTypes) {
    const Tensor rows = normals({700, 71}, 1, 1, dtype), table = normals({20, 71}, 2), sums = normals({71}, 3);
    cpu::add_rows(table, ids_below(20, 700, 4), rows);
    cpu::add_row_sums(sums, rows);
    expect_bits(name_of("rows added to a table", dtype), {table});
    expect_bits(name_of("sum of rows", dtype), {sums});
  }
}

TEST_F(KernelHashes, OfLogits) {
  for (const at::ScalarType dtype : kHashedTypes)
    for (const int64_t vocab_size : {13, 2049}) {
      const Tensor logits = normals({10, vocab_size}, 1, 4, dtype), targets = ids_below(vocab_size, 10, 2);
      const auto floats = at::TensorOptions(at::kFloat);
      LogitStats stats{at::empty({10}, floats), at::empty({10}, floats), at::empty({10}, floats)};
      cpu::kernels.logit_stats(logits, targets, stats);
      const Tensor first = logits.clone();
      cpu::logit_gradient_(first, targets, stats, normals({10}, 3), {});
      cpu::logit_gradient_(logits, targets, stats, normals({10}, 3), normals({10}, 4));
      const std::string size = ", " + std::to_string(vocab_size) + " tokens";
      expect_bits(name_of("log-probs" + size, dtype), {stats.logprob, stats.log_sum, stats.entropy});
      expect_bits(name_of("gradient of logits" + size, dtype), {first, logits});
    }
}

constexpr int64_t kHashedTokens = 150;

// Rows of 1, 79 and 70 tokens.
PackedBatch hashed_batch() {
  PackedBatch batch;
  batch.ids = at::zeros({kHashedTokens}, at::kLong);
  batch.lengths = {1, 79, 70};
  batch.max_length = 79;
  return batch;
}

TEST_F(KernelHashes, OfAttention) {
  for (const at::ScalarType dtype : kHashedTypes)
    for (const auto& [head_dim, window] : std::vector<std::pair<int64_t, int64_t>>{{16, 0}, {64, 33}, {23, 0}}) {
      const AttentionShape shape{6, 2, head_dim, window};
      const Tensor qkv = normals({kHashedTokens, 10 * head_dim}, 1, 2, dtype), dout = normals({kHashedTokens, 6 * head_dim}, 2, 1, dtype);
      const Attended attended = cpu::attention(qkv, hashed_batch(), shape);
      const std::string size = ", heads of " + std::to_string(head_dim);
      expect_bits(name_of("attention" + size, dtype), {attended.out, attended.log_sum});
      expect_bits(name_of("attention backward" + size, dtype), {cpu::attention_backward(dout, qkv, attended, hashed_batch(), shape)});
    }
}

// The row of 79 tokens again: its bits are those of training.
TEST_F(KernelHashes, OfPagedAttention) {
  for (const at::ScalarType dtype : kHashedTypes)
    for (const auto& [head_dim, window] : std::vector<std::pair<int64_t, int64_t>>{{16, 0}, {64, 33}, {23, 0}}) {
      const AttentionShape shape{6, 2, head_dim, window};
      const Tensor all = normals({kHashedTokens, 10 * head_dim}, 1, 2, dtype), qkv = all.narrow(0, 1, 79).contiguous();
      const Tensor keys = at::zeros({3, 2, head_dim, 64}, qkv.options()), values = at::zeros({3, 2, 64, head_dim}, qkv.options());
      const std::vector<BlockId> blocks = {2, 0};
      std::vector<cpu::PagedQuery> queries;
      for (int64_t position = 0; position < 79; ++position) queries.push_back({blocks.data(), position});
      const Tensor out = at::zeros({79, 6 * head_dim}, qkv.options());
      cpu::write_key_values(qkv, shape, queries, keys, values);
      cpu::paged_attention(qkv, shape, queries, keys, values, out);
      expect_bits(name_of("paged attention, heads of " + std::to_string(head_dim), dtype), {out});
      EXPECT_TRUE(testing::same_bits(out, cpu::attention(all, hashed_batch(), shape).out.narrow(0, 1, 79)));
    }
}

TEST_F(KernelHashes, OfSampling) {
  SamplingScratch scratch;
  const std::map<std::string, SamplingConfig> configs = {
      {"plain", {}},
      {"greedy", {.use_greedy = true}},
      {"tempered", {.temperature = 0.7}},
      {"top p", {.top_p = 0.9}},
      {"all rules", {.temperature = 1.3, .top_k = 50, .top_p = 0.8, .repetition_penalty = 1.2}}};
  for (const auto& [name, config] : configs) {
    constexpr int64_t kNumRows = 64, kVocab = 517;
    const Tensor logits = normals({kNumRows, kVocab}, 1, 3), tokens = at::zeros({kNumRows}, at::kLong),
                 logprobs = at::zeros({kNumRows}, at::kFloat);
    const std::vector<int32_t> used = {1, 5, 5, 100};
    for (int64_t row = 0; row < kNumRows; ++row) {
      const std::span<const float> one(logits.const_data_ptr<float>() + row * kVocab, kVocab);
      const auto drawn = draw_token(one, config, {.used = used, .uniform = (static_cast<double>(row) + 0.5) / kNumRows}, scratch);
      ASSERT_TRUE(drawn.has_value());
      tokens.mutable_data_ptr<int64_t>()[row] = drawn->token;
      logprobs.mutable_data_ptr<float>()[row] = drawn->logprob;
    }
    expect_bits("sampling, " + name, {tokens, logprobs});
  }
}

TEST_F(KernelHashes, OfAdamW) {
  for (const at::ScalarType dtype : kHashedTypes) {
    const Tensor master = normals({1003}, 1), published = master.to(at::kBFloat16), first = at::zeros({1003}, dtype),
                 second = first.clone();
    for (int64_t step = 1; step <= 3; ++step)
      adamw_update({master, normals({1003}, static_cast<uint64_t>(10 + step)), first, second, published},
                   {.lr = 1e-3, .weight_decay = 0.1, .step = step, .grad_scale = 0.7});
    expect_bits(name_of("AdamW", dtype), {master, first, second, published});
  }
}

}  // namespace
}  // namespace kedge
