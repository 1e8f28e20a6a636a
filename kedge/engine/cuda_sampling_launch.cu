#include <cmath>

#include "kedge/engine/cuda_sampling_launch.h"

namespace kedge::cuda {
namespace {

constexpr int kThreads = 512, kWarp = 32, kWarps = kThreads / kWarp;
constexpr unsigned kAll = 0xFFFFFFFFU;
constexpr float kNever = -INFINITY;

// The sum of e^(x - most).
struct Running {
  float most = -1e38F, sum = 0;

  // NaN or an infinity makes the sum NaN.
  template <int N>
  __device__ void add(const float (&x)[N]) {
    float now = most;
#pragma unroll
    for (int n = 0; n < N; ++n) now = fmaxf(now, x[n]);
    if (now > most) {
      sum *= __expf(most - now);
      most = now;
    }
#pragma unroll
    for (int n = 0; n < N; ++n) sum += __expf(x[n] - most);
  }
  __device__ void join(float other_most, float other_sum) {
    const float now = fmaxf(most, other_most);
    sum = sum * __expf(most - now) + other_sum * __expf(other_most - now);
    most = now;
  }
};

// The same with the logits divided.
template <int N>
__device__ void add_divided(Running& sum, const float (&logit)[N], float by) {
  float x[N];
#pragma unroll
  for (int n = 0; n < N; ++n) x[n] = logit[n] / by;
  sum.add(x);
}

__device__ Running over_warp(Running mine) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float most = __shfl_xor_sync(kAll, mine.most, offset), sum = __shfl_xor_sync(kAll, mine.sum, offset);
    mine.join(most, sum);
  }
  return mine;
}

struct Best {
  float logit = kNever;
  int id = -1;

  __device__ void join(float other_logit, int other_id) {  // the first of equals
    if (other_id >= 0 && (id < 0 || other_logit > logit || (other_logit == logit && other_id < id))) logit = other_logit, id = other_id;
  }
};

// Larger numbers have larger keys.
__device__ inline uint32_t key_of(float x) {
  const uint32_t bits = __float_as_uint(x);
  return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
}

// A row of logits as a draw sees it.
struct Row {
  const float* logits;
  int64_t size;
  DrawRow draw;
  const int32_t* ids;
  const uint32_t* is_used;  // null: no penalty
  uint32_t least;           // keys below it are dropped

  __device__ bool allowed(int64_t i) const {
    for (int n = draw.used_end; n < draw.not_yet_end; ++n)
      if (i == ids[n]) return false;
    return i < draw.vocab_size;
  }
  __device__ float changed(int64_t i, float logit) const {
    if (!allowed(i)) return kNever;
    float x = logit / draw.temperature;
    if (is_used != nullptr && (is_used[i / 32] >> (i % 32) & 1U) != 0) x /= draw.penalty;
    return x;
  }
  // The modified logit, or nothing.
  __device__ float kept(int64_t i, float logit) const {
    const float x = changed(i, logit);
    return key_of(x) >= least ? x : kNever;
  }
  // Calls work(i, logits from i on) for [begin, end), lane by lane of the warp: four at a time if the size allows it.
  template <typename F>
  __device__ void for_range(int64_t begin, int64_t end, F&& work) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    if (size % 4 != 0) {
      for (int64_t i = begin + lane; i < end; i += kWarp) {
        const float one[1] = {logits[i]};
        work(i, one);
      }
      return;
    }
    constexpr int kAhead = 4, kStep = 4 * kWarp;  // loads under way at once
    for (int64_t from = begin + 4 * lane; from < end; from += kAhead * kStep) {
      float4 four[kAhead];
#pragma unroll
      for (int n = 0; n < kAhead; ++n)
        if (from + n * kStep < end) four[n] = *reinterpret_cast<const float4*>(logits + from + n * kStep);
#pragma unroll
      for (int n = 0; n < kAhead; ++n) {
        const float values[4] = {four[n].x, four[n].y, four[n].z, four[n].w};
        if (from + n * kStep < end) work(from + n * kStep, values);
      }
    }
  }
  // The same with modified logits.
  template <typename F>
  __device__ void for_kept(int64_t begin, int64_t end, F&& work) const {
    for_range(begin, end, [&]<int N>(int64_t i, const float(&logit)[N]) {
      float x[N];
#pragma unroll
      for (int n = 0; n < N; ++n) x[n] = kept(i + n, logit[n]);
      work(x);
    });
  }
};

struct Shared {
  float most[kWarps], sum[kWarps];
  float best[kWarps];
  int best_id[kWarps];
  unsigned long long bins[256];
  uint32_t prefix;
  unsigned long long above;
  double scan[kWarps];
  int found;
};

