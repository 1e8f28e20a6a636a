#include "kedge/model/files/model_snapshot.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <thread>

#include "kedge/core/autograd.h"
#include "kedge/model/files/peft_files.h"

#include "tests/support/temp_folder.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::TempFolder;
using testing::tiny_model;

std::map<std::string, std::string> files_of(const Path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (is_file(entry.path())) files[entry.path().lexically_relative(folder).string()] = read_text(entry.path());
  return files;
}

// Numbers that bf16 does not hold, so that rounding twice or too early would show.
void train_a_little(Model& model, uint64_t seed) { testing::scatter_weights(model.trained(), seed, 0.001); }

// What a snapshot writes after the weights have changed, and what was written before.
struct Folders {
  std::map<std::string, std::string> before, after;
};
Folders folders_of(Model& model, const SaveOptions& options) {
  const TempFolder before, after;
  train_a_little(model, 70);
  if (model.adapters() != nullptr) {
    save_adapter(model, before.path(), "org/base");
    if (options.companions) write_atomic(before / "tokenizer.json", read_text(*options.companions / "tokenizer.json"));
  } else {
    save_model(model, before.path(), options);
  }
  const ModelSnapshot snapshot(model);
  train_a_little(model, 80);
  std::jthread([&] { snapshot.save(after.path(), options, "org/base"); }).join();
  return {files_of(before.path()), files_of(after.path())};
}

TEST(ModelSnapshot, WritesTheModelAsItWasByteForByte) {
  const TempFolder companions;
  write_atomic(companions / "tokenizer.json", "{}");
  for (const char* family : {testing::kTinyLlama, testing::kTinyQwen3, testing::kTinyGpt2})
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
      for (const at::ScalarType written : {at::kFloat, at::kBFloat16}) {
        const auto model = tiny_model(family, {.dtype = dtype, .trainable = true});
        const Folders found = folders_of(*model, {.dtype = written, .companions = companions.path()});
        EXPECT_EQ(found.before.size(), 3U);
        EXPECT_EQ(found.before, found.after) << family;
      }
}

TEST(ModelSnapshot, ShardsAndAScoreHeadComeOutAsTheyWere) {
  const auto model = tiny_model(testing::kTinyLlama, {.dtype = at::kBFloat16, .trainable = true}, {HeadKind::score, 2, true});
  const Folders found = folders_of(*model, {.dtype = at::kFloat, .max_shard_bytes = 8000, .companions = {}});
  EXPECT_GT(found.before.size(), 4U);
  EXPECT_EQ(found.before, found.after);
}

TEST(ModelSnapshot, AFrozenModelIsCopiedInItsOwnType) {
  const auto model = tiny_model(testing::kTinyLlama, {.dtype = at::kBFloat16});
  const Folders found = folders_of(*model, {});
  EXPECT_EQ(found.before, found.after);
}

TEST(ModelSnapshot, OfAdaptersItHoldsThemAloneWithTheirHead) {
  const TempFolder companions;
  write_atomic(companions / "tokenizer.json", "{}");
  for (const bool score : {false, true})
    for (const bool enabled : {true, false}) {
      const auto model =
          tiny_model(testing::kTinyLlama, {.dtype = at::kBFloat16}, score ? HeadOptions{HeadKind::score, 2, true} : HeadOptions{});
      model->add_adapters(LoraConfig{}, true);
      model->adapters()->initialise(1);
      model->adapters()->set_enabled(enabled);
      const Folders found = folders_of(*model, {.dtype = {}, .companions = companions.path()});
      EXPECT_EQ(found.before.size(), 3U);
      EXPECT_TRUE(found.before.contains("adapter_model.safetensors"));
      EXPECT_EQ(found.before, found.after);
    }
}

TEST(ModelSnapshot, OutlivesTheModel) {
  const TempFolder before, after;
  auto model = tiny_model(testing::kTinyLlama);
  save_model(*model, before.path());
  const ModelSnapshot snapshot(*model);
  model.reset();
  snapshot.save(after.path(), {}, {});
  EXPECT_EQ(files_of(before.path()), files_of(after.path()));
}

}  // namespace
}  // namespace kedge
