#include "kedge/engine/token_sampler.h"

#include <ATen/Parallel.h>

#include "kedge/engine/cuda_sampling.h"

namespace kedge {

std::vector<std::optional<Drawn>> TokenSampler::draw(const Tensor& logits, std::span<const Draw> draws) {
  if (draws.empty()) return {};
  if (logits.is_cuda()) return cuda::draw_tokens(logits, draws, host_, device_);
  const Tensor floats = logits.to(at::kFloat).contiguous();
  const int64_t size = floats.size(1);
  const auto* data = floats.const_data_ptr<float>();
  std::vector<std::optional<Drawn>> drawn(draws.size());
  at::parallel_for(0, static_cast<int64_t>(draws.size()), 4, [&](int64_t begin, int64_t end) {
    thread_local SamplingScratch scratch;
    for (int64_t i = begin; i < end; ++i) {
      const Draw& draw = draws[static_cast<size_t>(i)];
      drawn[static_cast<size_t>(i)] = draw_token({data + draw.row * size, static_cast<size_t>(size)}, draw.config, draw.from, scratch);
    }
  });
  return drawn;
}

}  // namespace kedge
