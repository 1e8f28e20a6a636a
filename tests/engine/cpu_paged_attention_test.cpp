#include "kedge/engine/cpu_paged_attention.h"

#include <gtest/gtest.h>

#include <limits>

#include <ATen/Parallel.h>

#include "kedge/core/error.h"
#include "kedge/model/kernels/cpu_attention.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;
using testing::same_bits;

// A row's keys and values scattered over more memory than they need, all of which is NaN at first.
class Memory {
 public:
  Memory(const AttentionShape& shape, at::ScalarType dtype, uint64_t seed)
      : shape_(shape),
        keys_(at::full({kBlocks, shape.num_kv_heads, shape.head_dim, cpu::kPagedBlock}, kNan, dtype)),
        values_(at::full({kBlocks, shape.num_kv_heads, cpu::kPagedBlock, shape.head_dim}, kNan, dtype)) {
    for (uint64_t i = 0; i < 5; ++i) blocks_.push_back(static_cast<BlockId>((seed * 5 + i * 7) % kBlocks));
  }

  // Tokens of qkv from a position on, all in one call; their outputs.
  [[nodiscard]] Tensor compute(const Tensor& qkv, int64_t position) const {
    std::vector<cpu::PagedQuery> queries;
    for (int64_t i = 0; i < qkv.size(0); ++i) queries.push_back({blocks_.data(), position + i});
    return compute_queries(qkv, queries);
  }
  [[nodiscard]] Tensor compute_queries(const Tensor& qkv, const std::vector<cpu::PagedQuery>& queries) const {
    Tensor out = at::empty({qkv.size(0), shape_.num_heads * shape_.head_dim}, qkv.options());
    cpu::write_key_values(qkv, shape_, queries, keys_, values_);
    cpu::paged_attention(qkv, shape_, queries, keys_, values_, out);
    return out;
  }

  static constexpr int64_t kBlocks = 23;

 private:
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  AttentionShape shape_;
  Tensor keys_, values_;
  std::vector<BlockId> blocks_;
};

Tensor trained(const Tensor& qkv, const AttentionShape& shape) {
  const std::vector<std::vector<int32_t>> rows = {std::vector<int32_t>(static_cast<size_t>(qkv.size(0)), 0)};
  return cpu::attention(qkv, pack_rows(rows, at::kCPU), shape).out;
}

Tensor qkv_of(const AttentionShape& shape, int64_t length, uint64_t seed, at::ScalarType dtype) {
  return normals({length, (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim}, seed, 1, dtype);
}

std::vector<AttentionShape> shapes() {
  std::vector<AttentionShape> found;
  for (const int64_t head_dim : {5, 8, 12, 16, 64, 96, 128})
    for (const int64_t group : {1, 2, 3, 4, 8}) found.push_back({2 * group, 2, head_dim, 0});
  for (const int64_t window : {1, 7, 64, 65, 100}) found.push_back({4, 2, 16, window});
  found.push_back({15, 1, 12, 33});
  return found;
}

std::string name_of(const AttentionShape& shape, at::ScalarType dtype) {
  return kedge::str(shape.num_heads, " heads of ", shape.head_dim, ", window ", shape.window, ", ", c10::toString(dtype));
}

// Token by token, as decoding does it, every position of a row.
TEST(CpuPagedAttention, EveryTokenGetsTheBitsOfTraining) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const AttentionShape& shape : shapes()) {
      const Tensor qkv = qkv_of(shape, 200, 1, dtype);
      const Memory memory(shape, dtype, 1);
      std::vector<Tensor> found;
      for (int64_t i = 0; i < qkv.size(0); ++i) found.push_back(memory.compute(qkv.narrow(0, i, 1), i));
      EXPECT_TRUE(same_bits(at::cat(found), trained(qkv, shape))) << name_of(shape, dtype);
    }
}

// A prompt's pieces: all tokens of a piece are written before the first of them looks.
TEST(CpuPagedAttention, PiecesOfAPromptGetTheBitsOfTraining) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const AttentionShape& shape : shapes()) {
      const Tensor qkv = qkv_of(shape, 200, 2, dtype);
      const Memory memory(shape, dtype, 2);
      std::vector<Tensor> found;
      for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {3, 70}, {70, 71}, {71, 200}})
        found.push_back(memory.compute(qkv.narrow(0, begin, end - begin), begin));
      EXPECT_TRUE(same_bits(at::cat(found), trained(qkv, shape))) << name_of(shape, dtype);
    }
}

// Scores far apart make the softmax's maximum jump from block to block, and weights vanish.
TEST(CpuPagedAttention, LargeScoresGetTheBitsOfTraining) {
  const AttentionShape shape{6, 2, 64, 0};
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Tensor qkv = qkv_of(shape, 200, 3, dtype) * 6;
    const Memory memory(shape, dtype, 3);
    EXPECT_TRUE(same_bits(memory.compute(qkv, 0), trained(qkv, shape)));
  }
}

// Rows of different lengths in one call, on any number of threads.
TEST(CpuPagedAttention, NeitherNeighboursNorThreadsChangeABit) {
  const AttentionShape shape{6, 3, 16, 0};
  const std::vector<int64_t> lengths = {1, 64, 150, 65, 9};
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 5}) {
    at::set_num_threads(threads);
    const Memory memory(shape, at::kFloat, 4);
    std::vector<BlockId> ids(20);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<BlockId>(ids.size() - i);
    std::vector<cpu::PagedQuery> last;
    std::vector<Tensor> newest, wanted;
    for (size_t row = 0; row < lengths.size(); ++row) {
      const Tensor qkv = qkv_of(shape, lengths[row], 10 + row, at::kFloat);
      std::vector<cpu::PagedQuery> all;
      for (int64_t i = 0; i < lengths[row]; ++i) all.push_back({ids.data() + 4 * row, i});
      (void)memory.compute_queries(qkv, all);
      last.push_back(all.back());
      newest.push_back(qkv.narrow(0, lengths[row] - 1, 1));
      wanted.push_back(trained(qkv, shape).narrow(0, lengths[row] - 1, 1));
    }
    EXPECT_TRUE(same_bits(memory.compute_queries(at::cat(newest), last), at::cat(wanted))) << threads << " threads";
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace kedge
