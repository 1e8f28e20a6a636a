#include "kedge/train/checkpoint/checkpoint_store.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <functional>
#include <thread>

#include "kedge/core/content_hash.h"
#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

namespace {

// While it stands, it is called before every rename: what is on disk then is what a kill there leaves.
struct BeforeRename {
  explicit BeforeRename(std::function<void()> look) { call = std::move(look); }
  ~BeforeRename() { call = nullptr; }
  BeforeRename(const BeforeRename&) = delete;
  BeforeRename& operator=(const BeforeRename&) = delete;
  static inline std::function<void()> call;
};

}  // namespace

// In place of the system's.
extern "C" int rename(const char* from, const char* to) noexcept {
  static const auto real = reinterpret_cast<int (*)(const char*, const char*)>(::dlsym(RTLD_NEXT, "rename"));
  if (BeforeRename::call) BeforeRename::call();
  return real(from, to);
}

namespace kedge {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::TempFolder;
using Names = std::vector<std::string>;

CheckpointConfig config_of(int64_t top_k, bool last = true) {
  return {.save_top_k = top_k, .save_last = last, .filename = "run-{step}-{val_loss:.2f}"};
}

CheckpointMeta meta_of(int64_t step, double loss) {
  CheckpointMeta meta;
  meta.counters = {{"step", step}, {"consumed_samples", step * 8}};
  if (!std::isnan(loss)) meta.metrics = {{"val_loss", loss}, {"margin", std::nan("")}};
  meta.record.set("seed", int64_t{7});
  return meta;
}

void fill_checkpoint(const Path& folder) {
  make_folder(folder / "model");
  write_atomic(folder / "model" / "weights", "0123456789");
  write_atomic(folder / "state", "abc");
}

void flip_bit(const Path& file) {
  std::string bytes = read_text(file);
  bytes[bytes.size() / 2] = static_cast<char>(static_cast<unsigned char>(bytes[bytes.size() / 2]) ^ 4U);
  // In place, as a disk does it: a twin that is the same file is damaged too.
  std::ofstream(file, std::ios::binary | std::ios::in | std::ios::out) << bytes;
}

bool can_exchange(const Path& folder) {
  make_folder(folder / "x");
  make_folder(folder / "y");
  return ::renameat2(AT_FDCWD, (folder / "x").c_str(), AT_FDCWD, (folder / "y").c_str(), RENAME_EXCHANGE) == 0;
}

Names checkpoints_in(const Path& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CheckpointStore, TheBestAndTheLastAreKept) {
  const TempFolder temp;
  CheckpointStore store(temp / "checkpoints", config_of(2));
  EXPECT_FALSE(store.newest().has_value());
  const std::vector<double> losses = {0.5, 0.9, 0.7, 0.8, 0.4};
  const std::vector<Names> wanted = {{"run-step=1-val_loss=0.50", "run-step=1-val_loss=0.50-last"},
                                     {"run-step=1-val_loss=0.50", "run-step=2-val_loss=0.90", "run-step=2-val_loss=0.90-last"},
                                     {"run-step=1-val_loss=0.50", "run-step=3-val_loss=0.70", "run-step=3-val_loss=0.70-last"},
                                     {"run-step=1-val_loss=0.50", "run-step=3-val_loss=0.70", "run-step=4-val_loss=0.80-last"},
                                     {"run-step=1-val_loss=0.50", "run-step=5-val_loss=0.40", "run-step=5-val_loss=0.40-last"}};
  for (size_t i = 0; i < losses.size(); ++i) {
    store.save(meta_of(static_cast<int64_t>(i) + 1, losses[i]), fill_checkpoint);
    EXPECT_EQ(checkpoints_in(temp / "checkpoints"), wanted[i]) << i;
  }
  const Checkpoint newest = *store.newest();
  EXPECT_EQ(newest.folder.filename(), "run-step=5-val_loss=0.40-last");
  EXPECT_EQ(newest.step(), 5);
  EXPECT_EQ(newest.meta.counters.at("consumed_samples"), 40);
  EXPECT_EQ(newest.meta.metrics.at("val_loss"), 0.4);
  EXPECT_TRUE(std::isnan(newest.meta.metrics.at("margin")));
  EXPECT_EQ(newest.meta.record.at("seed", "").as_integer(""), 7);
  EXPECT_EQ(read_text(newest.folder / "model" / "weights"), "0123456789");
}

TEST(CheckpointStore, ModesAndNumbersOfCheckpoints) {
  const TempFolder temp;
  CheckpointConfig config = config_of(1, false);
  config.mode = MonitorMode::max;
  CheckpointStore store(temp / "max", config);
  for (const auto& [step, value] : std::vector<std::pair<int64_t, double>>{{1, 0.5}, {2, 0.9}, {3, 0.7}})
    store.save(meta_of(step, value), fill_checkpoint);
  EXPECT_EQ(checkpoints_in(temp / "max"), (Names{"run-step=2-val_loss=0.90"}));

  CheckpointStore all(temp / "all", config_of(-1, false));
  for (int64_t step = 1; step <= 4; ++step) all.save(meta_of(step, 0.5), fill_checkpoint);
  EXPECT_EQ(all.list().size(), 4U);

  CheckpointStore none(temp / "none", config_of(0));
  for (int64_t step = 1; step <= 4; ++step) none.save(meta_of(step, 0.5), fill_checkpoint);
  EXPECT_EQ(checkpoints_in(temp / "none"), (Names{"run-step=4-val_loss=0.50-last"}));
}

TEST(CheckpointStore, WithoutTheMonitoredNumberOnlyTheLastIsKept) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config_of(2));
  store.save(meta_of(1, 0.5), fill_checkpoint);
  store.save(meta_of(2, std::nan("")), fill_checkpoint);
  EXPECT_EQ(checkpoints_in(temp / "c"), (Names{"run-step=1-val_loss=0.50", "run-step=2-val_loss=nan-last"}));
}

