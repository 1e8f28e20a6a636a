#include "kedge/data/files/jsonl_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::asset;
using testing::error_of;
using testing::TempFolder;

class JsonlFileTest : public ::testing::Test {
 protected:
  // The error of reading that row, without the folder.
  std::string error(const std::string& content, int64_t row, RowFault fault) {
    const JsonlFile file(folder_.file("f.jsonl", content));
    try {
      static_cast<void>(file.row(row));
    } catch (const RowError& error) {
      EXPECT_EQ(error.fault(), fault) << error.what();
      return std::string(error.what()).substr(folder_.path().string().size() + 1);
    }
    return "no error";
  }

  TempFolder folder_;
};

TEST_F(JsonlFileTest, ReadsRowsByNumber) {
  const JsonlFile file(folder_.file("f.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\", \"n\": 2}\n"));
  ASSERT_EQ(file.size(), 2);
  const Row row = file.row(1);
  EXPECT_EQ(row.text("text"), "b");
  EXPECT_EQ(row.at("n"), Json(2));
  EXPECT_EQ(row.where(), file.path().string() + ":2");
  EXPECT_EQ(row.line(), 2);
}

TEST_F(JsonlFileTest, LineEndsOfWindowsAndAByteOrderMarkAreFine) {
  const JsonlFile file(folder_.file("f.jsonl", "\xEF\xBB\xBF{\"text\": \"a\"}\r\n{\"text\": \"b\"}\r\n"));
  ASSERT_EQ(file.size(), 2);
  EXPECT_EQ(file.row(0).text("text"), "a");
  EXPECT_EQ(file.row(1).text("text"), "b");
  const JsonlFile list(folder_.file("f.json", "\xEF\xBB\xBF[{\"text\": \"a\"},\r\n{\"text\": \"b\"}]\r\n"));
  EXPECT_EQ(list.row(1).text("text"), "b");
  EXPECT_EQ(list.row(1).line(), 2);
}

TEST_F(JsonlFileTest, AFileWithoutRowsIsRefused) {
  for (const char* content : {"", "\xEF\xBB\xBF", "[]", " [ ] "}) {
    const auto path = folder_.file("f.jsonl", content);
    EXPECT_EQ(error_of([&] { JsonlFile{path}; }),
              path.string() + ": no rows; expected JSON Lines (an object a line) or a JSON list of objects");
  }
}

TEST_F(JsonlFileTest, EveryBrokenRowIsNamedByLineAndKind) {
  const std::string good = "{\"a\": 1}\n";
  EXPECT_EQ(error(good + "\n" + good, 1, RowFault::empty_line), "f.jsonl:2: an empty line");
  EXPECT_EQ(error(good + "  \t\r\n", 1, RowFault::empty_line), "f.jsonl:2: an empty line");
  EXPECT_EQ(error("[{\"a\": 1},\n,{}]", 1, RowFault::empty_line), "f.jsonl:2: an empty line");
  EXPECT_EQ(error(good + "3\n", 1, RowFault::not_an_object), "f.jsonl:2: expected an object, found an integer");
  EXPECT_EQ(error(good + "{\"a\": \"\xFF\"}", 1, RowFault::not_utf8), "f.jsonl:2: not UTF-8 at byte 8 of the row");
  EXPECT_EQ(error("{\"a\": 1, \"a\": 2}", 0, RowFault::not_json), "f.jsonl:1: not valid JSON: key \"a\" occurs twice in one object");
  EXPECT_TRUE(error(good + "{\"a\": ", 1, RowFault::not_json).starts_with("f.jsonl:2: not valid JSON: "))
      << error(good + "{\"a\": ", 1, RowFault::not_json);
  EXPECT_TRUE(error("{\"a\": 1} {\"b\": 2}", 0, RowFault::not_json).starts_with("f.jsonl:1: not valid JSON: "));
  EXPECT_TRUE(error("{\"a\": \"\\ud800\"}", 0, RowFault::not_json).starts_with("f.jsonl:1: not valid JSON: "));   // half a pair
  EXPECT_TRUE(error("{\"a\": \"\\ud800x\"}", 0, RowFault::not_json).starts_with("f.jsonl:1: not valid JSON: "));  // half a pair
  EXPECT_TRUE(error(std::string("{\"a\": \"\0\"}", 10), 0, RowFault::not_json).starts_with("f.jsonl:1: not valid JSON: "));
  EXPECT_TRUE(error(std::string("{\"a\": 1}\0", 9), 0, RowFault::not_json).starts_with("f.jsonl:1: not valid JSON: "));
}

