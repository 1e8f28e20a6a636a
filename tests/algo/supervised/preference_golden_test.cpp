// What TRL's own trainers compute for one batch with a tiny Llama whose reference has other weights, kept in tests/golden/preference (made
// by make_preference_goldens.py): the loss, the reported numbers and every gradient, in one micro-batch and in several.
#include <gtest/gtest.h>

#include "kedge/model/files/model_files.h"

#include "tests/support/assets.h"
#include "tests/support/golden_gradients.h"
#include "tests/support/preference_toy.h"

namespace kedge {
namespace {

struct Golden {
  Path folder = testing::source_folder() / "tests/golden/preference";
  Json expected = Json::parse(read_text(folder / "expected.json"));
  std::unique_ptr<Model> model = load_model(folder / "reference", {.storage = {.trainable = true}});
  std::unique_ptr<Tokenizer> tokenizer = make_byte_tokenizer();

  [[nodiscard]] double number(const char* key) const { return expected.at(key, "expected.json").as_number(key); }
};

// With the golden's reference, then the golden's policy.
void expect_golden(Golden& golden, const SupervisedTask& task, const std::string& name) {
  testing::begin_task(task, *golden.model);
  testing::copy_weights(*golden.model, *load_model(golden.folder / "policy", {.storage = {.trainable = true}}));
  const Json& wanted = golden.expected.at(name, "expected.json");
  for (const size_t micro_size : {6U, 2U, 1U}) {
    golden.model->parameters().zero_gradients();
    const testing::BatchNumbers found = testing::run_batch(task, micro_size);
    EXPECT_NEAR(found.loss, wanted.at("loss", name).as_number(name), 1e-5 * found.loss) << name << " in micro-batches of " << micro_size;
    for (const auto& [key, value] : wanted.as_object(name)) {
      const double number = value.as_number(key);
      ASSERT_TRUE(found.metrics.find(key)) << key;
      EXPECT_NEAR(*found.metrics.find(key), number, 1e-5 * std::max(1.0, std::abs(number))) << name << " " << key;
    }
    testing::expect_gradients(*golden.model, golden.folder / ("gradients_" + name + ".safetensors"));
  }
}

class DpoGolden : public ::testing::TestWithParam<std::pair<const char*, DpoLoss>> {};

TEST_P(DpoGolden, HasTheLossAndGradientsOfTrl) {
  Golden golden;
  DpoModelConfig config;
  config.data.data_prefix = testing::data_prefix(golden.folder / "pairs.jsonl");
  config.data.seq_length = 256;
  config.data.append_eod = true;
  config.loss.ref_policy_kl_penalty = golden.number("beta");
  config.loss.preference_loss = GetParam().second;
  expect_golden(golden, make_dpo_task(config, {golden.model, *golden.tokenizer, golden.model->config().vocab_size, "none"}),
                GetParam().first);
}

INSTANTIATE_TEST_SUITE_P(Trl, DpoGolden,
                         ::testing::Values(std::pair{"sigmoid", DpoLoss::dpo}, std::pair{"ipo", DpoLoss::ipo},
                                           std::pair{"hinge", DpoLoss::hinge}));

TEST(KtoGolden, HasTheLossAndGradientsOfTrl) {
  Golden golden;
  KtoModelConfig config;
  config.data.data_prefix = testing::data_prefix(golden.folder / "marked.jsonl");
  config.data.seq_length = 256;
  config.data.append_eod = true;
  config.loss.ref_policy_kl_penalty = golden.number("beta");
  config.loss.desirable_loss_weight = golden.number("desirable_weight");
  config.loss.undesirable_loss_weight = golden.number("undesirable_weight");
  expect_golden(golden, make_kto_task(config, {golden.model, *golden.tokenizer, golden.model->config().vocab_size, "none"}), "kto");
}

}  // namespace
}  // namespace kedge
