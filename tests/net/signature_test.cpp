#include "kedge/net/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::Pair;

std::vector<TensorSpec> prompt_inputs() {
  return {{.name = "sentences", .type = WireType::bytes, .dims = {-1}, .optional = true},
          {.name = "tokens", .type = WireType::int64, .dims = {-1}, .optional = true},
          {.name = "sequence_lengths", .type = WireType::int64, .dims = {-1}, .optional = true}};
}

ModelSignature reward_model() {
  return {.name = "reward_model",
          .max_batch_size = 9999999,
          .inputs = prompt_inputs(),
          .outputs = {{.name = "rewards", .type = WireType::fp32, .dims = {1}}},
          .preferred_batch_sizes = {8},
          .max_queue_delay_us = 2000};
}

ModelSignature critic_save() {
  return {.name = "critic_save",
          .inputs = {{.name = "dummy_var", .type = WireType::int64, .dims = {1}}},
          .outputs = {{.name = "status", .type = WireType::int64, .dims = {1}}}};
}

constexpr std::string_view kRewardConfig = R"({"name":"reward_model","platform":"","backend":"python","max_batch_size":9999999,)"
                                           R"("version_policy":{"latest":{"num_versions":1}},)"
                                           R"("input":[{"name":"sentences","data_type":"TYPE_STRING","dims":[-1],"optional":true},)"
                                           R"({"name":"tokens","data_type":"TYPE_INT64","dims":[-1],"optional":true},)"
                                           R"({"name":"sequence_lengths","data_type":"TYPE_INT64","dims":[-1],"optional":true}],)"
                                           R"("output":[{"name":"rewards","data_type":"TYPE_FP32","dims":[1]}],)"
                                           R"("instance_group":[{"name":"reward_model_0","kind":"KIND_CPU","count":1}],)"
                                           R"("dynamic_batching":{"preferred_batch_size":[8],"max_queue_delay_microseconds":2000},)"
                                           R"("parameters":{},"model_warmup":[]})";

TEST(Signature, MetadataShowsTheRowsFirst) {
  ModelSignature critic = reward_model();
  critic.name = "critic_infer";
  critic.outputs = {{.name = "values", .type = WireType::fp32, .dims = {-1}}, {.name = "rewards", .type = WireType::fp32, .dims = {-1}}};
  EXPECT_EQ(model_metadata(critic).dump_compact(),
            R"({"name":"critic_infer","versions":["1"],"platform":"python",)"
            R"("inputs":[{"name":"sentences","datatype":"BYTES","shape":[-1,-1]},)"
            R"({"name":"tokens","datatype":"INT64","shape":[-1,-1]},)"
            R"({"name":"sequence_lengths","datatype":"INT64","shape":[-1,-1]}],)"
            R"("outputs":[{"name":"values","datatype":"FP32","shape":[-1,-1]},{"name":"rewards","datatype":"FP32","shape":[-1,-1]}]})");
  EXPECT_EQ(model_metadata(critic_save()).dump_compact(), R"({"name":"critic_save","versions":["1"],"platform":"python",)"
                                                          R"("inputs":[{"name":"dummy_var","datatype":"INT64","shape":[1]}],)"
                                                          R"("outputs":[{"name":"status","datatype":"INT64","shape":[1]}]})");
}

TEST(Signature, TheConfigurationIsTheOneClientsKnow) {
  EXPECT_EQ(model_config(reward_model()).dump_compact(), kRewardConfig);
  ModelSignature save = critic_save();
  save.parameters = {{"tokenizer", "sha256:12"}, {"note", "a \"b\""}};
  EXPECT_EQ(model_config(save).dump_compact(),
            R"({"name":"critic_save","platform":"","backend":"python","max_batch_size":0,"version_policy":{"latest":{"num_versions":1}},)"
            R"("input":[{"name":"dummy_var","data_type":"TYPE_INT64","dims":[1]}],)"
            R"("output":[{"name":"status","data_type":"TYPE_INT64","dims":[1]}],)"
            R"("instance_group":[{"name":"critic_save_0","kind":"KIND_CPU","count":1}],)"
            R"("parameters":{"tokenizer":{"string_value":"sha256:12"},"note":{"string_value":"a \"b\""}},"model_warmup":[]})");
}

TEST(Signature, OurConfigurationsReadBack) {
  EXPECT_EQ(read_model_config(Json::parse(kRewardConfig)), reward_model());
  ModelSignature save = critic_save();
  save.parameters = {{"tokenizer", "sha256:12"}};
  EXPECT_EQ(read_model_config(model_config(save)), save);
}

