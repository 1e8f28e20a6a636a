#include "kedge/train/checkpoint/call_history.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

namespace {

// While it stands, folders of this name cannot be synced, as on a disk that fails.
struct NoSync {
  explicit NoSync(std::string name) { folder = std::move(name); }
  ~NoSync() { folder.clear(); }
  static bool is_hit(int fd) {
    std::array<char, 4096> path{};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    return !folder.empty() && ::readlink(link.c_str(), path.data(), path.size() - 1) > 0 && kedge::Path(path.data()).filename() == folder;
  }
  static inline std::string folder;
};

}  // namespace

// In place of the system's.
extern "C" int fsync(int fd) {
  static const auto real = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "fsync"));
  if (!NoSync::is_hit(fd)) return real(fd);
  errno = EIO;
  return -1;
}

namespace kedge {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TempFolder;
using Names = std::vector<std::string>;

// A text that calls append to; its checkpoints hold it whole.
struct Toy {
  explicit Toy(const Path& folder, size_t num_kept = 2) : history(folder, "toy-{step}", num_kept) { recover(); }

  void recover() {
    history.tell({.load = [&](const Checkpoint* checkpoint) { load(checkpoint); },
                  .remark = [&](const Json& remark) { remarks.push_back(remark.as_text("remark")); },
                  .call = [&](std::string_view call) { text += call; }});
  }
  void load(const Checkpoint* checkpoint) { text = checkpoint == nullptr ? "" : read_text(checkpoint->folder / "text"); }
  void call(const std::string& call) {
    history.append(call);
    text += call;
  }
  void save(const std::string& remark = "saved", const std::vector<Checkpoint>& needed = {}) {
    CheckpointMeta meta;
    meta.counters = {{"step", static_cast<int64_t>(text.size())}};
    history.save(
        meta, Json(remark), [&](const Path& folder) { write_atomic(folder / "text", text); }, needed);
  }
  // Negative: to the beginning.
  void go_back(int64_t index) {
    const std::vector<Checkpoint> saved = history.checkpoints();
    const Checkpoint* to = index < 0 ? nullptr : &saved[static_cast<size_t>(index)];
    history.go_back(to, Json("back"));
    load(to);
  }

