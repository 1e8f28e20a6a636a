#include "kedge/train/checkpoint/state_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::TempFolder;

TEST(StateParts, AreMovedIntoTheCheckpointWhenAllAreThere) {
  const TempFolder temp;
  const Path stage = parts_stage(temp.path(), 7), folder = temp / "checkpoint";
  // Of a file that all write together each has its own bytes.
  const auto write = [](const std::string& rank, uint64_t place) {
    return [=](const Path& to) {
      make_folder(to / "state");
      write_atomic(to / "state" / ("state." + rank), rank);
      SharedFile file(to / "weights");
      file.write_at(place, rank + rank);
      file.sync();
    };
  };
  PartWriter one, two;
  two.start(stage, 2, write("2", 4));
  one.start(stage, 1, write("1", 2));
  write_together(stage, {1, 2}, folder, write("0", 0));
  for (const std::string rank : {"0", "1", "2"}) EXPECT_EQ(read_text(folder / "state" / ("state." + rank)), rank);
  EXPECT_EQ(read_text(folder / "weights"), "001122");
  EXPECT_EQ(list_folder(folder).size(), 2U);
  EXPECT_FALSE(is_folder(stage));
}

TEST(StateParts, ARankAloneWritesWhereItBelongs) {
  const TempFolder temp;
  write_together(temp / "stage", {}, temp.path(), [&](const Path& to) { EXPECT_EQ(to, temp.path()); });
  EXPECT_FALSE(is_folder(temp / "stage"));
}

TEST(StateParts, ARankThatCannotWriteIsNamed) {
  const TempFolder temp;
  const Path stage = parts_stage(temp.path(), 7), folder = temp / "checkpoint";
  PartWriter writer;
  const auto nothing = [](const Path&) {};
  writer.start(stage, 3, [](const Path&) { throw Error("no space left"); });
  EXPECT_EQ(error_of<Error>([&] { write_together(stage, {3}, folder, nothing); }), "rank 3: no space left");
  EXPECT_FALSE(is_folder(stage));
  EXPECT_FALSE(is_folder(folder));
  // The next attempt starts afresh.
  const auto third = [](const Path& to) { write_atomic(to / "state.3.safetensors", "third"); };
  writer.start(stage, 3, third);
  write_together(stage, {3}, folder, nothing);
  EXPECT_EQ(read_text(folder / "state.3.safetensors"), "third");
  // Where rank 0 fails, the others are waited for.
  writer.start(stage, 3, third);
  EXPECT_EQ(error_of<Error>([&] { write_together(stage, {3}, temp / "other", [](const Path&) { throw Error("full"); }); }), "full");
  EXPECT_FALSE(is_folder(stage));
}

// Rank 0 would wait for it forever, so this rank must end, and the job with it.
TEST(StateParts, ARankThatCannotEvenSayWhatIsWrongEnds) {
  const TempFolder temp;
  const Path stage = parts_stage(temp.path(), 7);
  make_folder(stage.parent_path());
  temp.file(stage.lexically_relative(temp.path()).string(), "a file where a folder should be");
  PartWriter writer;
  writer.start(stage, 3, [](const Path&) {});
  EXPECT_THAT(error_of<Error>([&] { writer.wait(); }), HasSubstr("a part of a checkpoint cannot be written: rank 3: "));
  EXPECT_ANY_THROW(write_together(stage, {3}, temp / "checkpoint", [](const Path&) {}));  // and does not wait
}

TEST(StateParts, LeftoversOfAKilledRunAreRemoved) {
  const TempFolder temp;
  PartWriter writer;
  writer.start(parts_stage(temp.path(), 4), 1, [](const Path& to) { write_atomic(to / "state.1.safetensors", "old"); });
  writer.wait();
  remove_parts(temp.path());
  EXPECT_FALSE(is_folder(parts_stage(temp.path(), 4)));
}

}  // namespace
}  // namespace kedge
