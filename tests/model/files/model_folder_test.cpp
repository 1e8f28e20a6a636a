#include "kedge/model/files/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/content_hash.h"

#include "tests/support/expect_error.h"
#include "tests/support/scoped_variable.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::ScopedVariable;
using testing::TempFolder;

constexpr const char* kHash = "0123456789abcdef0123456789abcdef01234567";

std::string folder_fault(const std::string& given) {
  return error_of([&] { return find_model_folder(given, "--model"); });
}

void put(const Path& file, std::string_view content = "{}") {
  make_folder(file.parent_path());
  write_atomic(file, content);
}

// A cache at `hub` that holds the model of this folder name; returns its snapshot.
Path make_cached(const Path& hub, const std::string& name) {
  put(hub / name / "refs/main", kHash);
  put(hub / name / "snapshots" / kHash / "config.json");
  return hub / name / "snapshots" / kHash;
}

TEST(ModelFolder, AFolderIsItself) {
  const TempFolder folder;
  put(folder / "config.json");
  EXPECT_EQ(find_model_folder(folder.path().string(), "--model"), folder.path());
}

TEST(ModelFolder, ANameIsLookedForInTheHuggingFaceCache) {
  const TempFolder folder;
  const ScopedVariable hub("HF_HUB_CACHE", folder.path().string());
  const Path snapshot = make_cached(folder.path(), "models--Org--Name-1.5");
  EXPECT_EQ(find_model_folder("Org/Name-1.5", "--model"), snapshot);
  const Path short_name = make_cached(folder.path(), "models--gpt2x");
  EXPECT_EQ(find_model_folder("gpt2x", "--model"), short_name);
  put(folder / "models--gpt2x/refs/main", std::string(kHash) + "\n");
  EXPECT_EQ(find_model_folder("gpt2x", "--model"), short_name);
}

TEST(ModelFolder, TheCacheIsWhereTheEnvironmentSays) {
  const TempFolder folder;
  const std::string home = folder.path().string();
  const ScopedVariable user("HOME", home);
  const ScopedVariable none("HF_HUB_CACHE", std::nullopt), no_home("HF_HOME", std::nullopt), no_cache("XDG_CACHE_HOME", std::nullopt);
  const auto expect_at = [&](const char* hub) {
    const Path snapshot = make_cached(folder / hub, "models--Org--Name");
    EXPECT_EQ(find_model_folder("Org/Name", "--model"), snapshot);
  };
  expect_at(".cache/huggingface/hub");
  const ScopedVariable cache("XDG_CACHE_HOME", home + "/x");
  expect_at("x/huggingface/hub");
  const ScopedVariable hf_home("HF_HOME", "~/y");
  expect_at("y/hub");
  const ScopedVariable hub("HF_HUB_CACHE", home + "/z");
  expect_at("z");
  const ScopedVariable empty("HF_HUB_CACHE", "");
  expect_at("y/hub");
}

TEST(ModelFolder, ANameThatIsNowhereSaysWhereWasLooked) {
  const TempFolder folder;
  const ScopedVariable hub("HF_HUB_CACHE", folder.path().string());
  EXPECT_EQ(folder_fault("Org/None"),
            str("--model: no model Org/None; looked for the folder ", (std::filesystem::current_path() / "Org/None").string(),
                " and in the Hugging Face cache for ", (folder / "models--Org--None").string(),
                ". kedge downloads nothing; `hf download Org/None` fetches it"));
  EXPECT_EQ(folder_fault(""), "--model: expected a model folder, or Org/Name of a model in the Hugging Face cache");
}

TEST(ModelFolder, APathIsNotLookedForInTheCache) {
  const TempFolder folder;
  const ScopedVariable hub("HF_HUB_CACHE", folder.path().string());
  for (const std::string given : {"/no/such", "./none", "a/b/c", "../x", "Org/..", "~/none", "a b", "none/", "Org/.x"})
    EXPECT_THAT(folder_fault(given), HasSubstr(": no such folder; a model folder holds config.json")) << given;
  EXPECT_THAT(folder_fault(std::string(5000, 'x')), HasSubstr("no model xxx"));
}

