#include "kedge/model/files/model_parts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kedge/core/random.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::TempFolder;

// What ranks would hold: the flat weights, cut at random places, given to them in turn.
std::vector<ModelParts> cut(const Model& model, size_t num_ranks, uint64_t seed) {
  const Tensor& flat = model.parameters().flat_master();
  const Random random(seed, 1);
  std::vector<int64_t> cuts = {0, flat.numel()};
  for (uint64_t i = 0; i < 12; ++i) cuts.push_back(static_cast<int64_t>(random.uniform(i) * static_cast<double>(flat.numel())));
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::vector<FlatRow>> rows(num_ranks);
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    rows[i % num_ranks].push_back({cuts[i], flat.narrow(0, cuts[i], cuts[i + 1] - cuts[i]).detach()});
  std::vector<ModelParts> parts;
  for (size_t rank = 0; rank < num_ranks; ++rank) parts.emplace_back(model, std::move(rows[rank]), rank == 0);
  return parts;
}

void expect_same_folders(const Path& one, const Path& other) {
  const std::vector<Path> files = files_below(one), others = files_below(other);
  ASSERT_EQ(files.size(), others.size());
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(files[i].filename(), others[i].filename());
    EXPECT_TRUE(read_text(files[i]) == read_text(others[i])) << files[i];
  }
}

void expect_same_bytes(const Model& model, const SaveOptions& options, uint64_t seed) {
  const TempFolder temp;
  save_model(model, temp / "alone", options);
  std::vector<ModelParts> parts = cut(model, 3, seed);
  std::reverse(parts.begin(), parts.end());  // the first rank need not be the first
  for (const ModelParts& part : parts) part.save(temp / "together", options);
  expect_same_folders(temp / "alone", temp / "together");
}

TEST(ModelParts, HaveTheBytesOfAFolderThatOneRankWrites) {
  for (const char* family : {testing::kTinyLlama, testing::kTinyMistral, testing::kTinyQwen3, testing::kTinyGpt2})
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const auto model = testing::tiny_model(family);
      for (uint64_t seed = 0; seed < 4; ++seed) {
        expect_same_bytes(*model, {.dtype = dtype}, seed);
        expect_same_bytes(*model, {.dtype = dtype, .max_shard_bytes = 8000}, seed);
      }
    }
}

TEST(ModelParts, OfAScoreModelTheHeadAndItsBiasToo) {
  expect_same_bytes(*testing::tiny_model(testing::kTinyLlama, {.trainable = true}, {HeadKind::score, 2, true}), {}, 1);
}

TEST(ModelParts, CompanionsAndConfigComeFromTheFirstRank) {
  const TempFolder temp;
  make_folder(temp / "base");
  temp.file("base/tokenizer.json", "{}");
  const auto model = testing::tiny_model(testing::kTinyLlama);
  const std::vector<ModelParts> parts = cut(*model, 2, 1);
  parts[1].save(temp / "model", {.companions = temp / "base"});
  EXPECT_EQ(list_folder(temp / "model").size(), 1U);
  parts[0].save(temp / "model", {.companions = temp / "base"});
  EXPECT_TRUE(is_file(temp / "model" / "tokenizer.json"));
  EXPECT_TRUE(is_file(temp / "model" / "config.json"));
}

TEST(ModelParts, AFileThatCannotBeWrittenIsNamed) {
  const TempFolder temp;
  make_folder(temp / "model.safetensors");
  const auto model = testing::tiny_model(testing::kTinyLlama);
  const auto save = [&] { cut(*model, 1, 1)[0].save(temp.path(), {}); };
  EXPECT_EQ(testing::error_of<Error>(save), (temp / "model.safetensors").string() + ": cannot be written: Is a directory");
}

}  // namespace
}  // namespace kedge
