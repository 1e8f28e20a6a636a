#include "kedge/model/files/tensor_bytes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::normals;
using testing::same_bits;

std::string bytes_of_tensor(const Tensor& tensor, WeightType type) {
  std::string bytes;
  write_tensor(tensor, type, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

TEST(TensorBytes, NumbersComeBackInEveryType) {
  for (const WeightType type : {WeightType::f32, WeightType::bf16, WeightType::f16}) {
    const Tensor x = normals({3, 5}, 1).to(scalar_type(type));
    const std::string bytes = bytes_of_tensor(x, type);
    EXPECT_EQ(bytes.size(), 15 * bytes_of(type));
    const Tensor same = at::empty({3, 5}, x.scalar_type()), wide = at::empty({3, 5}, at::kFloat);
    read_tensor({bytes, type, {3, 5}}, same);
    read_tensor({bytes, type, {3, 5}}, wide);
    EXPECT_TRUE(same_bits(same, x));
    EXPECT_TRUE(same_bits(wide, x.to(at::kFloat)));
  }
}

TEST(TensorBytes, WritingConvertsAndFollowsRowOrder) {
  const Tensor x = normals({3, 5}, 1);
  const Tensor back = at::empty({5, 3}, at::kFloat);
  read_tensor({bytes_of_tensor(x.t(), WeightType::f32), WeightType::f32, {5, 3}}, back);
  EXPECT_TRUE(same_bits(back, x.t().contiguous()));
  const std::string narrow = bytes_of_tensor(x, WeightType::bf16);
  EXPECT_EQ(std::memcmp(narrow.data(), x.to(at::kBFloat16).data_ptr(), narrow.size()), 0);
}

TEST(TensorBytes, AStoredTransposeIsTurned) {
  const Tensor x = normals({3, 5}, 1), back = at::empty({5, 3}, at::kFloat);
  const std::string bytes = bytes_of_tensor(x, WeightType::f32);
  read_tensor({bytes, WeightType::f32, {3, 5}, true}, back);
  EXPECT_TRUE(same_bits(back, x.t().contiguous()));
}

TEST(TensorBytes, OddAddressesAreRead) {
  const Tensor x = normals({4}, 1), back = at::empty({4}, at::kFloat);
  const std::string bytes = "?" + bytes_of_tensor(x, WeightType::f32);
  read_tensor({std::string_view(bytes).substr(1), WeightType::f32, {4}}, back);
  EXPECT_TRUE(same_bits(back, x));
}

TEST(TensorBytes, NanAndInfinitiesAreSeenAnywhere) {
  for (const WeightType type : {WeightType::f32, WeightType::bf16, WeightType::f16})
    for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)})
      for (const int64_t place : {0, 8, 14}) {
        const Tensor x = normals({15}, 1);
        EXPECT_FALSE(has_non_finite({bytes_of_tensor(x, type), type, {15}}));
        x[place].fill_(bad);
        const std::string bytes = bytes_of_tensor(x, type);
        EXPECT_TRUE(has_non_finite({bytes, type, {15}})) << bad << " at " << place;
      }
  EXPECT_FALSE(has_non_finite({"", WeightType::f32, {0, 3}}));
}

TEST(TensorBytes, TypesFilesDoNotHoldAreRefused) {
  EXPECT_EQ(weight_type_of(at::kHalf, "x"), WeightType::f16);
  EXPECT_EQ(error_of([] { return weight_type_of(at::kDouble, "out"); }),
            "out: weights cannot be kept as Double; expected fp32, bf16 or fp16");
}

}  // namespace
}  // namespace kedge
