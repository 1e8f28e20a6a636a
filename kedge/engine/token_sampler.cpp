#include "kedge/engine/token_sampler.h"

#include <ATen/Parallel.h>

#include "kedge/core/error.h"
#include "kedge/engine/cuda_sampling.h"

namespace kedge {
namespace {

std::vector<std::optional<Drawn>> draw_on_cpu(const Tensor& logits, std::span<const Draw> draws) {
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

Tensor tokens_of(const std::vector<std::optional<Drawn>>& drawn) {
  Tensor tokens = at::empty({static_cast<int64_t>(drawn.size())}, at::kInt);
  auto* to = tokens.mutable_data_ptr<int32_t>();
  for (const auto& one : drawn) *to++ = one ? one->token : -1;
  return tokens;
}

}  // namespace

TokenSampler::~TokenSampler() {
  try {
    while (num_taken_ < num_started_) static_cast<void>(take());
  } catch (const std::exception&) {
    // The device has failed; whoever destroys this is already reporting it, or will at the next call.
  }
}

void TokenSampler::start(const Tensor& logits, std::span<const Draw> draws) {
  ensure(num_started_ - num_taken_ < started_.size(), "three steps are sampled at a time");
  StartedDraws& started = started_[num_started_ % started_.size()];
  if (logits.is_cuda()) {
    newest_ = cuda::start_draws(logits, draws, started, buffers_);
  } else {
    started.done.reset();
    started.drawn = draw_on_cpu(logits, draws);
    newest_ = tokens_of(started.drawn);
  }
  ++num_started_;
}

std::vector<std::optional<Drawn>> TokenSampler::take() {
  ensure(num_taken_ < num_started_, "draws are taken that were not started");
  StartedDraws& started = started_[num_taken_++ % started_.size()];
  if (started.done) cuda::read_draws(started);
  return std::move(started.drawn);
}

std::vector<std::optional<Drawn>> TokenSampler::draw(const Tensor& logits, std::span<const Draw> draws) {
  if (draws.empty()) return {};
  start(logits, draws);
  return take();
}

}  // namespace kedge