// As protobuf prints a configuration: 64-bit numbers may be texts, and there is much that does not matter here.
TEST(Signature, ForeignConfigurationsAreRead) {
  const ModelSignature signature = read_model_config(Json::parse(R"({
    "name": "linear", "platform": "", "backend": "python", "runtime": "", "version_policy": {"latest": {"num_versions": 1}},
    "max_batch_size": 128,
    "input": [{"name": "x", "data_type": "TYPE_FP16", "format": "FORMAT_NONE", "dims": ["-1", 3], "is_shape_tensor": false,
               "allow_ragged_batch": false, "optional": false}],
    "output": [{"name": "y", "data_type": "TYPE_STRING", "dims": ["1"], "label_filename": "", "is_shape_tensor": false}],
    "batch_input": [], "batch_output": [],
    "optimization": {"priority": "PRIORITY_DEFAULT", "input_pinned_memory": {"enable": true}},
    "dynamic_batching": {"preferred_batch_size": [4, 8], "max_queue_delay_microseconds": "100", "preserve_ordering": false},
    "instance_group": [{"name": "linear_0", "kind": "KIND_CPU", "count": 1, "gpus": []}],
    "parameters": {"backend": {"string_value": "py"}, "odd": {"other": 1}, "bare": "x"}, "model_warmup": []})"));
  EXPECT_EQ(signature, (ModelSignature{.name = "linear",
                                       .max_batch_size = 128,
                                       .inputs = {{"x", WireType::fp16, {-1, 3}}},
                                       .outputs = {{"y", WireType::bytes, {1}}},
                                       .preferred_batch_sizes = {4, 8},
                                       .max_queue_delay_us = 100,
                                       .parameters = {{"backend", "py"}}}));
  EXPECT_EQ(read_model_config(Json::parse(R"({"name": "bare"})")), ModelSignature{.name = "bare"});
  EXPECT_THAT(read_model_config(
                  Json::parse(R"({"name": "m", "dynamic_batching": {}, "parameters": [{"key": "a", "value": {"string_value": "b"}}, 3]})"))
                  .parameters,
              ElementsAre(Pair("a", "b")));
}

TEST(Signature, ConfigurationsThatMissSomethingSayWhat) {
  const auto fault = [](const std::string& config) {
    return error_of<Error>([&] {
      try {
        return read_model_config(Json::parse(config));
      } catch (const UsageError&) {
        throw Bug("a server's fault is not the user's");
      }
    });
  };
  EXPECT_EQ(fault("{}"), "model configuration: no \"name\" field");
  EXPECT_EQ(fault("[]"), "model configuration: expected an object, found []");
  const auto with_input = [](const std::string& input) { return R"({"name":"m","input":[)" + input + "]}"; };
  EXPECT_EQ(fault(with_input("{}")), "configuration of model m: input 0: no \"name\" field");
  EXPECT_EQ(fault(with_input(R"({"name":"x"})")), "configuration of model m: input \"x\": no \"data_type\" field");
  EXPECT_EQ(fault(with_input(R"({"name":"x","data_type":"INT64"})")), "configuration of model m: input \"x\": no data_type \"INT64\"");
  EXPECT_EQ(fault(with_input(R"({"name":"x","data_type":"TYPE_INT64"})")), "configuration of model m: input \"x\": no \"dims\" field");
  EXPECT_EQ(fault(with_input(R"({"name":"x","data_type":"TYPE_INT64","dims":["a"]})")),
            "configuration of model m: input \"x\": dims: expected an integer, found \"a\"");
  EXPECT_EQ(fault(R"({"name":"m","max_batch_size":"1.5"})"),
            "configuration of model m: max_batch_size: expected an integer, found \"1.5\"");
}

TEST(Signature, TheRowsOfARequestAreThoseOfItsInputs) {
  const WireTensor tokens = int64_tensor("tokens", {3, 2}, std::vector<int64_t>(6));
  const WireTensor lengths = int64_tensor("sequence_lengths", {3, 1}, std::vector<int64_t>(3));
  EXPECT_EQ(check_inputs(reward_model(), {.inputs = {lengths, tokens}}), 3);
  EXPECT_EQ(check_inputs(critic_save(), {.inputs = {int64_tensor("dummy_var", {1}, std::vector<int64_t>{9})}}), 1);
}

TEST(Signature, WantedOutputsComeInTheOrderOfTheDeclaration) {
  ModelSignature critic = reward_model();
  critic.outputs = {{.name = "values"}, {.name = "rewards"}};
  const Json all_binary = Json::Object{{"binary_data_output", true}};
  EXPECT_THAT(wanted_outputs(critic, {}), ElementsAre(OutputWish{"values", false}, OutputWish{"rewards", false}));
  EXPECT_THAT(wanted_outputs(critic, {.parameters = all_binary}), ElementsAre(OutputWish{"values", true}, OutputWish{"rewards", true}));
  EXPECT_THAT(wanted_outputs(critic, {.parameters = all_binary, .outputs = {{{"rewards", true}, {"values", false}}}}),
              ElementsAre(OutputWish{"values", false}, OutputWish{"rewards", true}));
  EXPECT_THAT(wanted_outputs(critic, {.outputs = {{{"rewards", false}}}}), ElementsAre(OutputWish{"rewards", false}));
}

TEST(Signature, OnlyAModelWithOneInputTakesBareData) {
  EXPECT_EQ(raw_input(critic_save()), (WireTensor{.name = "dummy_var", .type = WireType::int64, .shape = {1}}));
  EXPECT_EQ(raw_input(reward_model()), std::nullopt);
  ModelSignature one = reward_model();
  one.inputs.resize(1);
  EXPECT_EQ(raw_input(one), (WireTensor{.name = "sentences", .type = WireType::bytes, .shape = {1, -1}}));
}

}  // namespace
}  // namespace kedge