TEST(CheckpointStore, ACounterCanBeMonitored) {
  const TempFolder temp;
  CheckpointConfig config = config_of(2, false);
  config.monitor = "step";
  config.mode = MonitorMode::max;
  CheckpointStore store(temp / "c", config);
  for (int64_t step = 1; step <= 4; ++step) store.save(meta_of(step, 0.5), fill_checkpoint);
  EXPECT_EQ(checkpoints_in(temp / "c"), (Names{"run-step=3-val_loss=0.50", "run-step=4-val_loss=0.50"}));
}

TEST(CheckpointStore, AValidationsNumberHasTwoNames) {
  const TempFolder temp;
  CheckpointConfig config = config_of(1, false);
  config.monitor = "validation_loss";
  CheckpointStore store(temp / "c", config);
  for (const auto& [step, loss] : std::map<int64_t, double>{{1, 0.5}, {2, 0.9}, {3, 0.4}}) store.save(meta_of(step, loss), fill_checkpoint);
  EXPECT_EQ(checkpoints_in(temp / "c"), (Names{"run-step=3-val_loss=0.40"}));
  CheckpointMeta timed;
  timed.metrics = {{"validation_time", 2}, {"val_time", 1}};
  EXPECT_EQ(monitored_number(timed, "validation_time"), 2) << "its own name comes first";
  EXPECT_FALSE(monitored_number(timed, "validation_lost").has_value());
}

TEST(CheckpointStore, ANewRunGoesOnRankingWhereTheOldOneStopped) {
  const TempFolder temp;
  CheckpointStore(temp / "c", config_of(1)).save(meta_of(1, 0.5), fill_checkpoint);
  CheckpointStore(temp / "c", config_of(1)).save(meta_of(2, 0.6), fill_checkpoint);
  EXPECT_EQ(checkpoints_in(temp / "c"), (Names{"run-step=1-val_loss=0.50", "run-step=2-val_loss=0.60-last"}));
}