TEST_F(JsonlFileTest, AnEscapedNulIsACharacterLikeAnyOther) {
  EXPECT_EQ(JsonlFile(folder_.file("f", "{\"a\": \"x\\u0000y\"}")).row(0).text("a"), std::string("x\0y", 3));
}

TEST_F(JsonlFileTest, MissingFieldsAndWrongTypesAreNamed) {
  const JsonlFile file(folder_.file("f.jsonl", "{\"text\": 3}"));
  const Row row = file.row(0);
  const std::string name = file.path().string();
  EXPECT_EQ(error_of<RowError>([&] { return row.at("prompt"); }), name + ":1: no \"prompt\" field; the row has \"text\"");
  EXPECT_EQ(error_of<RowError>([&] { return row.text("text"); }), name + ":1: \"text\": expected a string, found an integer");
}

TEST_F(JsonlFileTest, ALineOfFiftyMegabytesWorks) {
  const std::string value(50'000'000, 'x');
  const auto path = folder_.file("f.jsonl", "{\"text\": \"a\"}\n{\"text\": \"" + value + "\"}\n{\"text\": \"b\"}\n");
  const JsonlFile file(path);
  ASSERT_EQ(file.size(), 3);
  EXPECT_EQ(file.row(1).text("text"), value);
  EXPECT_EQ(file.row(2).text("text"), "b");
}

int64_t resident_kb(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::stoll(line.substr(field.size() + 1));
  return -1;
}

TEST_F(JsonlFileTest, AFileReadInAnyOrderDoesNotStayInMemory) {
  const Path path = folder_ / "big.jsonl";
  {
    std::ofstream out(path);
    for (int i = 0; i < 25000; ++i) out << "{\"text\": \"" << std::string(4000, 'x') << "\", \"n\": " << i << "}\n";  // 100 MB
  }
  const int64_t before = resident_kb("RssFile:");
  const JsonlFile file(path);
  ASSERT_EQ(file.size(), 25000);
  EXPECT_LT(resident_kb("RssFile:") - before, 20000);
  for (int64_t i = 0; i < file.size(); ++i) ASSERT_EQ(file.row(i * 7919 % 25000).at("n"), Json(i * 7919 % 25000));
  EXPECT_LT(resident_kb("RssFile:") - before, 20000);
}

TEST_F(JsonlFileTest, AParquetFileIsNamedAsOne) {
  const std::string path = folder_.file("rows.parquet", std::string("PAR1\x15\x04\x15\xFF", 8)).string();
  EXPECT_EQ(testing::error_of([&] { return JsonlFile(path).size(); }),
            path + ": is a Parquet file; expected JSON Lines. To convert it: python3 -c \"import pandas; pandas.read_parquet('" + path +
                "').to_json('rows.jsonl', orient='records', lines=True)\"");
}

TEST_F(JsonlFileTest, ThreadsMayReadAtOnce) {
  std::string content;
  for (int i = 0; i < 3000; ++i) content += "{\"n\": " + std::to_string(i) + "}\n";
  const JsonlFile file(folder_.file("f.jsonl", content));
  std::vector<std::jthread> readers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      for (int64_t i = 0; i < file.size(); ++i) EXPECT_EQ(file.row(i).at("n"), Json(i));
    });
}

TEST(JsonlFileAssets, RealFilesLoadWhetherLinesListsOrPacked) {
  KEDGE_NEEDS_ASSET("preference");
  EXPECT_EQ(JsonlFile(asset("preference/hh-rlhf-harmless-test/harmless-base-test.jsonl.gz")).size(), 2312);
  EXPECT_EQ(JsonlFile(asset("prompts/gsm8k/train.jsonl")).size(), 7473);
  for (const auto& [name, size] :
       {std::pair("preference/raschka-dpo/instruction-data-with-preference.json", 1100),
        std::pair("preference/raschka-dpo/instruction-data.json", 1100), std::pair("preference/llamafactory/dpo_en_demo.json", 300),
        std::pair("preference/llamafactory/kto_en_demo.json", 300)}) {
    const JsonlFile file(asset(name));
    ASSERT_EQ(file.size(), size) << name;
    for (int64_t i = 0; i < size; ++i) static_cast<void>(file.row(i));
  }
}

}  // namespace
}  // namespace kedge
