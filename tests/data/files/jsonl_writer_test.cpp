#include "kedge/data/files/jsonl_writer.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::TempFolder;

TEST(JsonlWriter, TheFileAppearsWhenItIsComplete) {
  const TempFolder folder;
  {
    JsonlWriter writer(folder / "a.jsonl");
    writer.append(Json::Object{{"text", "a\nb"}});
    writer.append(Json::Object{{"text", "c"}});
    EXPECT_FALSE(std::filesystem::exists(folder / "a.jsonl"));
    writer.commit();
    EXPECT_EQ(writer.num_rows(), 2);
  }
  EXPECT_EQ(read_text(folder / "a.jsonl"), "{\"text\": \"a\\nb\"}\n{\"text\": \"c\"}\n");
}

TEST(JsonlWriter, OrNotAtAll) {
  const TempFolder folder;
  JsonlWriter(folder / "a.jsonl").append(Json(1));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const std::string nowhere = (folder / "no/a.jsonl").string();
  EXPECT_EQ(error_of<Error>([&] { JsonlWriter{nowhere}; }), nowhere + ": cannot be written");
}

}  // namespace
}  // namespace kedge