// A run that is killed at any rename of a save resumes from the newest, saves what is missing and goes on as one that was not.
TEST(CheckpointStore, KilledInASaveTheBestIsKept) {
  CheckpointConfig config = config_of(1);
  config.mode = MonitorMode::max;
  const std::map<int64_t, double> values = {{2, 0.5}, {4, 0.9}, {6, 0.7}};
  const auto go_on = [&](const Path& folder, int64_t end) {
    CheckpointStore store(folder, config);
    const auto newest = store.newest();
    for (const auto& [step, value] : values)
      if (step <= end && (!newest || step > newest->step())) store.save(meta_of(step, value), fill_checkpoint);
  };
  const TempFolder temp;
  go_on(temp / "c", 2);
  int num_kills = 0;
  {
    const BeforeRename kill([&] { fs::copy(temp / "c", temp / str("killed-", num_kills++), fs::copy_options::recursive); });
    go_on(temp / "c", 4);
  }
  go_on(temp / "c", 6);
  const Names whole = {"run-step=4-val_loss=0.90", "run-step=6-val_loss=0.70-last"};
  EXPECT_EQ(checkpoints_in(temp / "c"), whole);
  EXPECT_GE(num_kills, 4) << "two appear and two are removed";
  for (int i = 0; i < num_kills; ++i) {
    go_on(temp / str("killed-", i), 6);
    EXPECT_EQ(checkpoints_in(temp / str("killed-", i)), whole) << "at rename " << i;
  }
}

// The last save of a run: nothing is saved after it that would remove what it left.
TEST(CheckpointStore, KilledInTheLastSaveTheNewestIsKeptAsTheLast) {
  const TempFolder temp;
  CheckpointStore(temp / "c", config_of(3)).save(meta_of(1, 0.5), fill_checkpoint);
  int num_kills = 0;
  {
    CheckpointStore store(temp / "c", config_of(3));
    const BeforeRename kill([&] { fs::copy(temp / "c", temp / str("killed-", num_kills++), fs::copy_options::recursive); });
    store.save(meta_of(2, 0.4), fill_checkpoint);
  }
  const Names whole = {"run-step=1-val_loss=0.50", "run-step=2-val_loss=0.40", "run-step=2-val_loss=0.40-last"};
  EXPECT_EQ(checkpoints_in(temp / "c"), whole);
  int num_saved = 0;
  for (int i = 0; i < num_kills; ++i) {
    const CheckpointStore store(temp / str("killed-", i), config_of(3));
    if (store.newest()->step() != 2) continue;  // killed before any of it had its name
    ++num_saved;
    EXPECT_EQ(checkpoints_in(temp / str("killed-", i)), whole) << "at rename " << i;
  }
  EXPECT_GE(num_saved, 2) << "before the second appears, and before the old one is removed";
}

TEST(CheckpointStore, ADamagedOneIsNotKeptAsTheLast) {
  const TempFolder temp;
  CheckpointStore(temp / "c", config_of(3)).save(meta_of(1, 0.5), fill_checkpoint);
  CheckpointStore(temp / "c", config_of(3, false)).save(meta_of(2, 0.4), fill_checkpoint);
  flip_bit(temp / "c" / "run-step=2-val_loss=0.40" / "state");
  const Names before = checkpoints_in(temp / "c");
  EXPECT_EQ(CheckpointStore(temp / "c", config_of(3)).newest_sound()->step(), 1);
  EXPECT_EQ(checkpoints_in(temp / "c"), before);
}

TEST(CheckpointStore, WithASmallerNumberTheBestOfThoseThereAreKept) {
  const TempFolder temp;
  CheckpointStore all(temp / "c", config_of(3));
  for (const auto& [step, loss] : std::map<int64_t, double>{{2, 0.5}, {4, 0.1}, {6, 0.2}}) all.save(meta_of(step, loss), fill_checkpoint);
  CheckpointStore(temp / "c", config_of(1)).save(meta_of(8, 0.4), fill_checkpoint);
  EXPECT_EQ(checkpoints_in(temp / "c"), (Names{"run-step=4-val_loss=0.10", "run-step=8-val_loss=0.40-last"}));
}

