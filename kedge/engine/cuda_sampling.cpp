#include "kedge/engine/cuda_sampling.h"

#include <algorithm>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kedge/core/error.h"
#include "kedge/engine/cuda_sampling_launch.h"

namespace kedge::cuda {
namespace {

DrawRow row_of(const Draw& draw, int64_t size) {
  DrawRow row{};
  row.uniform = draw.from.uniform;
  row.row = static_cast<int32_t>(draw.row);
  row.greedy = draw.config.use_greedy ? 1 : 0;
  row.temperature = static_cast<float>(draw.config.temperature);
  row.logprob_temperature = static_cast<float>(draw.from.logprob_temperature);
  row.top_p = static_cast<float>(draw.config.top_p);
  row.penalty = static_cast<float>(draw.config.repetition_penalty);
  row.top_k = static_cast<int32_t>(std::min(draw.config.top_k, size));
  row.vocab_size = static_cast<int32_t>(draw.from.vocab_size > 0 ? draw.from.vocab_size : size);
  return row;
}

void make_room(Tensor& tensor, int64_t bytes, const at::TensorOptions& options) {
  if (!tensor.defined() || tensor.numel() < bytes) tensor = at::empty({2 * bytes}, options);
}

}  // namespace

// The draws, the tokens used so far and those that may not be sampled are uploaded in one buffer, the sampled ones come back in the same.
Tensor start_draws(const Tensor& logits, std::span<const Draw> draws, StartedDraws& started, DrawBuffers& buffers) {
  ensure(logits.scalar_type() == at::kFloat && logits.is_contiguous(), "the sampling kernel takes fp32 logits");
  const c10::cuda::CUDAGuard guard(logits.device());
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  const int64_t size = logits.size(1);
  const auto num_draws = static_cast<int64_t>(draws.size());
  bool penalised = false;
  int64_t num_ids = 0;
  for (const Draw& draw : draws) {
    penalised = penalised || (draw.config.repetition_penalty != 1 && !draw.config.use_greedy);
    num_ids += static_cast<int64_t>(draw.from.used.size() + draw.from.not_yet.size());
  }
  const auto rows_bytes = num_draws * static_cast<int64_t>(sizeof(DrawRow)), up = rows_bytes + num_ids * 4;
  const auto down = num_draws * static_cast<int64_t>(sizeof(DrawnRow));
  started.results_at = (up + 15) / 16 * 16;
  make_room(started.host, started.results_at + down, at::TensorOptions(at::kByte).pinned_memory(true));
  make_room(buffers.draws, up, logits.options().dtype(at::kByte));
  if (!buffers.results.defined() || buffers.results.size(0) < num_draws)
    buffers.results = at::empty({2 * num_draws, 2}, logits.options().dtype(at::kInt));
  auto* bytes = started.host.mutable_data_ptr<uint8_t>();
  auto* rows = reinterpret_cast<DrawRow*>(bytes);
  auto* ids = reinterpret_cast<int32_t*>(bytes + rows_bytes);
  int32_t at = 0;
  for (int64_t i = 0; i < num_draws; ++i) {
    const Draw& draw = draws[static_cast<size_t>(i)];
    rows[i] = row_of(draw, size);
    rows[i].used_begin = at;
    for (const int32_t id : draw.from.used) ids[at++] = id;
    rows[i].used_end = at;
    for (const int32_t id : draw.from.not_yet) ids[at++] = id;
    rows[i].not_yet_end = at;
  }
  Tensor is_used;
  if (penalised) is_used = at::empty({num_draws, sampling_words(size)}, logits.options().dtype(at::kInt));
  auto* on_device = buffers.draws.mutable_data_ptr<uint8_t>();
  auto* results = buffers.results.mutable_data_ptr<int32_t>();
  C10_CUDA_CHECK(cudaMemcpyAsync(on_device, bytes, static_cast<size_t>(up), cudaMemcpyHostToDevice, stream));
  launch_sampling({logits.const_data_ptr<float>(), size, reinterpret_cast<const DrawRow*>(on_device),
                   reinterpret_cast<const int32_t*>(on_device + rows_bytes),
                   penalised ? reinterpret_cast<uint32_t*>(is_used.mutable_data_ptr<int32_t>()) : nullptr,
                   reinterpret_cast<DrawnRow*>(results), num_draws},
                  stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  C10_CUDA_CHECK(cudaMemcpyAsync(bytes + started.results_at, results, static_cast<size_t>(down), cudaMemcpyDeviceToHost, stream));
  if (!started.done) started.done.emplace(at::kCUDA);
  started.done->record(stream.unwrap());
  started.drawn.resize(draws.size());
  return buffers.results.narrow(0, 0, num_draws).select(1, 0);
}

void read_draws(StartedDraws& started) {
  started.done->synchronize();
  const auto* results = reinterpret_cast<const DrawnRow*>(started.host.const_data_ptr<uint8_t>() + started.results_at);
  for (size_t i = 0; i < started.drawn.size(); ++i) {
    started.drawn[i].reset();
    if (results[i].token >= 0) started.drawn[i] = Drawn{results[i].token, results[i].logprob};
  }
}

void fill_awaited(const Tensor& tokens, const Tensor& awaited, const Tensor& ids) {
  const c10::cuda::CUDAGuard guard(ids.device());
  launch_awaited({tokens.const_data_ptr<int32_t>(), tokens.stride(0), awaited.const_data_ptr<int32_t>(), awaited.numel() / 2,
                  ids.mutable_data_ptr<int32_t>()},
                 c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace kedge::cuda
