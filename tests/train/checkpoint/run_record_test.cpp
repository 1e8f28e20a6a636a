#include "kedge/train/checkpoint/run_record.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::TempFolder;

TEST(FileHash, TellsContentsApart) {
  const TempFolder temp;
  const std::string a = file_hash(temp.file("a", "one")), b = file_hash(temp.file("b", "two"));
  EXPECT_EQ(a.size(), 16U);
  EXPECT_NE(a, b);
  EXPECT_EQ(a, file_hash(temp.file("c", "one")));
  EXPECT_NE(file_hash(temp.file("empty", "")), a);
}

// Such a file is read in pieces; its two ends are among them, and its size counts.
TEST(FileHash, OfALargeFileSeesItsEndsAndItsSize) {
  const TempFolder temp;
  const Path file = temp.file("large", "");
  constexpr int64_t kSize = (int64_t{65} << 20U) + 12345;
  std::filesystem::resize_file(file, kSize);
  const std::string zeros = file_hash(file);
  for (const int64_t place : {int64_t{0}, kSize - 20000}) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(place);
    stream.put('x');
    stream.close();
    EXPECT_NE(file_hash(file), zeros) << place;
    std::fstream back(file, std::ios::in | std::ios::out | std::ios::binary);
    back.seekp(place);
    back.put('\0');
  }
  EXPECT_EQ(file_hash(file), zeros);
  std::filesystem::resize_file(file, kSize + 1);
  EXPECT_NE(file_hash(file), zeros);
}

TEST(RunId, IsMadeOnceAndKept) {
  const TempFolder temp;
  const Path run = temp / "night run";
  make_folder(run);
  const std::string id = run_id(run);
  EXPECT_TRUE(id.starts_with("nightrun-")) << id;
  EXPECT_NE(run_id(run), id) << "nothing has kept it yet";
  add_run_record(run, Json(Json::Object{}));  // a start from before there were ids
  add_run_record(run, run_record({.id = id}));
  add_run_record(run, run_record({.id = "later"}));
  EXPECT_EQ(run_id(run), id);
  EXPECT_EQ(run_id(Path(run.string() + "/")), id);
}

TEST(RunRecord, SaysWhatWentIn) {
  const TempFolder temp;
  const Path data = temp.file("data.jsonl", "{}\n");
  const Json record = run_record({.command_line = {"kedge", "sft", "a=b c"},
                                  .torch_version = "2.11.0",
                                  .device = "cpu",
                                  .num_threads = 2,
                                  .num_ranks = 3,
                                  .data_files = {data},
                                  .max_steps = 9,
                                  .num_trained_parameters = 656000,
                                  .dtype = "fp32"});
  EXPECT_EQ(record.at("command_line", "").as_array("")[2].as_text(""), "a=b c");
  EXPECT_EQ(record.at("ranks", ""), Json(3));
  EXPECT_EQ(record.at("max_steps", ""), Json(9));
  EXPECT_EQ(record.at("trained_parameters", ""), Json(656000));
  EXPECT_EQ(record.at("dtype", ""), Json("fp32"));
  const Json& file = record.at("data", "").as_array("")[0];
  EXPECT_EQ(file.at("file", ""), Json(data.string()));
  EXPECT_EQ(file.at("bytes", ""), Json(3));
  EXPECT_EQ(file.at("hash", ""), Json(file_hash(data)));
  EXPECT_TRUE(record.at("parent", "").is_null());
  EXPECT_FALSE(record.at("kedge", "").at("commit", "").as_text("").empty());
}

TEST(RunRecord, TheParentIsThatOfTheNewestStart) {
  const TempFolder temp;
  EXPECT_EQ(parent_of(temp.path()), "");
  add_run_record(temp.path(), run_record({.parent = "runs/parent"}));
  EXPECT_EQ(parent_of(temp.path()), std::filesystem::current_path() / "runs/parent");
  add_run_record(temp.path(), run_record({.parent = "/runs/parent"}));
  EXPECT_EQ(parent_of(temp.path()), "/runs/parent");
  add_run_record(temp.path(), run_record({}));
  EXPECT_EQ(parent_of(temp.path()), "");
}

TEST(RunRecord, EveryStartAddsAnEntry) {
  const TempFolder temp;
  add_run_record(temp.path(), Json(1));
  add_run_record(temp.path(), Json(2));
  EXPECT_EQ(Json::parse(read_text(temp / "run.json")), Json(Json::Array{1, 2}));
}

}  // namespace
}  // namespace kedge
