#include "kedge/core/autograd.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

// y = x^2 with a backward of its own that is wrong on purpose by a factor, so that its use can be seen.
struct ScaledSquare : torch::autograd::Function<ScaledSquare> {
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    return x * x;
  }
  static torch::autograd::variable_list backward(AutogradContext* context, const torch::autograd::variable_list& grads) {
    return {grads[0] * context->get_saved_variables()[0] * 20};
  }
};

TEST(Autograd, OperatorsRecordAndBackwardAccumulates) {
  Tensor x = at::full({3}, 2.0).requires_grad_(true);
  backward((x * x).sum());
  backward((x * x).sum());
  EXPECT_TRUE(x.grad().equal(at::full({3}, 8.0)));
}

TEST(Autograd, GradientsLandInAPresetSliceOfAFlatBuffer) {
  const Tensor flat = at::ones({6}), gradients = at::zeros({6});
  Tensor leaf = flat.narrow(0, 2, 4).view({2, 2}).detach().requires_grad_(true);
  leaf.mutable_grad() = gradients.narrow(0, 2, 4).view({2, 2});
  backward((leaf * 3).sum());
  EXPECT_TRUE(gradients.equal(at::cat({at::zeros({2}), at::full({4}, 3.0)})));
}

TEST(Autograd, AFunctionMayHaveItsOwnBackward) {
  Tensor x = at::full({1}, 3.0).requires_grad_(true);
  backward(ScaledSquare::apply(x).sum());
  EXPECT_EQ(x.grad().item<double>(), 60.0);
}

TEST(Autograd, NothingIsRecordedUnderNoGrad) {
  const Tensor x = at::ones({1}).requires_grad_(true);
  const NoGrad guard;
  EXPECT_FALSE((x * x).requires_grad());
}

}  // namespace
}  // namespace kedge
