#include "kedge/engine/cuda_paged_kernel.cuh"

namespace kedge::cuda {
namespace {

constexpr int kTurnWarps = 8;

// A group of threads takes a token and kTurnWarps of its heads, a warp each.
template <typename T, int Parts>
__global__ void turn_and_store_kernel(const TurnLaunch l) {
  __shared__ alignas(16) float shared[kTurnWarps][kMostDim];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int total = l.count.heads + 2 * l.count.kv_heads;
  const int64_t token = blockIdx.x;
  const int head = static_cast<int>(blockIdx.y) * kTurnWarps + warp;
  if (head >= total) return;
  T* x = static_cast<T*>(l.qkv) + (token * total + head) * l.count.dim;
  const int64_t slot = l.slots[token];
  const int kv_head = head - l.count.heads;
  if (kv_head >= l.count.kv_heads) {
    T* to = place_of<T>(l, l.values, slot, kv_head - l.count.kv_heads);
    for (int d = lane; d < l.count.dim; d += kWarp) to[d] = x[d];
    return;
  }
  const void* norm = kv_head < 0 ? l.q_norm : l.k_norm;
  RawHead<T, Parts> raw;
  raw.load(x, norm, l.count.dim, lane);
  Angles<Parts> angles;
  angles.load(l, l.positions[token], lane);
  T turned[Parts];
  turn_head(l, l.count.dim, raw, norm != nullptr, angles, shared[warp], lane, turned);
  store_channels<Parts>(x, l.count.dim, lane, turned);
  if (kv_head >= 0) store_channels<Parts>(place_of<T>(l, l.keys, slot, kv_head), l.count.dim, lane, turned);
}

// The parts of one head of one token together.
__global__ void join_parts_kernel(const PagedLaunch l) {
  const int64_t head = blockIdx.x;
  const float* log_sum = l.part_log_sum + head * l.num_splits;
  float most = kNothingYet, total = 0;
  for (int s = 0; s < l.num_splits; ++s) most = fmaxf(most, log_sum[s]);
  for (int s = 0; s < l.num_splits; ++s) total += exp2f(log_sum[s] - most);
  for (int d = static_cast<int>(threadIdx.x); d < l.count.dim; d += static_cast<int>(blockDim.x)) {
    float value = 0;
    for (int s = 0; s < l.num_splits; ++s) value += exp2f(log_sum[s] - most) * l.part[(head * l.num_splits + s) * l.count.dim + d];
    static_cast<Bf16*>(l.out)[head * l.count.dim + d] = __float2bfloat16(value / total);
  }
}

constexpr int kPlainWarps = 4;

__device__ inline float warp_max(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, offset));
  return x;
}

// Any head size and type: a warp takes one query head of one token.
template <typename T>
__global__ void plain_paged_kernel(const PagedLaunch l) {
  __shared__ float shared_query[kPlainWarps][kMostDim], shared_weight[kPlainWarps][kBlock];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp, dim = l.count.dim;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * kPlainWarps + warp;
  if (task >= l.tokens * l.count.heads) return;
  const int64_t token = task / l.count.heads;
  const int head = static_cast<int>(task % l.count.heads), kv_head = head / (l.count.heads / l.count.kv_heads);
  const T* query = static_cast<const T*>(l.qkv) + (token * (l.count.heads + 2 * l.count.kv_heads) + head) * dim;
  float *q = shared_query[warp], *weight = shared_weight[warp];
  for (int d = lane; d < dim; d += kWarp) q[d] = widen(query[d]) * l.scale * kLog2E;
  __syncwarp();
  const int length = l.positions[token] + 1, first = l.window > 0 ? max(0, length - l.window) : 0;
  float most = kNothingYet, sum = 0, out[kMostDim / kWarp] = {};
  for (int block = first / kBlock; block * kBlock < length; ++block) {
    const int64_t base = (static_cast<int64_t>(l.tables[token * l.width + block]) * l.count.kv_heads + kv_head) * kBlock * dim;
    const T *keys = static_cast<const T*>(l.keys) + base, *values = static_cast<const T*>(l.values) + base;
    const int from = max(0, first - block * kBlock), to = min(kBlock, length - block * kBlock);
    float score[2], now = most;
    for (int half = 0; half < 2; ++half) {
      const int j = lane + half * kWarp;
      score[half] = kNothingYet;
      if (j >= from && j < to) {
        score[half] = 0;
        for (int d = 0; d < dim; ++d) score[half] += q[d] * widen(keys[j * dim + d]);
      }
      now = fmaxf(now, score[half]);
    }
    now = warp_max(now);
    const float kept = exp2f(most - now);
    most = now;
    float total = 0;
    for (int half = 0; half < 2; ++half) {
      const float power = exp2f(score[half] - now);
      weight[lane + half * kWarp] = power;
      total += power;
    }
    sum = sum * kept + warp_sum(total);
    __syncwarp();
    for (int i = 0; i * kWarp + lane < dim; ++i) {
      float mixed = out[i] * kept;
      for (int j = from; j < to; ++j) mixed += weight[j] * widen(values[j * dim + i * kWarp + lane]);
      out[i] = mixed;
    }
    __syncwarp();
  }
  T* to = static_cast<T*>(l.out) + task * dim;
  for (int i = 0; i * kWarp + lane < dim; ++i) store(to[i * kWarp + lane], out[i] / sum);
}

