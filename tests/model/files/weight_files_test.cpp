#include "kedge/model/files/weight_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TempFolder;

constexpr const char* kIndex = "model.safetensors.index.json";

// A file with these tensors of one number; each holds "NAME" padded to four bytes.
void write_tensors(const Path& path, const std::vector<std::string>& names) {
  std::vector<TensorEntry> entries;
  for (const std::string& name : names) entries.push_back({.name = name, .type = WeightType::f32, .shape = {1}});
  SafetensorsWriter writer(path, entries);
  for (std::string name : names) {
    name.resize(4, '.');
    writer.write(name);
  }
  writer.finish();
}

TEST(WeightFiles, OneFileHoldsAll) {
  const TempFolder folder;
  write_tensors(folder / "model.safetensors", {"b", "a"});
  const WeightFiles weights(folder.path());
  EXPECT_THAT(weights.names(), ElementsAre("a", "b"));
  EXPECT_EQ(weights.bytes("a"), "a...");
  weights.drop("a");
  EXPECT_EQ(weights.bytes("a"), "a...");
  EXPECT_EQ(weights.find("b")->name, "b");
  EXPECT_EQ(weights.find("c"), nullptr);
  EXPECT_EQ(weights.where("a"), (folder / "model.safetensors").string() + ": tensor a");
}

TEST(WeightFiles, ATensorThatIsNotThereIsNamedWithItsLikes) {
  const TempFolder folder;
  write_tensors(folder / "model.safetensors", {"model.norm.weight", "x"});
  const WeightFiles weights(folder.path());
  EXPECT_EQ(error_of([&] { return weights.bytes("model.norm.wieght"); }),
            folder.path().string() + ": tensor model.norm.wieght is missing; nearest: model.norm.weight");
  EXPECT_THROW(weights.drop("y"), UsageError);
}

TEST(WeightFiles, ATiedTensorIsFoundUnderTheNameTheMetadataSays) {
  const TempFolder folder;
  SafetensorsWriter writer(folder / "model.safetensors", {{.name = "head", .type = WeightType::f32, .shape = {1}}},
                           {{"format", "pt"}, {"embed", "head"}, {"head", "nothing"}});
  writer.write("1234");
  writer.finish();
  const WeightFiles weights(folder.path());
  EXPECT_EQ(weights.bytes("embed"), "1234");
  EXPECT_EQ(weights.find("embed"), weights.find("head"));
  EXPECT_EQ(weights.find("format"), nullptr);
  EXPECT_EQ(weights.where("embed"), (folder / "model.safetensors").string() + ": tensor embed");
  EXPECT_THAT(weights.names(), ElementsAre("head"));
}

TEST(WeightFiles, ShardsAreFoundThroughTheirIndex) {
  const TempFolder folder;
  write_tensors(folder / "one.safetensors", {"a"});
  write_tensors(folder / "two.safetensors", {"b", "c"});
  folder.file(
      kIndex,
      R"({"metadata": {"total_size": 12}, "weight_map": {"c": "two.safetensors", "a": "one.safetensors", "b": "two.safetensors"}})");
  WeightFiles first(folder.path());
  const WeightFiles weights = std::move(first);
  EXPECT_THAT(weights.names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(weights.bytes("a"), "a...");
  EXPECT_EQ(weights.bytes("c"), "c...");
  EXPECT_EQ(weights.where("c"), (folder / "two.safetensors").string() + ": tensor c");
}

TEST(WeightFiles, AnIndexThatTheShardsContradictIsRefused) {
  const TempFolder folder;
  const std::string index = (folder / kIndex).string();
  const auto fault = [&](const std::string& weight_map) {
    folder.file(kIndex, R"({"weight_map": )" + weight_map + "}");
    return error_of([&] { return WeightFiles(folder.path()); });
  };
  write_tensors(folder / "one.safetensors", {"a"});
  write_tensors(folder / "two.safetensors", {"a", "b"});
  EXPECT_EQ(fault(R"({"a": "three.safetensors"})"),
            index + ": names three.safetensors, which is not in the folder; an incomplete download?");
  EXPECT_EQ(fault(R"({"a": "one.safetensors", "b": "one.safetensors"})"),
            index + ": says that one.safetensors holds tensor b, but it does not");
  EXPECT_EQ(fault(R"({"a": "one.safetensors", "b": "two.safetensors"})"),
            (folder / "one.safetensors").string() + ": tensor a is in two.safetensors too");
  EXPECT_EQ(fault("{}"), index + ": weight_map: names no tensor");
  EXPECT_EQ(fault("[]"), index + ": weight_map: expected an object, found []");
  EXPECT_EQ(fault(R"({"a": 3})"), index + ": weight_map.a: expected a string, found 3");
}

TEST(WeightFiles, AnIndexNamesOnlyFilesOfItsFolder) {
  const TempFolder folder;
  for (const std::string name : {"", ".", "..", "../model.safetensors", "/etc/passwd", "a/b", "a\\\\b", "a\\u0000b"}) {
    folder.file(kIndex, R"({"weight_map": {"a": ")" + name + "\"}}");
    EXPECT_THAT(error_of([&] { return WeightFiles(folder.path()); }),
                HasSubstr("weight_map.a: expected the name of a file in the folder, found"))
        << name;
  }
  folder.file(kIndex, R"({"weight_map": {"a": ")" + std::string(5000, 'x') + "\"}}");
  EXPECT_THAT(error_of([&] { return WeightFiles(folder.path()); }), HasSubstr("which is not in the folder"));
}

