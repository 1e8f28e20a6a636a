#include "kedge/train/checkpoint/model_state.h"

#include <gtest/gtest.h>

#include "kedge/train/checkpoint/weights_hash.h"

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
    EXPECT_EQ(saved_weights_hash(temp / "state"), weights_hash(wanted));
    EXPECT_TRUE(same_bits(twin->parameters().flat(), wanted.to(at::kBFloat16)));
    const auto loaded = load_model(temp / "model", {.storage = {.dtype = at::kBFloat16}});
    EXPECT_TRUE(same_bits(loaded->parameters().flat(), twin->parameters().flat()));
  }
}

TEST(ModelState, ANetworkThatOnlyComputesTakesThemToo) {
  const TempFolder temp;
  const auto model = network();
  change(*model);
  StateSnapshot state;
  static_cast<void>(save_model_state(*model, state, {}));
  state.write(temp / "state");
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto reader = testing::tiny_model(testing::kTinyLlama, {.dtype = dtype});
    load_model_state(*reader, StateFiles(temp / "state"));
    EXPECT_TRUE(same_bits(reader->parameters().flat(), model->parameters().flat_master().to(dtype)));
  }
}

TEST(ModelState, APrintTellsStartsApart) {
  const TempFolder temp;
  save_model(*testing::tiny_model(testing::kTinyLlama, {}), temp.path());
  const auto print = [&](const StorageOptions& storage, uint64_t head_seed = 1, std::optional<uint64_t> adapter_seed = {}) {
    const auto model = load_model(temp.path(), {.storage = storage, .head = HeadKind::score, .new_labels = 1, .seed = head_seed});
    if (adapter_seed) {
      model->add_adapters({}, true);
      model->adapters()->initialise(*adapter_seed);
    }
    return start_print(*model);
  };
  const StorageOptions fp32{.trainable = true}, bf16{.dtype = at::kBFloat16, .trainable = true}, frozen{}, narrow{.dtype = at::kBFloat16};
  EXPECT_EQ(print(fp32), print(fp32));
  EXPECT_EQ(print(fp32), print(bf16)) << "the master weights are the same";
  EXPECT_NE(print(fp32), print(fp32, 2)) << "the head is a small part of all";
  EXPECT_EQ(print(frozen, 1, 3), print(narrow, 1, 3));
  EXPECT_NE(print(frozen, 1, 3), print(frozen, 1, 4));
  EXPECT_NE(print(frozen, 1, 3), print(frozen, 2, 3));
  const auto model = network();
  const std::string before = start_print(*model);
  model->note("rope_theta", 5.0);
  EXPECT_NE(start_print(*model), before);
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
