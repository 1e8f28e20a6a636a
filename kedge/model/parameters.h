#pragma once
// A model's parameters in flat buffers: the number type the network computes with, fp32 master weights and gradients.
// Storage never moves, so views of a slice see every update.
#include <cstdint>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/model/spec/parameter_layout.h"

namespace kedge {

struct StorageOptions {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  bool trainable = false;  // with gradients, and fp32 master weights if dtype is another
};

// How many elements a flat buffer of such parameters has, with the gaps between the slices.
[[nodiscard]] int64_t flat_size(const std::vector<ParameterSpec>& specs);

class Parameters {
 public:
  Parameters(const std::vector<ParameterSpec>& specs, const StorageOptions& options);

  [[nodiscard]] const StorageOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<ParameterSpec>& specs() const { return specs_; }
  [[nodiscard]] int64_t num_elements() const { return num_elements_; }  // without the gaps between the slices

  // A parameter's slice in its own shape.
  [[nodiscard]] const Tensor& value(int parameter) const { return values_[static_cast<size_t>(parameter)]; }
  [[nodiscard]] const Tensor& master(int parameter) const { return masters_[static_cast<size_t>(parameter)]; }
  // Undefined if nothing is trained.
  [[nodiscard]] const Tensor& gradient(int parameter) const { return gradients_[static_cast<size_t>(parameter)]; }

  // The complete buffers. Gaps between slices are zero and stay zero.
  [[nodiscard]] const Tensor& flat() const { return flat_; }
  [[nodiscard]] const Tensor& flat_master() const { return flat_master_; }  // flat() itself if that is fp32 or nothing is trained
  [[nodiscard]] const Tensor& flat_gradient() const { return flat_gradient_; }
  // The first elements are those that decay.
  [[nodiscard]] int64_t num_decaying() const { return num_decaying_; }

  // Copies the master weights into the ones the network computes with.
  void publish();
  // Seeded initial values: a parameter's draws depend on the seed and its place alone.
  void initialise(uint64_t seed, double normal_range);
  void initialise(int parameter, uint64_t seed, double normal_range);  // one of them, unpublished

 private:
  std::vector<ParameterSpec> specs_;
  StorageOptions options_;
  int64_t num_elements_ = 0, num_decaying_ = 0;
  Tensor flat_, flat_master_, flat_gradient_;
  std::vector<Tensor> values_, masters_, gradients_;
};

// A score head ready to use: weight [labels, hidden], bias [labels] or undefined, and fp32 gradients if they are trained. The weight is
// undefined if there is no such head.
struct ScoreView {
  Tensor weight, bias, weight_gradient, bias_gradient;

  static ScoreView of(const Parameters& parameters, int weight, int bias);  // by their places
};

}  // namespace kedge