TEST(CheckpointStore, SavingTheSameStepAgainReplacesIt) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config_of(2));
  store.save(meta_of(1, 0.5), fill_checkpoint);
  store.save(meta_of(1, 0.5), [](const Path& folder) { write_atomic(folder / "other", "x"); });
  EXPECT_EQ(store.list().size(), 2U);
  EXPECT_TRUE(is_file(store.newest()->folder / "other"));
  EXPECT_FALSE(is_file(store.newest()->folder / "state"));
}

CheckpointConfig with_one_name(bool last = true) {
  CheckpointConfig config = config_of(3, last);
  config.filename = "run";
  return config;
}

TEST(CheckpointStore, ANameWithoutTheStepReplacesNoOtherStep) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", with_one_name());
  for (const auto& [step, loss] : std::map<int64_t, double>{{1, 0.1}, {2, 0.9}, {3, 0.5}}) store.save(meta_of(step, loss), fill_checkpoint);
  const Names all = {"run", "run-v1", "run-v2", "run-v2-last"};
  EXPECT_EQ(checkpoints_in(temp / "c"), all);
  EXPECT_EQ(store.best()->step(), 1);
  EXPECT_EQ(store.best()->folder.filename(), "run");
  store.save(meta_of(3, 0.5), [](const Path& folder) { write_atomic(folder / "other", "x"); });
  EXPECT_EQ(checkpoints_in(temp / "c"), all) << "the same step replaces its own";
  EXPECT_TRUE(is_file(temp / "c" / "run-v2" / "other"));
}

TEST(CheckpointStore, ALastOneOfTheSameNameMakesRoom) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", with_one_name(false));
  store.save(meta_of(1, std::nan("")), fill_checkpoint);
  EXPECT_EQ(checkpoints_in(temp / "c"), (Names{"run-last"}));
  fs::copy(temp / "c" / "run-last", temp / "kept", fs::copy_options::recursive);
  store.save(meta_of(2, 0.4), fill_checkpoint);
  EXPECT_EQ(checkpoints_in(temp / "c"), (Names{"run"}));
  // As if killed between the two names of a save that keeps the last.
  fs::rename(temp / "kept", temp / "c" / "run-last");
  const CheckpointStore again(temp / "c", with_one_name());
  EXPECT_EQ(checkpoints_in(temp / "c"), (Names{"run", "run-last"}));
  EXPECT_EQ(read_checkpoint(temp / "c" / "run-last").step(), 2);
}

TEST(CheckpointStore, AnErrorLeavesEverythingAsItWas) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config_of(2));
  store.save(meta_of(1, 0.5), fill_checkpoint);
  const Names before = checkpoints_in(temp / "c");
  EXPECT_EQ(error_of<Error>([&] {
              store.save(meta_of(2, 0.4), [](const Path& folder) {
                fill_checkpoint(folder);
                throw Error("the disk is full");
              });
              return 0;
            }),
            "the disk is full");
  EXPECT_EQ(checkpoints_in(temp / "c"), before);
  {
    const testing::FileSizeLimit small(100);  // the record does not fit any more
    EXPECT_THROW(store.save(meta_of(2, 0.4), fill_checkpoint), Error);
  }
  EXPECT_EQ(checkpoints_in(temp / "c"), before);
  EXPECT_EQ(store.newest()->step(), 1);
}

TEST(CheckpointStore, WhatAKilledRunLeftIsNoCheckpointAndGoes) {
  const TempFolder temp;
  CheckpointStore(temp / "c", config_of(2)).save(meta_of(1, 0.5), fill_checkpoint);
  const Names before = checkpoints_in(temp / "c");
  for (const char* name : {".unfinished-run-step=2", ".removed-run-step=0"}) {
    fs::create_directories(temp / "c" / name / "model");
    write_atomic(temp / "c" / name / "model" / "weights", "01234");
  }
  const CheckpointStore store(temp / "c", config_of(2));
  EXPECT_EQ(checkpoints_in(temp / "c"), before);
  EXPECT_EQ(store.newest()->step(), 1);
}

