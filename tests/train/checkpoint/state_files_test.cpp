#include "kedge/train/checkpoint/state_files.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"
#include "kedge/train/checkpoint/weights_hash.h"
#include "kedge/train/optim/optimizer.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::normals;
using testing::same_bits;
using testing::TempFolder;

TEST(StateFiles, TensorsAndNumbersComeBackWithEveryBit) {
  const TempFolder temp;
  const Tensor moments = normals({7}, 1, 1, at::kBFloat16), weights = normals({3, 5}, 2) * 1e-30;
  StateSnapshot snapshot;
  snapshot.add("moments", moments);
  snapshot.add("weights", weights);
  snapshot.add("empty", at::empty({0}));
  snapshot.set("updates", int64_t{1} << 60U);
  snapshot.set("rate", 0.1);
  snapshot.write(temp / "state");
  const StateFiles files(temp / "state");
  const Tensor found_moments = at::zeros({7}, at::kBFloat16), found_weights = at::zeros({3, 5});
  files.read("moments", found_moments);
  files.read("weights", found_weights);
  EXPECT_TRUE(same_bits(found_moments, moments));
  EXPECT_TRUE(same_bits(found_weights, weights));
  EXPECT_EQ(files.at("updates").as_integer("updates"), int64_t{1} << 60U);
  EXPECT_EQ(files.at("rate").as_number("rate"), 0.1);
  EXPECT_EQ(files.hash("weights"), weights_hash(weights.contiguous().view({-1})));
}

TEST(StateFiles, ASnapshotDoesNotSeeWhatHappensLater) {
  const TempFolder temp;
  const Tensor tensor = at::ones({4});
  StateSnapshot snapshot;
  snapshot.add("x", tensor);
  tensor.fill_(2);
  snapshot.write(temp / "state");
  const Tensor found = at::zeros({4});
  StateFiles(temp / "state").read("x", found);
  EXPECT_TRUE(same_bits(found, at::ones({4})));
}

TEST(StateFiles, APartIsReadAloneAndATakenTensorIsNotCopied) {
  const TempFolder temp;
  StateSnapshot snapshot;
  const Tensor all = normals({300}, 1), narrow = normals({300}, 2, 1, at::kBFloat16);
  snapshot.take("x", all);
  snapshot.add("y", narrow);
  all[7].fill_(5);
  snapshot.write(temp / "state");
  const StateFiles files(temp / "state");
  const Tensor part = at::zeros({128}), short_part = at::zeros({44}, at::kBFloat16), none = at::zeros({0});
  files.read_part("x", {.begin = 5, .size = 300}, part);
  files.read_part("y", {.begin = 256, .size = 300}, short_part);
  files.read_part("x", {.begin = 300, .size = 300}, none);
  EXPECT_TRUE(same_bits(part, all.narrow(0, 5, 128)));
  EXPECT_EQ(part[2].item<float>(), 5);
  EXPECT_TRUE(same_bits(short_part, narrow.narrow(0, 256, 44)));
  EXPECT_EQ(error_of([&] {
              files.read_part("x", {.begin = 0, .size = 256}, part);
              return 0;
            }),
            (temp / "state" / "state.safetensors").string() + ": x has the shape [300], expected [256]");
}

// Three ranks, of which the second has nothing to write.
TEST(StateFiles, PartsOfSeveralRanksAreOneTensor) {
  const TempFolder temp;
  const Tensor all = normals({300}, 1);
  StateSnapshot first, last;
  first.set("step", 1);
  first.add_part("x", {.begin = 0, .size = 300}, all.narrow(0, 0, 100));
  first.add_part("x", {.begin = 250, .size = 300}, all.narrow(0, 250, 50));
  first.add_part("x", {.begin = 100, .size = 300}, all.narrow(0, 100, 0));
  last.add_part("x", {.begin = 100, .size = 300}, all.narrow(0, 100, 150));
  first.write(temp / "state");
  last.write_tensors(temp / "state", 2);
  const StateFiles files(temp / "state");
  const Tensor whole = at::zeros({300}), part = at::zeros({200});
  files.read("x", whole);
  files.read_part("x", {.begin = 60, .size = 300}, part);
  EXPECT_TRUE(same_bits(whole, all));
  EXPECT_TRUE(same_bits(part, all.narrow(0, 60, 200)));
  EXPECT_EQ(files.hash("x"), weights_hash(all));
  const auto read = [&](const StateFiles& from, int64_t size) {
    return error_of([&] {
      from.read_part("x", {.begin = 0, .size = size}, part);
      return 0;
    });
  };
  const std::string file = (temp / "state" / "state.safetensors").string();
  EXPECT_EQ(read(files, 400), file + ": x@0/300 is part of 300 elements, expected 400");
  remove_tree(temp / "state" / "state.2.safetensors");
  EXPECT_EQ(read(StateFiles(temp / "state"), 300), file + ": x@250/300 follows on 100 elements: a part of x is missing");
}

