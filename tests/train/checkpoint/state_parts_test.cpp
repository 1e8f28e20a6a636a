#include "kedge/train/checkpoint/state_parts.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::TempFolder;

TEST(StateParts, AreMovedIntoTheCheckpointWhenAllAreThere) {
  const TempFolder temp;
  const Path stage = parts_stage(temp.path(), 7), state = temp / "state";
  make_folder(state);
  PartWriter one, two;
  two.start(stage, 2, [](const Path& to) { write_atomic(to / "state.2.safetensors", "second"); });
  one.start(stage, 1, [](const Path& to) { write_atomic(to / "state.1.safetensors", "first"); });
  collect_parts(stage, {1, 2}, state);
  EXPECT_EQ(read_text(state / "state.1.safetensors"), "first");
  EXPECT_EQ(read_text(state / "state.2.safetensors"), "second");
  EXPECT_FALSE(is_folder(stage));
}

TEST(StateParts, ARankThatCannotWriteIsNamed) {
  const TempFolder temp;
  const Path stage = parts_stage(temp.path(), 7), state = temp / "state";
  make_folder(state);
  PartWriter writer;
  writer.start(stage, 3, [](const Path&) { throw Error("no space left"); });
  try {
    collect_parts(stage, {3}, state);
    ADD_FAILURE() << "a part that was not written is not missed";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 3: no space left");
  }
  EXPECT_FALSE(is_folder(stage));
  // The next attempt starts afresh.
  writer.start(stage, 3, [](const Path& to) { write_atomic(to / "state.3.safetensors", "third"); });
  collect_parts(stage, {3}, state);
  EXPECT_EQ(read_text(state / "state.3.safetensors"), "third");
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