// The least key for which the weights of all larger ones do not exceed `limit`, found eight bits at a time. Weights are integers, so
// that the order of the sums does not show.
template <typename F>
__device__ uint32_t least_key(Shared& shared, const Row& row, int64_t begin, int64_t end, unsigned long long limit, F&& weight_of) {
  if (threadIdx.x == 0) shared.prefix = 0, shared.above = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < 256; bin += kThreads) shared.bins[bin] = 0;
    __syncthreads();
    const uint32_t prefix = shared.prefix;
    row.for_kept(begin, end, [&]<int N>(const float(&some)[N]) {
#pragma unroll
      for (const float x : some) {
        const uint32_t key = key_of(x);
        if (x == kNever || (shift < 24 && key >> (shift + 8) != prefix >> (shift + 8))) continue;
        atomicAdd(&shared.bins[key >> shift & 0xFFU], weight_of(x));
      }
    });
    __syncthreads();
    if (threadIdx.x == 0) {
      unsigned long long above = shared.above;
      int bin = 255;
      while (bin > 0 && above + shared.bins[bin] <= limit) above += shared.bins[bin--];
      shared.above = above;
      shared.prefix = prefix | static_cast<uint32_t>(bin) << shift;
    }
  }
  __syncthreads();
  return shared.prefix;
}

// The sum over all kept ones, and every warp's part of it in shared.sum, to one maximum.
__device__ Running total_of(Shared& shared, Running mine) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  mine = over_warp(mine);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) shared.most[warp] = mine.most, shared.sum[warp] = mine.sum;
  __syncthreads();
  Running all;
  for (int w = 0; w < kWarps; ++w) all.join(shared.most[w], shared.sum[w]);
  return all;
}

// The token in whose share of the kept ones, in the order of ids, `uniform` falls: first the warp's range, then the place in it.
__device__ int pick(Shared& shared, const Row& row, const Running& total, int64_t range) {
  const double wanted = row.draw.uniform * static_cast<double>(total.sum);
  double before = 0;
  int chosen = -1;
  for (int w = 0; w < kWarps; ++w) {  // computed by every thread: the same for all
    const double part = static_cast<double>(shared.sum[w]) * static_cast<double>(__expf(shared.most[w] - total.most));
    if (part <= 0) continue;
    chosen = w;  // the last with anything in it where rounding leaves a sliver at the end
    if (before + part > wanted) break;
    before += part;
  }
  if (chosen < 0) return -1;
  if (threadIdx.x == 0) shared.found = -1;
  const int64_t begin = chosen * range, end = min(row.size, begin + range);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t each = (end - begin + kThreads - 1) / kThreads, first = begin + each * threadIdx.x;
  double mine = 0;
  int last = -1;
  for (int64_t i = first; i < min(end, first + each); ++i) {
    const float x = row.kept(i, row.logits[i]);
    if (x == kNever) continue;
    mine += __expf(x - total.most);
    last = static_cast<int>(i);
  }
  double sum = mine;  // with everything of the warp before it
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const double other = __shfl_up_sync(kAll, sum, offset);
    if (lane >= offset) sum += other;
  }
  __syncthreads();
  if (lane == kWarp - 1) shared.scan[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; ++w) sum += shared.scan[w];
  const double left = wanted - before, start = sum - mine;
  if (mine > 0 && start <= left && sum > left) {
    double running = start;
    for (int64_t i = first; i < min(end, first + each); ++i) {
      const float x = row.kept(i, row.logits[i]);
      if (x == kNever) continue;
      running += __expf(x - total.most);
      if (running > left || i == last) {
        shared.found = static_cast<int>(i);
        break;
      }
    }
  }
  __syncthreads();
  if (shared.found < 0) {  // rounding again: the range's last
    __syncthreads();
    if (last >= 0) atomicMax(&shared.found, last);
    __syncthreads();
  }
  return shared.found;
}

// A bit for every id that the draw's sequence has.
__device__ const uint32_t* mark_used(const SamplingLaunch& l, const DrawRow& draw, int64_t index) {
  const int64_t words = (l.size + 31) / 32;
  uint32_t* is_used = l.is_used + index * words;
  for (int64_t i = threadIdx.x; i < words; i += kThreads) is_used[i] = 0;
  __syncthreads();
  for (int i = draw.used_begin + static_cast<int>(threadIdx.x); i < draw.used_end; i += kThreads)
    atomicOr(&is_used[l.ids[i] / 32], 1U << static_cast<unsigned>(l.ids[i] % 32));
  __syncthreads();
  return is_used;
}

