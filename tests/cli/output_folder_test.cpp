#include "cli/output_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge::cli {
namespace {

using kedge::testing::error_of;
using kedge::testing::TempFolder;

std::string fault(const Path& out, bool overwrite) {
  return error_of([&] {
    check_out_folder(out, overwrite);
    return 0;
  });
}

TEST(OutFolder, AnEmptyOneOrNoneMayBeWrittenTo) {
  const TempFolder folder;
  EXPECT_NO_THROW(check_out_folder(folder.path(), false));
  EXPECT_NO_THROW(check_out_folder(folder / "new", false));
}

TEST(OutFolder, WhatIsThereIsKeptUnlessItMayBeOverwritten) {
  const TempFolder folder;
  const Path file = folder.file("notes.txt", "mine");
  const std::string name = folder.path().string();
  EXPECT_EQ(fault(folder.path(), false), name + ": is not empty; --overwrite replaces the model in it");
  EXPECT_NO_THROW(check_out_folder(folder.path(), true));
  EXPECT_EQ(fault(file, true), file.string() + ": is a file where a folder is to be written");
}

TEST(OutFolder, OnlyTheFilesOfAModelAreRemoved) {
  const TempFolder folder;
  const std::vector<const char*> model = {
      "config.json",    "adapter_config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors",
      "tokenizer.json", "chat_template.jinja"};
  for (const char* name : model) folder.file(name, "{}");
  folder.file("notes.txt", "mine");
  remove_model_files(folder.path());
  for (const char* name : model) EXPECT_FALSE(is_file(folder / name)) << name;
  EXPECT_TRUE(is_file(folder / "notes.txt"));
  EXPECT_NO_THROW(remove_model_files(folder / "none"));
}

TEST(OutFolder, OneFolderMayHaveSeveralNames) {
  const TempFolder folder;
  make_folder(folder / "a");
  make_folder(folder / "b");
  std::filesystem::create_directory_symlink(folder / "a", folder / "link");
  EXPECT_TRUE(is_same_folder(folder / "a", folder / "b/../a"));
  EXPECT_TRUE(is_same_folder(folder / "a", folder / "link"));
  EXPECT_FALSE(is_same_folder(folder / "a", folder / "b"));
  EXPECT_FALSE(is_same_folder(folder / "none", folder / "none"));
}

}  // namespace
}  // namespace kedge::cli
