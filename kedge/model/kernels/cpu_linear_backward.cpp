#include "kedge/core/error.h"
#include "kedge/model/kernels/cpu_linear.h"
#include "kedge/model/kernels/cpu_shared_product.h"

namespace kedge::cpu {

void multiply(const Tensor& a, const Tensor& b, const Tensor& out, const Tensor& beside) {
  ensure(a.size(1) == b.size(0) && out.size(0) == a.size(0) && out.size(1) == b.size(1), "shapes of a product");
  ensure(a.is_contiguous() && b.is_contiguous() && out.is_contiguous(), "a product of contiguous tensors");
  Product<float> product =
      input_gradient(a.const_data_ptr<float>(), b.const_data_ptr<float>(), out.mutable_data_ptr<float>(), a.size(0), b.size(1), b.size(0));
  if (beside.defined()) product.beside = beside.const_data_ptr<float>();
  run_shared(product);
}

void add_weight_gradient(const Tensor& gradient, const Tensor& dy, const Tensor& x) {
  const int64_t num_rows = x.size(0), in = x.size(1), num_out = dy.size(1);
  ensure(dy.size(0) == num_rows && gradient.size(0) == num_out && gradient.size(1) == in, "shapes of a product");
  ensure(gradient.is_contiguous() && dy.is_contiguous() && x.is_contiguous(), "a product of contiguous tensors");
  const float *from_dy = dy.const_data_ptr<float>(), *from_x = x.const_data_ptr<float>();
  float* to = gradient.mutable_data_ptr<float>();
  const VectorUnit unit = vector_units()[0];
  run_shared(weight_gradient(from_dy, from_x, to, 0, in, num_out), num_rows, [&](Range rows, Range columns) {
    for (int64_t row = 0; row < num_rows; row += kGradientRows) {
      const int64_t count = std::min(kGradientRows, num_rows - row);
      multiply(unit, weight_gradient(from_dy + row * num_out, from_x + row * in, to, count, in, num_out), rows, columns);
    }
  });
}

}  // namespace kedge::cpu
