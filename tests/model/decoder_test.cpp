#include "kedge/model/decoder.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::batch_of;
using testing::largest_difference;
using testing::normals;
using testing::relative_error;
using testing::same_bits;
using testing::tiny_model;

constexpr std::array kDecoderFamilies = {testing::kTinyLlama, testing::kTinyMistral, testing::kTinyQwen3, testing::kTinyGpt2};
const std::vector<int64_t> kDecoderLengths = {13, 1, 20, 6};

PackedBatch single(const std::vector<int32_t>& row) { return pack_rows(std::vector<std::vector<int32_t>>{row}, at::kCPU); }

Tensor flat_gradient(Model& model, const PackedBatch& batch, const PassOptions& pass = {}) {
  model.parameters().flat_gradient().zero_();
  const Tensor hidden = model.hidden(batch, pass);
  backward((hidden * normals(hidden.sizes(), 3)).sum());
  return model.parameters().flat_gradient().clone();
}

TEST(Decoder, CheckpointingGivesTheSameBits) {
  for (const char* family : kDecoderFamilies) {
    const auto model = tiny_model(family);
    const PackedBatch batch = batch_of(kDecoderLengths);
    EXPECT_TRUE(same_bits(model->hidden(batch), model->hidden(batch, {.checkpoint = true, .dropout_seed = {}})));
    const Tensor kept = flat_gradient(*model, batch);
    EXPECT_GT(kept.abs().max().item<double>(), 0.1);
    EXPECT_TRUE(same_bits(kept, flat_gradient(*model, batch, {.checkpoint = true, .dropout_seed = {}}))) << family;
  }
}

TEST(Decoder, APackedRowGivesWhatItGivesAlone) {
  double worst = 0;
  for (const char* family : kDecoderFamilies) {
    const auto model = tiny_model(family, {});
    const auto rows = testing::rows_of(kDecoderLengths);
    const Tensor together = model->hidden(pack_rows(rows, at::kCPU));
    int64_t start = 0;
    for (const auto& row : rows) {
      const auto length = static_cast<int64_t>(row.size());
      const Tensor alone = model->hidden(single(row));
      worst = std::max(worst, largest_difference(alone, together.narrow(0, start, length)));
      start += length;
    }
  }
  std::cout << "largest difference between a row alone and in a batch: " << worst << "\n";
  EXPECT_LT(worst, 1e-5);  // sums of matrix products may run in another order for another number of rows
}

TEST(Decoder, PackedRowsGiveTheGradientsOfTheirSum) {
  for (const char* family : kDecoderFamilies) {
    const auto packed = tiny_model(family), apart = tiny_model(family);
    const auto rows = testing::rows_of(kDecoderLengths);
    const Tensor together = packed->hidden(pack_rows(rows, at::kCPU)), weights = normals(together.sizes(), 3);
    backward((together * weights).sum());
    int64_t start = 0;
    for (const auto& row : rows) {
      const Tensor alone = apart->hidden(single(row));
      backward((alone * weights.narrow(0, start, alone.size(0))).sum());
      start += alone.size(0);
    }
    EXPECT_LT(relative_error(packed->parameters().flat_gradient(), apart->parameters().flat_gradient()), 1e-5) << family;
  }
}

TEST(Decoder, TokensBehindDoNotReachBack) {
  for (const char* family : kDecoderFamilies) {
    const auto model = tiny_model(family, {});
    auto row = testing::rows_of({20})[0];
    const Tensor before = model->hidden(single(row));
    row[12] = (row[12] + 1) % 31;
    const Tensor after = model->hidden(single(row));
    EXPECT_TRUE(same_bits(before.narrow(0, 0, 12), after.narrow(0, 0, 12))) << family;
    EXPECT_GT(largest_difference(before.narrow(0, 12, 1), after.narrow(0, 12, 1)), 1e-3) << family;
  }
}

// Two layers of windows of three: token t depends on tokens t - 4 ... t.
TEST(Decoder, AWindowHidesWhatLiesBeforeIt) {
  const auto model = tiny_model(testing::kTinyMistral, {});
  auto row = testing::rows_of({20})[0];
  const Tensor before = model->hidden(single(row));
  row[5] = (row[5] + 1) % 31;
  const Tensor change = (model->hidden(single(row)) - before).abs().amax(1);
  EXPECT_EQ(change.narrow(0, 0, 5).max().item<float>(), 0);
  EXPECT_GT(change[9].item<float>(), 0);
  EXPECT_EQ(change.narrow(0, 10, 10).max().item<float>(), 0);
}