TEST(StateFiles, OneWithoutCopiesTakesNoMemory) {
  const TempFolder temp;
  const Tensor tensor = at::ones({4});
  StateSnapshot snapshot(false);
  snapshot.add("x", tensor);
  tensor.fill_(2);  // as nobody should: it shows that the tensor is the same
  snapshot.write(temp / "state");
  const Tensor found = at::zeros({4});
  StateFiles(temp / "state").read("x", found);
  EXPECT_TRUE(same_bits(found, at::full({4}, 2.0F)));
}

TEST(StateFiles, WhatDoesNotFitIsNamed) {
  const TempFolder temp;
  StateSnapshot snapshot;
  snapshot.add("x", at::ones({4}));
  snapshot.write(temp / "state");
  const StateFiles files(temp / "state");
  const std::string file = (temp / "state" / "state.safetensors").string();
  const auto read = [&](const std::string& name, const Tensor& to) {
    return error_of([&] {
      files.read(name, to);
      return 0;
    });
  };
  EXPECT_EQ(read("y", at::zeros({4})), file + ": no y");
  EXPECT_EQ(read("x", at::zeros({2, 2})), file + ": x has the shape [4], expected [2, 2]");
  EXPECT_EQ(read("x", at::zeros({4}, at::kBFloat16)), file + ": x is F32, expected BF16");
  EXPECT_EQ(error_of([&] { return files.at("step"); }), (temp / "state" / "state.json").string() + ": no \"step\" field");
}

void train(Model& model, Optimizer& optimizer, int64_t from, int64_t to) {
  for (int64_t step = from; step < to; ++step) {
    optimizer.zero_gradients();
    backward(testing::token_loss(model, testing::batch_of({5 + step, 9})));
    optimizer.step(0.01, clip_coefficient(optimizer.gradient_norm(), 1));
  }
}

// Three steps, a snapshot, three more: a fresh model that reads the snapshot takes the very same steps.
TEST(StateFiles, AnOptimizerGoesOnBitForBit) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const MomentType moments : {MomentType::fp32, MomentType::bf16}) {
      const TempFolder temp;
      const StorageOptions storage{.dtype = dtype, .trainable = true};
      const auto model = testing::tiny_model(testing::kTinyLlama, storage);
      Optimizer optimizer({.moments = moments}, model->trained());
      train(*model, optimizer, 0, 3);
      StateSnapshot snapshot;
      snapshot.add("master", model->trained().flat_master());
      optimizer.save(snapshot);
      snapshot.write(temp / "state");
      train(*model, optimizer, 3, 6);

      const auto resumed = testing::tiny_model(testing::kTinyLlama, storage);
      Optimizer fresh({.moments = moments}, resumed->trained());
      const StateFiles files(temp / "state");
      files.read("master", resumed->trained().flat_master());
      resumed->trained().publish();
      fresh.load(files);
      EXPECT_EQ(fresh.num_steps(), 3);
      train(*resumed, fresh, 3, 6);
      EXPECT_TRUE(same_bits(resumed->trained().flat_master(), model->trained().flat_master()));
      EXPECT_TRUE(same_bits(resumed->trained().flat(), model->trained().flat()));
      EXPECT_TRUE(same_bits(fresh.first_moment(), optimizer.first_moment()));
      EXPECT_TRUE(same_bits(fresh.second_moment(), optimizer.second_moment()));
    }
}

}  // namespace
}  // namespace kedge