  CallHistory history;
  std::string text;
  std::vector<std::string> remarks;
};

std::string text_in(const Path& folder) { return Toy(folder).text; }

Names names_in(const Path& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Places at which a crash may have cut a file: the journal's own test tries every one.
std::vector<size_t> cuts_of(const std::string& bytes) { return {0, 1, 15, 16, bytes.size() / 2, bytes.size() - 1, bytes.size()}; }

TEST(CallHistory, KeepsCheckpointsThatAreNeededHoweverOld) {
  const TempFolder temp;
  {
    Toy toy(temp.path());
    toy.call("a");
    toy.save();
    toy.call("b");
    toy.save();
    const std::vector<Checkpoint> first = toy.history.checkpoints();
    for (const char* call : {"c", "d", "e"}) {
      toy.call(call);
      toy.save("saved", first);
    }
  }
  Toy toy(temp.path());  // a start prunes as well
  EXPECT_EQ(names_in(temp / "checkpoints"), (Names{"toy-step=1-last", "toy-step=2-last", "toy-step=4-last", "toy-step=5-last"}));
  EXPECT_EQ(names_in(temp / "journals"), (Names{"journal-4", "journal-5"})) << "calls after an old one are not kept with it";
  toy.go_back(0);
  EXPECT_EQ(toy.text, "a");
  toy.call("e");
  EXPECT_EQ(text_in(temp.path()), "ae");
  for (const char* call : {"f", "g"}) {
    toy.call(call);
    toy.save();
  }
  EXPECT_EQ(names_in(temp / "checkpoints"), (Names{"toy-step=3-last", "toy-step=4-last"}));
  EXPECT_EQ(toy.text, "aefg");
}

TEST(CallHistory, GoesOnWhereItStood) {
  const TempFolder temp;
  EXPECT_EQ(text_in(temp.path()), "");
  {
    Toy toy(temp.path());
    toy.call("a");
    toy.call("b");
  }
  EXPECT_EQ(text_in(temp.path()), "ab");
  {
    Toy toy(temp.path());
    toy.call("c");
    toy.save();
    toy.call("d");
  }
  Toy again(temp.path());
  EXPECT_EQ(again.text, "abcd");
  EXPECT_THAT(again.remarks, ElementsAre("saved"));
  EXPECT_EQ(names_in(temp / "checkpoints"), (Names{"toy-step=3-last"}));
}

TEST(CallHistory, TheLastTwoAreKeptWithTheirJournals) {
  const TempFolder temp;
  Toy toy(temp.path());
  for (const char* call : {"a", "b", "c", "d"}) {
    toy.call(call);
    toy.save();
  }
  toy.call("e");
  EXPECT_EQ(names_in(temp / "checkpoints"), (Names{"toy-step=3-last", "toy-step=4-last"}));
  EXPECT_EQ(names_in(temp / "journals"), (Names{"journal-3", "journal-4"}));
  EXPECT_EQ(text_in(temp.path()), "abcde");
}

TEST(CallHistory, AFlippedBitInACheckpointIsMadeUpForByTheJournalBeforeIt) {
  const TempFolder temp;
  {
    Toy toy(temp.path());
    toy.call("a");
    toy.save();
    toy.call("b");
    toy.save();
    toy.call("c");
  }
  write_atomic(temp / "checkpoints/toy-step=2-last/text", "aB");  // of the same size
  EXPECT_EQ(text_in(temp.path()), "abc");
}

TEST(CallHistory, TwoOfTheSameStepHaveTwoNames) {
  const TempFolder temp;
  Toy toy(temp.path());
  toy.call("a");
  toy.save("one");
  toy.save("two");
  EXPECT_EQ(names_in(temp / "checkpoints"), (Names{"toy-step=1-last", "toy-step=1-v1-last"}));
  toy.save("three");
  EXPECT_EQ(names_in(temp / "checkpoints"), (Names{"toy-step=1-v1-last", "toy-step=1-v2-last"}));
  Toy again(temp.path());
  EXPECT_EQ(again.text, "a");
  EXPECT_THAT(again.remarks, ElementsAre("three"));
}

TEST(CallHistory, ACallThatIsTakenBackIsNotToldAgain) {
  const TempFolder temp;
  Toy toy(temp.path());
  toy.call("a");
  toy.call("b");
  toy.history.take_back();
  toy.recover();
  EXPECT_EQ(toy.text, "a");
  toy.call("c");
  EXPECT_EQ(text_in(temp.path()), "ac");
}

TEST(CallHistory, GoingBackDiscardsWhatCameLater) {
  const TempFolder temp;
  Toy toy(temp.path());
  toy.call("a");
  toy.save();
  toy.call("b");
  toy.save();
  toy.call("c");
  toy.go_back(0);
  EXPECT_EQ(toy.text, "a");
  EXPECT_EQ(text_in(temp.path()), "a");
  EXPECT_EQ(names_in(temp / "checkpoints"), (Names{"toy-step=1-last"}));
  toy.call("x");
  EXPECT_EQ(text_in(temp.path()), "ax");
  toy.save();
  toy.go_back(-1);
  toy.call("y");
  Toy again(temp.path());
  EXPECT_EQ(again.text, "y");
  EXPECT_THAT(again.remarks, ElementsAre("back"));
  EXPECT_TRUE(names_in(temp / "checkpoints").empty());
  EXPECT_EQ(names_in(temp / "journals").size(), 1U);
}

TEST(CallHistory, WhatAReturnDiscardsIsSetAsideUntilTheNextSave) {
  const TempFolder temp;
  {
    Toy toy(temp.path());
    toy.call("a");
    toy.save();
    toy.call("b");
    toy.save();
    toy.call("c");
    toy.go_back(0);
    EXPECT_EQ(names_in(temp / "set_aside/checkpoints"), (Names{"toy-step=2-last"}));
    EXPECT_EQ(names_in(temp / "set_aside/journals"), (Names{"journal-1", "journal-2"}));
    // Tries that never came to a save leave nothing more.
    toy.call("x");
    toy.go_back(-1);
    toy.call("y");
    toy.go_back(-1);
    EXPECT_EQ(names_in(temp / "set_aside/checkpoints"), (Names{"toy-step=1-last", "toy-step=2-last"}));
    EXPECT_EQ(names_in(temp / "set_aside/journals"), (Names{"journal-1", "journal-2"}));
  }
  EXPECT_EQ(text_in(temp.path()), "");
  // As the page says, it is had again by hand.
  const TempFolder back;
  fs::copy(temp.path(), back.path(), fs::copy_options::recursive);
  fs::remove_all(back / "journals");
  fs::rename(back / "set_aside/journals", back / "journals");
  fs::copy(back / "set_aside/checkpoints", back / "checkpoints", fs::copy_options::recursive);
  EXPECT_EQ(text_in(back.path()), "abc");
  Toy toy(temp.path());
  toy.call("z");
  toy.save();
  EXPECT_FALSE(is_folder(temp / "set_aside"));
}

TEST(CallHistory, WhatCannotBeReadOfAJournalIsSetAside) {
  const TempFolder temp;
  {
    Toy toy(temp.path());
    toy.call("a");
    toy.save();
    toy.call("b");
    toy.call("c");
  }
  const std::string whole = read_text(temp / "journals/journal-1");
  const auto with_flipped = [&](size_t place) {
    auto copy = std::make_unique<TempFolder>();
    fs::copy(temp.path(), copy->path(), fs::copy_options::recursive);
    std::string bytes = whole;
    bytes[place] = static_cast<char>(bytes[place] ^ 1);
    copy->file("journals/journal-1", bytes);
    return std::pair(std::move(copy), bytes);
  };
  const auto [first, first_bytes] = with_flipped(20);
  EXPECT_EQ(text_in(first->path()), "a");
  EXPECT_EQ(read_text(*first / "set_aside/journals/journal-1"), first_bytes);
  const auto [call, call_bytes] = with_flipped(whole.size() - 20);  // of "b": each call takes 18 bytes
  EXPECT_EQ(text_in(call->path()), "a");
  EXPECT_EQ(read_text(*call / "set_aside/journals/journal-1-damaged"), call_bytes);
}

TEST(CallHistory, BeginsWithCopiesOfAnothersCheckpoints) {
  const TempFolder temp, child;
  Toy toy(temp.path());
  toy.call("a");
  toy.save();
  toy.call("b");
  toy.save();
  EXPECT_FALSE(has_history(child.path()));
  begin_history(child.path(), toy.history.checkpoints());
  begin_history(child.path(), toy.history.checkpoints());  // killed before it was opened
  {
    Toy other(child.path());
    EXPECT_EQ(other.text, "ab");
    other.go_back(0);
    other.call("c");
  }
  EXPECT_TRUE(has_history(child.path()));
  EXPECT_EQ(text_in(child.path()), "ac");
  EXPECT_EQ(text_in(temp.path()), "ab");
}

TEST(CallHistory, KilledInACallItIsThereOrNot) {
  const TempFolder temp;
  Toy toy(temp.path());
  toy.call("a");
  toy.save();
  toy.call("b");
  const std::string before = read_text(temp / "journals/journal-1");
  toy.call("c");
  const std::string after = read_text(temp / "journals/journal-1");
  for (size_t cut = before.size(); cut <= after.size(); ++cut) {
    const TempFolder copy;
    fs::copy(temp.path(), copy.path(), fs::copy_options::recursive);
    copy.file("journals/journal-1", after.substr(0, cut));
    EXPECT_EQ(text_in(copy.path()), cut == after.size() ? "abc" : "ab") << cut;
  }
}

TEST(CallHistory, KilledInASaveNothingIsLost) {
  const TempFolder temp;
  Toy toy(temp.path());
  toy.call("a");
  const TempFolder before;
  fs::copy(temp.path(), before.path(), fs::copy_options::recursive);
  toy.save();
  const std::string journal = read_text(temp / "journals/journal-1");
  // The checkpoint is half written.
  fs::copy(temp / "checkpoints/toy-step=1-last", before / "checkpoints/.unfinished-toy-step=1-last", fs::copy_options::recursive);
  fs::remove(before / "checkpoints/.unfinished-toy-step=1-last/meta.json");
  EXPECT_EQ(text_in(before.path()), "a");
  EXPECT_TRUE(names_in(before / "checkpoints").empty());
  // The checkpoint is there, its journal is not, or only a part of its first record.
  for (const size_t cut : cuts_of(journal)) {
    const TempFolder copy;
    fs::copy(temp.path(), copy.path(), fs::copy_options::recursive);
    copy.file("journals/journal-1", journal.substr(0, cut));
    if (cut == 0) fs::remove(copy / "journals/journal-1");
    {
      Toy again(copy.path());
      EXPECT_EQ(again.text, "a") << cut;
      again.call("b");
    }
    EXPECT_EQ(text_in(copy.path()), "ab") << cut;
  }
}

TEST(CallHistory, KilledInAReturnItStandsBeforeOrAfter) {
  const TempFolder temp;
  Toy toy(temp.path());
  toy.call("a");
  toy.save();
  toy.call("b");
  toy.save();
  toy.call("c");
  const TempFolder before;
  fs::copy(temp.path(), before.path(), fs::copy_options::recursive);
  toy.go_back(0);
  const std::string journal = read_text(temp / "journals/journal-3");
  for (const size_t cut : cuts_of(journal)) {
    const TempFolder copy;
    fs::copy(before.path(), copy.path(), fs::copy_options::recursive);
    copy.file("journals/journal-3", journal.substr(0, cut));
    const bool happened = cut == journal.size();
    {
      Toy again(copy.path());
      EXPECT_EQ(again.text, happened ? "a" : "abc") << cut;
      EXPECT_EQ(names_in(copy / "checkpoints").size(), happened ? 1U : 2U) << cut;
      again.call("d");
    }
    EXPECT_EQ(text_in(copy.path()), happened ? "ad" : "abcd") << cut;
  }
}

TEST(CallHistory, ADamagedCheckpointIsMadeUpForByTheJournals) {
  const TempFolder temp;
  Toy toy(temp.path());
  toy.call("a");
  toy.save();
  toy.call("b");
  toy.save();
  toy.call("c");
  fs::remove(temp / "checkpoints/toy-step=2-last/text");
  {
    Toy again(temp.path());
    EXPECT_EQ(again.text, "abc");
    again.call("d");
    again.save();
  }
  EXPECT_EQ(text_in(temp.path()), "abcd");
  fs::remove(temp / "checkpoints/toy-step=1-last/text");
  fs::remove(temp / "checkpoints/toy-step=4-last/text");
  EXPECT_THAT(error_of<Error>([&] { return text_in(temp.path()); }),
              HasSubstr("a checkpoint is damaged or missing, and so is the journal"));
}

TEST(CallHistory, AFullDiskChangesNothing) {
  const TempFolder temp;
  Toy toy(temp.path());
  toy.call("a");
  {
    const testing::FileSizeLimit limit(20);
    EXPECT_THAT(error_of<Error>([&] { return toy.call("bbbbbbbbbbbbbbbbbbbbbbbbb"), 0; }), HasSubstr("cannot be written"));
    EXPECT_THAT(error_of<Error>([&] { return toy.save(), 0; }), HasSubstr("cannot be written"));
    EXPECT_THAT(error_of<Error>([&] { return toy.go_back(-1), 0; }), HasSubstr("cannot be written"));
  }
  EXPECT_EQ(text_in(temp.path()), "a");
  toy.call("b");
  EXPECT_EQ(text_in(temp.path()), "ab");
  EXPECT_TRUE(names_in(temp / "checkpoints").empty());
}

// It has its name when the sync behind that fails. Counted with the number of the save that comes next, it would be taken for that one.
TEST(CallHistory, ACheckpointWhoseNameCannotBeSyncedIsNone) {
  const TempFolder temp;
  Toy toy(temp.path());
  toy.call("a");
  {
    const NoSync none("checkpoints");
    EXPECT_THAT(error_of<Error>([&] { return toy.save(), 0; }), HasSubstr("checkpoints: cannot be synced to disk"));
    EXPECT_THAT(error_of<Error>([&] { return toy.call("lost"), 0; }), HasSubstr("checkpoints: cannot be synced to disk"));
  }
  toy.call("b");
  EXPECT_TRUE(toy.history.checkpoints().empty());
  EXPECT_EQ(text_in(temp.path()), "ab");
  toy.save();
  EXPECT_EQ(toy.history.checkpoints().size(), 1U);
  toy.call("c");
  EXPECT_EQ(text_in(temp.path()), "abc");
}

}  // namespace
}  // namespace kedge
