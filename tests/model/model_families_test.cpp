// The numbers transformers gives for tiny models of three families, kept in tests/golden/model_families (made by make_model_families.py): a
// check of loading, network and gradients together that needs no Python.
#include <gtest/gtest.h>

#include "kedge/core/autograd.h"
#include "kedge/model/files/model_files.h"

#include "tests/support/assets.h"
#include "tests/support/model_logits.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::model_logits;

Tensor numbers(const Json& json, const char* key) {
  std::vector<double> values;
  for (const Json& value : json.at(key, "expected.json").as_array(key)) values.push_back(value.as_number(key));
  return at::tensor(values, at::kDouble);
}

std::vector<std::vector<int32_t>> rows_of(const Json& json) {
  std::vector<std::vector<int32_t>> rows;
  for (const Json& row : json.at("rows", "expected.json").as_array("rows")) {
    rows.emplace_back();
    for (const Json& id : row.as_array("rows")) rows.back().push_back(static_cast<int32_t>(id.as_integer("rows")));
  }
  return rows;
}

class ModelFamilies : public ::testing::TestWithParam<const char*> {};

TEST_P(ModelFamilies, GiveTheLogitsLogprobsAndGradientsOfTransformers) {
  const Path folder = testing::source_folder() / "tests" / "golden" / "model_families" / GetParam();
  const Json expected = Json::parse(read_text(folder / "expected.json"));
  const auto model = load_model(folder, {.storage = {.trainable = true}});
  const PackedBatch batch = pack_rows(rows_of(expected), at::kCPU);
  // fp32 in another order of sums: logits of a few units differ by a few 1e-6.
  EXPECT_LT(testing::largest_difference(model_logits(*model, batch).view({-1}), numbers(expected, "logits")), 2e-5);
  const TokenLogprobs found = model_logprobs(*model, batch, predicted_tokens(batch), {.entropy = true});
  EXPECT_LT(testing::largest_difference(found.logprobs, numbers(expected, "logprobs")), 2e-5);
  EXPECT_LT(testing::largest_difference(found.entropy, numbers(expected, "entropy")), 2e-5);

  std::vector<float> weights;
  for (int64_t i = 0; i < found.logprobs.size(0); ++i) weights.push_back(static_cast<float>(1 + i % 3));
  backward((found.logprobs * at::tensor(weights)).sum() + 0.1 * found.entropy.sum());
  const Json::Object& norms = expected.at("gradient_norms", "expected.json").as_object("gradient_norms");
  const auto table = parameter_layout(model->config(), model->places());
  EXPECT_EQ(norms.size(), table.size());
  for (const WeightSlice& slice : table) {
    const double norm = model->parameters().gradient(slice.parameter).narrow(0, slice.row, slice.rows).norm().item<double>();
    const double wanted = expected.find("gradient_norms")->at(slice.name, "gradient_norms").as_number(slice.name);
    EXPECT_NEAR(norm, wanted, 1e-4 * wanted) << slice.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, ModelFamilies, ::testing::Values("llama3", "qwen3", "gpt2"));

}  // namespace
}  // namespace kedge
