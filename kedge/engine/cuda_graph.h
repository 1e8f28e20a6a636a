#pragma once
// GPU work that is repeated with other numbers in the same memory: recorded once as a CUDA graph, then replayed.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "kedge/core/tensor.h"

namespace kedge {

// Not thread-safe. In a build without CUDA it can be constructed and does nothing.
class CudaGraphs {
 public:
  CudaGraphs();
  ~CudaGraphs();
  CudaGraphs(const CudaGraphs&) = delete;
  CudaGraphs& operator=(const CudaGraphs&) = delete;

  // The result of work(), which must do the same to the same memory whenever the key is the same. The first time it is called, the second
  // time recorded, from then on replayed; the result is valid until the next run.
  [[nodiscard]] Tensor run(const std::vector<int64_t>& key, const std::function<Tensor()>& work);
  // Drops the recordings.
  void clear();

 private:
  struct Graph;
  struct Pool;
  std::unique_ptr<Pool> pool_;
  std::map<std::vector<int64_t>, std::unique_ptr<Graph>> graphs_;
};

}  // namespace kedge