TEST(ModelFolder, AHalfDownloadedModelIsCalledThat) {
  const TempFolder folder;
  const ScopedVariable hub("HF_HUB_CACHE", folder.path().string());
  const std::string model = (folder / "models--m").string();
  make_folder(model);
  EXPECT_EQ(folder_fault("m"), "--model: " + model + " has no refs/main: an incomplete download?");
  put(model + "/refs/main", kHash);
  EXPECT_EQ(folder_fault("m"),
            "--model: " + model + "/refs/main names the snapshot " + kHash + ", which does not exist: an incomplete download?");
  put(model + "/refs/main", "../../elsewhere");
  EXPECT_EQ(folder_fault("m"), model + "/refs/main: expected the name of a snapshot, found \"../../elsewhere\"");
}

TEST(ModelFolder, OtherFormatsAreRefusedWithWhatToDo) {
  const TempFolder folder;
  EXPECT_THAT(folder_fault(folder.file("m.nemo", "")), HasSubstr("m.nemo: a NeMo checkpoint is not read; NeMo itself writes it"));
  EXPECT_THAT(folder_fault(folder.file("m.gguf", "")), HasSubstr("m.gguf: GGUF files are not read; name the Hugging Face folder"));
  for (const char* name : {"m.bin", "m.pt", "m.pth"})
    EXPECT_THAT(folder_fault(folder.file(name, "")), HasSubstr(": pickled weights are not read, because")) << name;
  EXPECT_THAT(folder_fault(folder.file("model.safetensors", "")),
              HasSubstr("model.safetensors: is a file; a model folder holds config.json"));
}

TEST(ModelFolder, NemoFoldersAreKnownByWhatTheyHold) {
  for (const char* weights : {"model_weights/x", "weights/x"}) {
    const TempFolder folder;
    put(folder / "model_config.yaml");
    put(folder / weights);
    EXPECT_THAT(folder_fault(folder.path().string()), HasSubstr("NeMo itself writes it as a Hugging Face folder: `nemo llm export"));
  }
  const TempFolder folder;
  put(folder / "context/model.yaml");
  put(folder / "weights/x");
  EXPECT_THAT(folder_fault(folder.path().string()), HasSubstr("NeMo itself writes it"));
}

TEST(ModelFolder, AFolderWithoutAConfigIsRefused) {
  const TempFolder folder;
  const std::string here = "--model: " + folder.path().string();
  EXPECT_EQ(folder_fault(folder.path().string()),
            here +
                ": no config.json; a model folder holds config.json, model.safetensors (or shards with "
                "model.safetensors.index.json) and the tokenizer's files");
  put(folder / "adapter_config.json", R"({"base_model_name_or_path": "gpt2"})");
  EXPECT_EQ(folder_fault(folder.path().string()),
            here + ": is an adapter, not a model: name its base model here (adapter_config.json says gpt2)");
  put(folder / "adapter_config.json");
  EXPECT_EQ(folder_fault(folder.path().string()), here + ": is an adapter, not a model: name its base model here");
}

TEST(ModelFolder, RunsAndCheckpointsHaveOneInside) {
  const TempFolder folder;
  const std::string here = "--model: " + folder.path().string() + ": ";
  make_folder(folder / "checkpoints");
  EXPECT_EQ(folder_fault(folder.path().string()), here + "a run that has not written a model yet; give one of its checkpoints, " +
                                                      (folder / "checkpoints/NAME").string() +
                                                      ", or take the best or newest: kedge export " + folder.path().string() + " OUT");
  put(folder / "model/adapter_config.json");
  EXPECT_THAT(folder_fault(folder.path().string()), HasSubstr(here + "its model/ holds adapters, which need their base model"));
  put(folder / "model/config.json");
  EXPECT_EQ(find_model_folder(folder.path().string(), "--model"), folder / "model");
}

