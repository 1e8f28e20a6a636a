// Paged attention on a GPU beside whole rows on the CPU. Skipped where there is none.
#include "kedge/engine/cuda_decode.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kedge/core/device.h"
#include "kedge/engine/kv_memory.h"
#include "kedge/model/kernels/rope_cache.h"

#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::normals;
using testing::relative_error;

struct Case {
  int64_t heads, kv_heads, dim;
  at::ScalarType dtype;
  int64_t window = 0, splits = 1;
  bool normed = false;
};

// Every token of two rows, as if each were decoded; blocks lie anywhere, and what is not used is no number.
void compare(const Case& c) {
  const at::Device gpu(at::kCUDA, 0);
  const AttentionShape shape{c.heads, c.kv_heads, c.dim, c.window};
  const std::vector<int64_t> lengths = {130, 33};
  const PackedBatch batch = testing::batch_of(lengths);
  const int64_t tokens = batch.num_tokens(), width = 4, kv = c.kv_heads * c.dim;
  const Tensor qkv = normals({tokens, (c.heads + 2 * c.kv_heads) * c.dim}, 3, 1, c.dtype);
  LayerView layer;
  layer.shape = shape;
  if (c.normed) {
    layer.q_norm = {normals({c.dim}, 5, 1, c.dtype), {}, {}, {}, NormKind::rms, 1e-6};
    layer.k_norm = {normals({c.dim}, 6, 1, c.dtype), {}, {}, {}, NormKind::rms, 1e-6};
  }
  ModelConfig config;
  config.num_heads = c.heads, config.num_kv_heads = c.kv_heads, config.head_dim = c.dim;
  config.rope.dim = c.dim / 2 / 2 * 2;  // a part of the channels only
  RotaryTable on_cpu(config, at::kCPU), on_gpu(config, gpu);

  Tensor plain = qkv.clone();
  if (c.normed) {
    const auto norm_part = [&](int64_t from, int64_t heads, const NormWeights& weights) {
      const Tensor part = plain.narrow(1, from, heads * c.dim);
      part.copy_(norm(part.reshape({-1, c.dim}).contiguous(), weights).out.view({tokens, -1}));
    };
    norm_part(0, c.heads, layer.q_norm);
    norm_part(c.heads * c.dim, c.kv_heads, layer.k_norm);
  }
  rotate_(plain, on_cpu.rotation(batch), false);
  const Tensor wanted = attention(plain, batch, shape).out;

  for (NormWeights* weights : {&layer.q_norm, &layer.k_norm})
    if (weights->weight.defined()) weights->weight = weights->weight.to(gpu);
  const auto empty = [&] { return at::full({6, c.kv_heads, kPagedBlock, c.dim}, std::nan(""), at::TensorOptions(gpu).dtype(c.dtype)); };
  const LayerMemory memory{empty(), empty()};
  const std::vector<std::vector<int32_t>> blocks = {{4, 0, 3}, {5}};
  std::vector<int32_t> positions, slots, tables;
  for (size_t row = 0; row < lengths.size(); ++row)
    for (int32_t i = 0; i < lengths[row]; ++i) {
      positions.push_back(i);
      slots.push_back(blocks[row][static_cast<size_t>(i / kPagedBlock)] * static_cast<int32_t>(kPagedBlock) +
                      i % static_cast<int32_t>(kPagedBlock));
      for (size_t b = 0; b < static_cast<size_t>(width); ++b) tables.push_back(b < blocks[row].size() ? blocks[row][b] : -1);
    }
  const auto upload = [&](const std::vector<int32_t>& numbers) { return at::tensor(numbers, at::kInt).to(gpu); };
  PagedTokens paged;
  paged.num_paged = tokens;
  paged.num_splits = c.splits;
  paged.positions = upload(positions), paged.slots = upload(slots), paged.tables = upload(tables).view({tokens, width});
  paged.rotation = on_gpu.table(256);
  const Tensor here = qkv.to(gpu), out = at::empty({tokens, c.heads * c.dim}, here.options());
  cuda::turn_and_store(here, layer, paged, memory);
  cuda::paged_attention(here, shape, paged, memory, out);
  // In bf16 the weights of the values are rounded to 8 bits too, each by itself; the CPU keeps them in fp32.
  const double limit = c.dtype == at::kFloat ? 1e-5 : 0x1p-6;
  EXPECT_LT(relative_error(here.narrow(1, 0, c.heads * c.dim + kv), plain.narrow(1, 0, c.heads * c.dim + kv)), limit);
  EXPECT_LT(relative_error(out, wanted), limit)
      << c.heads << "/" << c.kv_heads << " x " << c.dim << " window " << c.window << " splits " << c.splits;
  if (!cuda::can_turn_and_attend(here, shape)) return;

  // One token decoded by one kernel, with its key and value forgotten before: everything has the same bits. From here and there in the
  // rows: at the edges of blocks and of chunks, and at their ends.
  const auto bits = [](const Tensor& numbers) { return numbers.contiguous().view(at::kShort); };
  for (const int64_t token : {0, 31, 32, 63, 64, 129, 130, 162}) {
    const int64_t slot = slots[static_cast<size_t>(token)], block = slot / kPagedBlock, offset = slot % kPagedBlock;
    const LayerMemory other{memory.keys.clone(), memory.values.clone()};
    other.keys.select(0, block).select(1, offset).fill_(std::nan(""));
    other.values.select(0, block).select(1, offset).fill_(std::nan(""));
    PagedTokens one = paged;
    one.num_paged = 1;
    one.positions = paged.positions.narrow(0, token, 1), one.slots = paged.slots.narrow(0, token, 1);
    one.tables = paged.tables.narrow(0, token, 1);
    const Tensor raw = qkv.narrow(0, token, 1).to(gpu), found = at::empty({1, c.heads * c.dim}, raw.options());
    cuda::turn_and_attend(raw, layer, one, other, found);
    EXPECT_TRUE(at::equal(bits(found), bits(out.narrow(0, token, 1)))) << "token " << token;
    EXPECT_TRUE(at::equal(bits(other.keys), bits(memory.keys)) && at::equal(bits(other.values), bits(memory.values))) << "token " << token;
  }
}

TEST(PagedOnTheGpu, AttentionIsThatOfWholeRows) {
  if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t dim : {8, 16, 20, 32, 64, 80, 96, 128, 256})
      for (const int64_t window : {0, 1, 40})
        for (const int64_t splits : {1, 3})
          for (const auto& [heads, kv_heads] : {std::pair{4, 4}, {8, 8}, {8, 2}, {9, 3}, {16, 1}, {32, 1}})
            compare({heads, kv_heads, dim, dtype, window, splits, dim % 3 == 2});
}

TEST(PagedWithoutAGpu, TheStubSaysWhatToBuild) {
  if (num_cuda_devices() > 0) GTEST_SKIP() << "there is a CUDA device";
  const Tensor qkv = normals({1, 24}, 1);
  LayerView layer;
  layer.shape = {1, 1, 8, 0};
  EXPECT_THROW(cuda::turn_and_store(qkv, layer, {}, {}), std::exception);
}

}  // namespace
}  // namespace kedge