constexpr int kPlainShared = 40 << 10;  // a group has more only if it asks; the turned heads are beside it

template <int Dim>
void launch_sized(const PagedLaunch& l, cudaStream_t stream) {
  const int parts = (l.count.heads / l.count.kv_heads + kHeads - 1) / kHeads;
  const dim3 grid(static_cast<unsigned>(l.tokens), static_cast<unsigned>(l.count.kv_heads * parts), static_cast<unsigned>(l.num_splits));
  constexpr auto kBytes = static_cast<int>(sizeof(GroupMemory<Dim>));
  const auto kernel = l.turns ? paged_attention_kernel<Dim, true> : paged_attention_kernel<Dim, false>;
  if (kBytes > kPlainShared) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  kernel<<<grid, kPagedWarps * kWarp, kBytes, stream>>>(l);
}

unsigned groups_of(int64_t tasks, int each) { return static_cast<unsigned>((tasks + each - 1) / each); }

}  // namespace

void launch_turn_and_store(const TurnLaunch& l, cudaStream_t stream) {
  const dim3 groups(static_cast<unsigned>(l.tokens), groups_of(l.count.heads + 2 * l.count.kv_heads, kTurnWarps));
  const auto launch = [&](auto type) {
    using T = decltype(type);
    const auto kernel = l.count.dim <= 32    ? turn_and_store_kernel<T, 1>
                        : l.count.dim <= 64  ? turn_and_store_kernel<T, 2>
                        : l.count.dim <= 96  ? turn_and_store_kernel<T, 3>
                        : l.count.dim <= 128 ? turn_and_store_kernel<T, 4>
                                             : turn_and_store_kernel<T, kMostDim / kWarp>;
    kernel<<<groups, kTurnWarps * kWarp, 0, stream>>>(l);
  };
  l.bf16 ? launch(Bf16{}) : launch(float{});
}

bool is_fast_paged_attention(bool bf16, const HeadCounts& count) {
  return bf16 && (count.dim == 64 || count.dim == 96 || count.dim == 128);
}

void launch_paged_attention(const PagedLaunch& l, cudaStream_t stream) {
  if (!is_fast_paged_attention(l.bf16, l.count)) {
    const unsigned groups = groups_of(l.tokens * l.count.heads, kPlainWarps);
    l.bf16 ? plain_paged_kernel<Bf16><<<groups, kPlainWarps * kWarp, 0, stream>>>(l)
           : plain_paged_kernel<float><<<groups, kPlainWarps * kWarp, 0, stream>>>(l);
    return;
  }
  if (l.count.dim == 64) launch_sized<64>(l, stream);
  if (l.count.dim == 96) launch_sized<96>(l, stream);
  if (l.count.dim == 128) launch_sized<128>(l, stream);
  if (l.num_splits > 1) join_parts_kernel<<<static_cast<unsigned>(l.tokens * l.count.heads), 64, 0, stream>>>(l);
}

}  // namespace kedge::cuda