TEST(ModelFolder, OfARunThatWentOnTheOldModelIsTakenOnlyByItsOwnName) {
  const TempFolder folder;
  const std::string run = folder.path().string();
  const Path model = folder / "model";
  put(model / "config.json");
  put(folder / "run.json", R"([{"max_steps": 6}])");
  EXPECT_EQ(find_model_folder(run, "--model"), model) << "as its summary is written next";
  put(folder / "summary.json", R"({"reason": "complete", "step": 6, "max_steps": 6, "starts": 1})");
  EXPECT_EQ(find_model_folder(run, "--model"), model);
  put(folder / "run.json", R"([{"max_steps": 6}, {"max_steps": 6}])");  // which had nothing left to do
  EXPECT_EQ(find_model_folder(run, "--model"), model);
  const std::string refusal = "--model: " + run + ": a run that went on after it wrote its model, and is not complete; give one of its " +
                              "checkpoints, " + run + "/checkpoints/NAME, or take the best or newest: kedge export " + run +
                              " OUT. The earlier model is " + model.string();
  put(folder / "run.json", R"([{"max_steps": 6}, {"max_steps": 10}])");
  EXPECT_EQ(folder_fault(run), refusal);
  put(folder / "summary.json", R"({"reason": "SIGTERM", "step": 8, "max_steps": 10, "starts": 2})");
  EXPECT_EQ(folder_fault(run), refusal);
  EXPECT_EQ(find_model_folder(model.string(), "--model"), model);
  put(folder / "summary.json", R"({"reason": "complete", "step": 10, "max_steps": 10, "starts": 2})");
  EXPECT_EQ(find_model_folder(run, "--model"), model);
}

TEST(ModelFolder, OfACheckpointTheModelIsAsItWasSaved) {
  const TempFolder folder;
  const std::string checkpoint = folder.path().string(), weights = "model/model.safetensors";
  put(folder / "model/config.json");
  put(folder / "meta.json", str(R"({"hashes": {"model/config.json": ")", content_hash("{}"), R"(", ")", weights, R"(": ")",
                                content_hash("0123"), R"(", "state/state.json": "not read"}})"));
  EXPECT_EQ(folder_fault(checkpoint), "--model: " + checkpoint + ": " + weights + " is missing");
  put(folder / weights, "0122");
  EXPECT_EQ(folder_fault(checkpoint), "--model: " + checkpoint + ": " + weights + ": its bytes are not those that were saved");
  put(folder / weights, "0123");
  EXPECT_EQ(find_model_folder(checkpoint, "--model"), folder / "model");
  put(folder / weights, "0122");
  EXPECT_EQ(find_model_folder(checkpoint, "--model"), folder / "model") << "bytes are compared once";
}

TEST(ModelFolder, ACheckpointFromBeforeThereWereHashesIsTaken) {
  const TempFolder folder;
  put(folder / "model/config.json");
  put(folder / "meta.json", R"({"files": {"model/config.json": 2}})");
  EXPECT_EQ(find_model_folder(folder.path().string(), "--model"), folder / "model");
}

TEST(ModelFolder, CompanionsAreCopiedByteForByteAndNothingElse) {
  const TempFolder folder;
  const Path from = folder / "from", to = folder / "to/new";
  const std::string bytes("\0\xFF\r\n", 4);
  for (const char* name : {"tokenizer.json", "chat_template.jinja", "additional_chat_templates/rag.jinja", "generation_config.json"})
    put(from / name, bytes);
  for (const char* name : {"config.json", "model.safetensors", "README.md", "LICENSE", "preprocessor_config.json"}) put(from / name);
  put(folder / "blob", "linked");
  std::filesystem::create_symlink(folder / "blob", from / "merges.txt");

  const auto names =
      ElementsAre("additional_chat_templates/rag.jinja", "chat_template.jinja", "generation_config.json", "merges.txt", "tokenizer.json");
  EXPECT_THAT(companion_files(from), names);
  copy_companions(from, to);
  EXPECT_THAT(companion_files(to), names);
  EXPECT_EQ(read_text(to / "tokenizer.json"), bytes);
  EXPECT_EQ(read_text(to / "additional_chat_templates/rag.jinja"), bytes);
  EXPECT_EQ(read_text(to / "merges.txt"), "linked");
  EXPECT_FALSE(std::filesystem::is_symlink(to / "merges.txt"));
  EXPECT_FALSE(std::filesystem::exists(to / "config.json"));
  EXPECT_EQ(error_of([&] { copy_companions(folder / "none", to); }), (folder / "none").string() + ": no such folder");
  copy_companions(to, to);
  EXPECT_EQ(read_text(to / "tokenizer.json"), bytes);
}

}  // namespace
}  // namespace kedge