TEST(Decoder, GradientsAddUpOverBackwardPasses) {
  for (const char* family : kDecoderFamilies) {
    const auto model = tiny_model(family);
    const PackedBatch first = batch_of({13, 4}), second = batch_of({7});
    const Tensor one = flat_gradient(*model, first), other = flat_gradient(*model, second);
    model->parameters().flat_gradient().zero_();
    // Both passes are recorded before either goes backward.
    const Tensor a = model->hidden(first), b = model->hidden(second);
    backward((a * normals(a.sizes(), 3)).sum());
    backward((b * normals(b.sizes(), 3)).sum());
    EXPECT_LT(relative_error(model->parameters().flat_gradient(), one + other), 1e-6);
  }
}

// A central difference of the whole network in the direction of the gradient itself, in fp32: the slope is its square norm.
TEST(Decoder, TheGradientIsTheSlope) {
  for (const char* family : kDecoderFamilies) {
    const auto model = tiny_model(family);
    const PackedBatch batch = batch_of(kDecoderLengths);
    const Tensor gradient = flat_gradient(*model, batch);
    const double norm = gradient.norm().item<double>();
    const NoGrad no_grad;
    const auto loss_at = [&](double step) {
      const Tensor flat = model->parameters().flat();
      const Tensor start = flat.clone();
      flat.add_(gradient, step / norm);
      const Tensor hidden = model->hidden(batch);
      const double loss = (hidden.to(at::kDouble) * normals(hidden.sizes(), 3)).sum().item<double>();
      flat.copy_(start);
      return loss;
    };
    constexpr double kStep = 2e-3;
    EXPECT_NEAR((loss_at(kStep) - loss_at(-kStep)) / (2 * kStep) / norm, 1, 2e-3) << family;
  }
}

TEST(Decoder, NothingIsRecordedUnderNoGradOrWhereNothingTrains) {
  const auto trained = tiny_model(testing::kTinyLlama), frozen = tiny_model(testing::kTinyLlama, {});
  const PackedBatch batch = batch_of(kDecoderLengths);
  EXPECT_TRUE(trained->hidden(batch).requires_grad());
  EXPECT_FALSE(frozen->hidden(batch).requires_grad());
  EXPECT_TRUE(same_bits(trained->hidden(batch), frozen->hidden(batch)));
  const NoGrad no_grad;
  EXPECT_FALSE(trained->hidden(batch).requires_grad());
}

TEST(Decoder, ARowMayNotOutgrowLearnedPositions) {
  const auto gpt2 = tiny_model(testing::kTinyGpt2, {}), llama = tiny_model(testing::kTinyLlama, {});
  EXPECT_EQ(gpt2->hidden(batch_of({64})).size(0), 64);
  EXPECT_EQ(testing::error_of([&] {
              return gpt2->hidden(batch_of({3, 65}));
            }),
            "a row of 65 tokens, but this gpt2 model has only 64 positions");
  EXPECT_EQ(llama->hidden(batch_of({65})).size(0), 65);  // angles know no end
}

TEST(Decoder, APassGoesBackwardOnce) {
  const auto model = tiny_model(testing::kTinyLlama);
  const Tensor loss = model->hidden(batch_of({3})).sum();
  torch::autograd::backward({loss}, {}, true);
  EXPECT_ANY_THROW(backward(loss));
}

// A rounding to bf16 is an error of up to 2^-9 of a number, in the mean half of that; about ten lie one behind another in two layers and
// add up like noise: sqrt(10) * 2^-10 = 0.003 of the states' norm, and several times that in gradients, which pass them twice.
TEST(Decoder, Bf16IsClose) {
  for (const char* family : kDecoderFamilies) {
    const auto wide = tiny_model(family), narrow = tiny_model(family, {.dtype = at::kBFloat16, .trainable = true});
    const PackedBatch batch = batch_of(kDecoderLengths);
    EXPECT_EQ(narrow->hidden(batch).scalar_type(), at::kBFloat16);
    const auto error = [](const Tensor& found, const Tensor& wanted) {
      return (found.to(at::kFloat) - wanted).norm().item<double>() / wanted.norm().item<double>();
    };
    EXPECT_LT(error(narrow->hidden(batch), wide->hidden(batch)), 0.015) << family;
    EXPECT_LT(error(flat_gradient(*narrow, batch), flat_gradient(*wide, batch)), 0.03) << family;
  }
}

}  // namespace
}  // namespace kedge