// A group of threads takes one draw; each warp a range of ids.
__global__ void __launch_bounds__(kThreads, 2) sampling_kernel(const SamplingLaunch l) {
  __shared__ Shared shared;
  const int64_t index = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  Row row{nullptr, l.size, l.draws[index], l.ids, nullptr, 0};
  row.logits = l.logits + row.draw.row * l.size;
  if (row.draw.penalty != 1.0F && row.draw.greedy == 0) row.is_used = mark_used(l, row.draw, index);
  const int64_t range = (l.size + kWarps * 4 * kWarp - 1) / (kWarps * 4 * kWarp) * 4 * kWarp;
  const int64_t begin = min(l.size, warp * range), end = min(l.size, begin + range);

  // Most draws change nothing, and then one sum serves both.
  const bool is_masked = row.draw.not_yet_end > row.draw.used_end || row.draw.vocab_size < l.size;
  const bool plain = row.draw.temperature == 1.0F && row.is_used == nullptr && !is_masked;
  // `raw` is of all logits at the temperature of the log-prob.
  const bool divides = row.draw.logprob_temperature != 1.0F;
  const bool one_sum = plain && !divides;
  Running raw, changed;
  Best best;
  row.for_range(begin, end, [&]<int N>(int64_t i, const float(&logit)[N]) {
    divides ? add_divided(raw, logit, row.draw.logprob_temperature) : raw.add(logit);
    if (row.draw.greedy != 0) {
#pragma unroll
      for (int n = 0; n < N; ++n)
        if (row.allowed(i + n)) best.join(logit[n], static_cast<int>(i) + n);
    } else if (!one_sum) {
      float x[N];
#pragma unroll
      for (int n = 0; n < N; ++n) x[n] = row.changed(i + n, logit[n]);
      changed.add(x);
    }
  });
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    best.join(__shfl_xor_sync(kAll, best.logit, offset), __shfl_xor_sync(kAll, best.id, offset));
  if (threadIdx.x % kWarp == 0) shared.best[warp] = best.logit, shared.best_id[warp] = best.id;
  const Running raw_total = total_of(shared, raw);
  Running total = one_sum || row.draw.greedy != 0 ? raw_total : total_of(shared, changed);
  Best all_best;
  for (int w = 0; w < kWarps; ++w) all_best.join(shared.best[w], shared.best_id[w]);
  DrawnRow* out = l.drawn + index;
  const bool is_number = isfinite(raw_total.sum) && isfinite(total.sum) && total.sum > 0;
  if (!is_number || (row.draw.greedy != 0 && (all_best.id < 0 || all_best.logit == kNever))) {
    if (threadIdx.x == 0) *out = {-1, 0.0F};
    return;
  }
  int token = all_best.id;
  if (row.draw.greedy == 0) {
    const bool by_count = row.draw.top_k > 0 && row.draw.top_k<l.size, by_share = row.draw.top_p> 0 && row.draw.top_p < 1;
    if (by_count) {
      // The k-th largest: as many as k - 1 may stand above it.
      row.least = least_key(shared, row, begin, end, static_cast<unsigned long long>(row.draw.top_k) - 1, [](float) { return 1ULL; });
    }
    if (by_count || by_share) {
      const auto sum_again = [&] {
        Running kept;
        row.for_kept(begin, end, [&](const auto& some) { kept.add(some); });
        total = total_of(shared, kept);
      };
      if (by_count) sum_again();
      if (by_share) {
        constexpr double kOne = 1099511627776.0;  // 2^40
        const float most = total.most;
        const auto limit = static_cast<unsigned long long>(static_cast<double>(row.draw.top_p) * static_cast<double>(total.sum) * kOne);
        row.least = max(row.least, least_key(shared, row, begin, end, limit, [most](float x) {
                          return static_cast<unsigned long long>(static_cast<double>(__expf(x - most)) * kOne);
                        }));
        sum_again();
      }
    }
    token = pick(shared, row, total, range);
  }
  if (threadIdx.x != 0) return;
  const auto logprob = [&] { return row.logits[token] / row.draw.logprob_temperature - (raw_total.most + logf(raw_total.sum)); };
  *out = {token, token < 0 ? 0.0F : logprob()};
}

__global__ void awaited_kernel(const AwaitedLaunch l) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < l.num_pairs) l.ids[l.pairs[2 * i]] = max(0, l.tokens[l.pairs[2 * i + 1] * l.stride]);
}

}  // namespace

void launch_awaited(const AwaitedLaunch& l, cudaStream_t stream) {
  awaited_kernel<<<static_cast<unsigned>((l.num_pairs + kThreads - 1) / kThreads), kThreads, 0, stream>>>(l);
}

void launch_sampling(const SamplingLaunch& l, cudaStream_t stream) {
  sampling_kernel<<<static_cast<unsigned>(l.num_draws), kThreads, 0, stream>>>(l);
}

}  // namespace kedge::cuda