// With one name for all of them there is a moment at which the old one has gone and the new one has not come.
TEST(CheckpointStore, OneThatWasToBeReplacedStandsAgain) {
  const TempFolder temp;
  CheckpointStore(temp / "c", config_of(2)).save(meta_of(1, 0.5), fill_checkpoint);
  const Names before = checkpoints_in(temp / "c");
  for (const std::string& name : before) fs::rename(temp / "c" / name, temp / "c" / (".replaced-" + name));
  fs::create_directories(temp / "c" / (".unfinished-" + before[0]));
  const CheckpointStore store(temp / "c", config_of(2));
  EXPECT_EQ(checkpoints_in(temp / "c"), before);
  EXPECT_EQ(store.newest_sound()->step(), 1);
  fs::copy(temp / "c" / before[0], temp / "c" / (".replaced-" + before[0]), fs::copy_options::recursive);  // the new one came
  const CheckpointStore again(temp / "c", config_of(2));
  EXPECT_EQ(checkpoints_in(temp / "c"), before);
}

// Seen from outside at any moment there is one, because it is never removed before the other has its name.
TEST(CheckpointStore, TheOldOneStandsWhileTheNewOneIsWritten) {
  const TempFolder temp;
  CheckpointConfig config = config_of(0);
  config.filename = "run";
  CheckpointStore store(temp / "c", config);
  store.save(meta_of(1, 0.5), fill_checkpoint);
  std::atomic<bool> done = false;
  std::atomic<int64_t> num_missing = 0;
  std::thread watcher([&] {
    while (!done)
      if (::access((temp / "c" / "run-last").c_str(), F_OK) != 0) ++num_missing;
  });
  for (int64_t step = 2; step < 40; ++step) store.save(meta_of(step, 0.5), fill_checkpoint);
  done = true;
  watcher.join();
  EXPECT_EQ(store.newest_sound()->step(), 39);
  EXPECT_EQ(checkpoints_in(temp / "c"), (Names{"run-last"}));
  // Where the file system cannot exchange two names, there is a short gap, which the test above is about.
  if (can_exchange(temp.path())) {
    EXPECT_EQ(num_missing, 0);
  }
}

TEST(CheckpointStore, OneOfWeightsThatWereNotValidatedIsKeptUntilTheNext) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config_of(1, false));
  store.save(meta_of(1, 0.5), fill_checkpoint);
  store.save(meta_of(2, std::nan("")), fill_checkpoint);
  EXPECT_EQ(checkpoints_in(temp / "c"), (Names{"run-step=1-val_loss=0.50", "run-step=2-val_loss=nan-last"}));
  store.save(meta_of(3, 0.4), fill_checkpoint);
  EXPECT_EQ(checkpoints_in(temp / "c"), (Names{"run-step=3-val_loss=0.40"}));
}

// Damage is decided on; a system that cannot open or read is not.
TEST(CheckpointStore, AFileThatCannotBeReadIsTheWorldsError) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config_of(0));
  store.save(meta_of(1, 0.5), fill_checkpoint);
  const Checkpoint one = *store.newest();
  rlimit old{};
  ::getrlimit(RLIMIT_NOFILE, &old);
  const rlimit none{0, old.rlim_max};
  std::string told;
  ::setrlimit(RLIMIT_NOFILE, &none);
  try {
    told = is_sound(one) ? "sound" : "damaged";
  } catch (const UsageError&) {
    told = "the user's";
  } catch (const Error& error) {
    told = error.what();
  }
  ::setrlimit(RLIMIT_NOFILE, &old);
  EXPECT_THAT(told, ::testing::HasSubstr("model/weights: cannot be read: Too many open files. Try again; if the error persists, move "));
}

// Any one file missing, shorter or longer, and the record itself in pieces.
TEST(CheckpointStore, OneThatIsNotWholeIsNotResumedFrom) {
  for (const char* file : {"model/weights", "state", "meta.json"})
    for (const bool missing : {true, false}) {
      SCOPED_TRACE(str(file, missing ? " missing" : " cut short"));
      const TempFolder temp;
      CheckpointStore store(temp / "c", config_of(0));
      CheckpointStore older(temp / "c", config_of(-1, false));
      older.save(meta_of(1, 0.5), fill_checkpoint);
      store.save(meta_of(2, 0.4), fill_checkpoint);
      ASSERT_EQ(store.newest()->step(), 2);
      const Path broken = store.newest()->folder / file;
      missing ? static_cast<void>(fs::remove(broken)) : fs::resize_file(broken, fs::file_size(broken) / 2);
      EXPECT_EQ(store.newest()->step(), 1);
      EXPECT_EQ(store.list().size(), 1U);
    }
}

