#include "kedge/engine/cuda_graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kedge/core/device.h"
#include "kedge/core/error.h"

namespace kedge {

// The memory that the graphs share. It has a recording of its own: when the last one goes, the allocator takes the pool apart and refuses
// to record in it again.
struct CudaGraphs::Pool {
  c10::MempoolId_t id = at::cuda::graph_pool_handle();
  c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
  at::cuda::CUDAGraph keeper;

  Pool() {
    record(keeper, [] { return at::zeros({1}, at::TensorOptions(at::kCUDA)); });
  }

  Tensor record(at::cuda::CUDAGraph& graph, const std::function<Tensor()>& work) const {
    // Its own stream, because the default one cannot be recorded; work before and after waits for neither.
    stream.synchronize();
    c10::cuda::getCurrentCUDAStream().synchronize();
    const c10::cuda::CUDAStreamGuard guard(stream);
    graph.capture_begin(id, cudaStreamCaptureModeThreadLocal);
    Tensor result = work();
    graph.capture_end();
    return result;
  }
};

// The result is a view: its memory belongs to the pool, where the graphs that are recorded next may use it too. Graphs run one
// after another, and what one left is read before the next runs.
struct CudaGraphs::Graph {
  at::cuda::CUDAGraph graph;
  Tensor result;
};

CudaGraphs::CudaGraphs() = default;
CudaGraphs::~CudaGraphs() = default;
void CudaGraphs::clear() { graphs_.clear(); }

Tensor CudaGraphs::run(const std::vector<int64_t>& key, const std::function<Tensor()>& work) {
  const auto [place, is_new] = graphs_.try_emplace(key);
  if (is_new) {  // libraries load their kernels and take their memory now: nothing of that may happen while recording
    Tensor result = work();
    ensure(result.device().index() == c10::cuda::current_device(), "what is computed on ", name_of(result.device()),
           " cannot be recorded while another device is current");
    return result;
  }
  if (!pool_) pool_ = std::make_unique<Pool>();
  if (!place->second) {
    auto made = std::make_unique<Graph>();
    const Tensor result = pool_->record(made->graph, work);
    made->result = at::from_blob(result.data_ptr(), result.sizes(), result.strides(), result.options());
    place->second = std::move(made);
  }
  place->second->graph.replay();
  return place->second->result;
}

}  // namespace kedge