TEST(WeightFiles, PickledWeightsAreRefusedWithTheWayToConvertThem) {
  for (const char* name :
       {"pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.pt", "consolidated.00.pth", "adapter_model.bin"}) {
    const TempFolder folder;
    folder.file(name, "x");
    folder.file("training_args.bin", "x");
    EXPECT_EQ(error_of([&] { return WeightFiles(folder.path()); }),
              str(folder.path().string(), ": no model.safetensors and no model.safetensors.index.json; found ", name,
                  ": pickled weights are not read, because reading them can run code; load them with Python's transformers (peft for an "
                  "adapter) and save_pretrained writes safetensors"));
    EXPECT_THAT(error_of([&] { return WeightFiles::single(folder / name); }), HasSubstr(str(name, ": pickled weights are not read")));
  }
}

TEST(WeightFiles, AFolderWithoutWeightsIsRefused) {
  const TempFolder folder;
  folder.file("optimizer.pt", "x");
  const std::string fault = folder.path().string() + ": no model.safetensors and no model.safetensors.index.json";
  EXPECT_EQ(error_of([&] { return WeightFiles(folder.path()); }), fault);
  folder.file("adapter_model.safetensors", "x");
  EXPECT_EQ(error_of([&] { return WeightFiles(folder.path()); }),
            fault + "; adapter_model.safetensors holds an adapter, which is not a model without its base");
  EXPECT_EQ(error_of([&] { return WeightFiles(folder / "none"); }), (folder / "none").string() + ": no such folder");
}

TEST(WeightFiles, AnAdapterIsReadByItsFile) {
  const TempFolder folder;
  write_tensors(folder / "adapter_model.safetensors", {"lora"});
  const WeightFiles weights = WeightFiles::single(folder / "adapter_model.safetensors");
  EXPECT_EQ(weights.bytes("lora"), "lora");
  EXPECT_EQ(weights.where("no"), (folder / "adapter_model.safetensors").string() + ": tensor no");
}

TEST(WeightFiles, ReadARealFolderAndARealAdapter) {
  KEDGE_NEEDS_ASSET("models/tinystories-656k");
  const WeightFiles weights(testing::asset("models/tinystories-656k"));
  const TensorEntry* embeddings = weights.find("model.embed_tokens.weight");
  ASSERT_NE(embeddings, nullptr);
  EXPECT_EQ(embeddings->name, "lm_head.weight");
  EXPECT_THAT(embeddings->shape, ElementsAre(2048, 128));
  const WeightFiles adapter = WeightFiles::single(testing::asset("models/trl-kto-gpt2-lora/adapter_model.safetensors"));
  EXPECT_THAT(adapter.names(), ::testing::Each(HasSubstr("lora_")));
}

}  // namespace
}  // namespace kedge
