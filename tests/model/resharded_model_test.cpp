// Weights that are trained in one layout and generated with in another.
#include "kedge/model/resharded_model.h"

#include <gtest/gtest.h>

#include "kedge/engine/engine.h"
#include "kedge/model/bucket_memory.h"

#include "tests/support/generation.h"
#include "tests/support/split_models.h"

namespace kedge {
namespace {

using testing::world;

const TensorRanks& ranks_of(int size) { return testing::mesh_of(size).tensor; }

void expect_weights(const Parameters& found, const Parameters& whole, const std::string& what) {
  const std::vector<ParameterPart> parts = found.parts();
  for (size_t i = 0; i < found.specs().size(); ++i) {
    const Tensor& all = whole.value(static_cast<int>(i));
    const Tensor wanted = parts.empty() ? all : testing::part_of(all, parts[i]);
    EXPECT_TRUE(found.value(static_cast<int>(i)).equal(wanted)) << what << ", parameter " << i;
  }
}

// Every pair of layouts that so many ranks can have.
TEST(ReshardedModel, HasTheSourcesWeights) {
  for (const char* family : testing::kSplitFamilies)
    for (const bool lora : {false, true})
      for (const Sharding kind : {Sharding::none, Sharding::optimizer, Sharding::all})
        for (int from = 1; from <= world().size(); from *= 2)
          for (int to = 1; to <= world().size(); to *= 2) {
            const std::string what = str(family, " from ", from, " to ", to);
            const auto whole = testing::tiny_model(family, {.device = testing::mesh().device});
            const auto source = testing::tiny_model(family, testing::storage_of(from, kind, !lora));
            if (lora) testing::add_lora(*whole), testing::add_lora(*source);
            ReshardedModel copy(*source, world(), ranks_of(to));
            EXPECT_FALSE(has_memory(copy.model().parameters().flat()));
            for (int round = 0; round < 2; ++round) {
              copy.fill();
              expect_weights(copy.model().parameters(), whole->parameters(), what);
              if (lora) expect_weights(copy.model().adapters()->parameters(), whole->adapters()->parameters(), what + " adapters");
              copy.empty();
              EXPECT_FALSE(has_memory(copy.model().parameters().flat()));
              // What is trained meanwhile is in the next copy.
              for (Model* model : {whole.get(), source.get()}) {
                Parameters& trained = model->trained();
                trained.write_rows(0, 0, testing::normals(trained.whole_specs()[0].shape, 90, 0.2));
                trained.publish();
              }
            }
          }
}

TEST(ReshardedModel, SendsNothingWhereEveryRankHasAll) {
  const auto source = testing::tiny_model(testing::kTinyLlama, testing::storage_of(1, Sharding::none));
  const ReshardedModel copy(*source, world(), ranks_of(world().size()));
  EXPECT_EQ(copy.bytes_sent(), 0);
}

TEST(ReshardedModel, GeneratesTheTextOfOneRank) {
  for (const char* family : testing::kSplitFamilies) {
    const auto whole = testing::tiny_model(family, {.device = testing::mesh().device});
    const auto source = testing::tiny_model(family, testing::storage_of(1, Sharding::all));
    ReshardedModel copy(*source, world(), ranks_of(world().size()));
    const auto generate = [](Engine& engine) {
      std::vector<GenerateRequest> requests;
      for (const auto& prompt : testing::prompts_of({3, 9, 5})) requests.push_back(testing::greedy_request(prompt, 14));
      std::vector<std::vector<int32_t>> texts;
      for (const std::vector<Completion>& answers : engine.generate(std::move(requests))) texts.push_back(answers.at(0).tokens);
      return texts;
    };
    Engine alone(*whole, {.memory = "8MiB"}), together(copy.model(), {.memory = "8MiB"});
    const auto wanted = generate(alone);
    for (int round = 0; round < 2; ++round) {
      copy.fill();
      EXPECT_EQ(generate(together), wanted) << family;
      copy.empty();
    }
  }
}

}  // namespace
}  // namespace kedge
