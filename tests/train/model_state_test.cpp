#include "kedge/train/model_state.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::same_bits;
using testing::TempFolder;

std::unique_ptr<Model> network(bool trainable = true) {
  return testing::tiny_model(testing::kTinyLlama, {.dtype = at::kBFloat16, .trainable = trainable});
}

void change(Model& model) { testing::scatter_weights(model.trained(), 77, 0.1); }

// With a copy, what is written is what the model was; without one, it is written at once.
TEST(ModelState, TheWeightsComeBackWithEveryBit) {
  for (const bool copies : {true, false}) {
    const TempFolder temp;
    const auto model = network(), twin = network();
    change(*model);
    const Tensor wanted = model->parameters().flat_master().clone();
    StateSnapshot state(copies);
    const FolderWriter write = save_model_state(*model, state, {});
    if (copies) change(*model);
    state.write(temp / "state");
    write(temp / "model");
    load_model_state(*twin, StateFiles(temp / "state"));
    EXPECT_TRUE(same_bits(twin->parameters().flat_master(), wanted));
    EXPECT_TRUE(same_bits(twin->parameters().flat(), wanted.to(at::kBFloat16)));
    const auto loaded = load_model(temp / "model", {.storage = {.dtype = at::kBFloat16}});
    EXPECT_TRUE(same_bits(loaded->parameters().flat(), twin->parameters().flat()));
  }
}

TEST(ModelState, OfAdaptersOnlyTheyAreWritten) {
  const TempFolder temp;
  const auto model = network(false);
  model->add_adapters({}, true);
  model->adapters()->initialise(3);
  StateSnapshot state;
  const FolderWriter write = save_model_state(*model, state, {{}, "the base"});
  write(temp / "model");
  EXPECT_TRUE(is_file(temp / "model/adapter_model.safetensors"));
  EXPECT_FALSE(is_file(temp / "model/model.safetensors"));
  EXPECT_NE(read_text(temp / "model/adapter_config.json").find("the base"), std::string::npos);
  state.write(temp / "state");
  const Tensor wanted = model->trained().flat_master().clone();
  change(*model);
  load_model_state(*model, StateFiles(temp / "state"));
  EXPECT_TRUE(same_bits(model->trained().flat_master(), wanted));
}

}  // namespace
}  // namespace kedge