TEST(CheckpointStore, AFlippedBitIsNamedAndTheOneBeforeIsUsed) {
  for (const char* file : {"model/weights", "state"}) {
    SCOPED_TRACE(file);
    const TempFolder temp;
    CheckpointStore store(temp / "c", config_of(-1));
    store.save(meta_of(1, 0.5), fill_checkpoint);
    store.save(meta_of(2, 0.4), fill_checkpoint);
    EXPECT_EQ(store.newest_sound()->step(), 2);
    EXPECT_EQ(store.best_sound()->step(), 2);
    const Checkpoint newest = *store.newest();
    flip_bit(newest.folder / file);
    EXPECT_THAT(find_damage(newest), ::testing::ElementsAre(str(file, ": its bytes are not those that were saved")));
    EXPECT_EQ(error_of([&] { return verify_checkpoint(newest), 0; }),
              str(newest.folder.string(), ": ", file, ": its bytes are not those that were saved"));
    EXPECT_EQ(store.newest()->step(), 2);  // by sizes alone it is whole
    EXPECT_EQ(store.newest_sound()->step(), 1);
    EXPECT_EQ(store.best_sound()->step(), 1);
  }
}

TEST(CheckpointStore, AFlippedBitInTheRecordIsSeenAtOnce) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config_of(0));
  store.save(meta_of(5, 0.5), fill_checkpoint);
  const Path folder = store.newest()->folder;
  std::string record = read_text(folder / "meta.json");
  const size_t at = record.find("\"step\": 5");
  ASSERT_NE(at, std::string::npos);
  record[at + std::string_view("\"step\": ").size()] = '4';
  write_atomic(folder / "meta.json", record);
  EXPECT_EQ(error_of([&] { return read_checkpoint(folder); }), folder.string() + ": meta.json: its bytes are not those that were saved");
  EXPECT_FALSE(store.newest().has_value());
}

// The very record that was written before there were hashes.
TEST(CheckpointStore, OneWithoutHashesIsStillRead) {
  const TempFolder temp;
  const Path folder = temp / "c" / "old";
  make_folder(folder);
  fill_checkpoint(folder);
  write_atomic(folder / "meta.json",
               R"({"counters": {"step": 3}, "metrics": {"val_loss": 0.5}, "record": {}, "files": {"model/weights": 10, "state": 3}})");
  const CheckpointStore store(temp / "c", config_of(2));
  const Checkpoint old = *store.newest_sound();
  EXPECT_EQ(old.step(), 3);
  EXPECT_FALSE(old.has_hashes());
  EXPECT_TRUE(find_damage(old).empty());
}

TEST(CheckpointStore, TellsItsFiles) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config_of(0));
  store.save(meta_of(1, 0.5), fill_checkpoint);
  const Checkpoint one = *store.newest();
  ASSERT_EQ(one.files.size(), 2U);
  EXPECT_EQ(one.files[0].name, "model/weights");
  EXPECT_EQ(one.files[0].bytes, 10);
  EXPECT_EQ(one.files[0].hash, content_hash("0123456789"));
  EXPECT_TRUE(one.has_hashes());
}

TEST(CheckpointStore, APatternThatCannotBeReadIsToldAtTheStart) {
  const TempFolder temp;
  CheckpointConfig config;
  config.filename = "run-{step:x}";
  EXPECT_EQ(error_of([&] { return CheckpointStore(temp / "c", config); }),
            "exp_manager.checkpoint_callback_params.filename: \"x\" is not a format; expected one such as .3f or 04d");
}

}  // namespace
}  // namespace kedge
