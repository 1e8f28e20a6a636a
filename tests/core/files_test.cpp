#include "kedge/core/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::FileSizeLimit;
using testing::TempFolder;

size_t entries_of(const Path& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(Files, AnAtomicWriteReplacesTheWholeContentAndLeavesNothingBeside) {
  const TempFolder folder;
  write_atomic(folder / "a.txt", "a long first content");
  write_atomic(folder / "a.txt", "second");
  EXPECT_EQ(read_text(folder / "a.txt"), "second");
  EXPECT_EQ(entries_of(folder.path()), 1U);
}

TEST(Files, AWriteThatFailsKeepsTheOldContentAndCleansUp) {
  const TempFolder folder;
  write_atomic(folder / "a.txt", "old");
  std::string text;
  {
    const FileSizeLimit limit(1024);
    text = error_of<Error>([&] { write_atomic(folder / "a.txt", std::string(100000, 'x')); });
  }
  EXPECT_EQ(text, (folder / "a.txt").string() + ": cannot be written: File too large");
  EXPECT_EQ(read_text(folder / "a.txt"), "old");
  EXPECT_EQ(entries_of(folder.path()), 1U);
}

TEST(Files, AnAtomicFileInPiecesIsSeenOnceItIsCommitted) {
  const TempFolder folder;
  write_atomic(folder / "a.txt", "old");
  AtomicFile file(folder / "a.txt");
  file.append("one ");
  file.append("two");
  EXPECT_EQ(read_text(folder / "a.txt"), "old");
  file.commit();
  EXPECT_EQ(read_text(folder / "a.txt"), "one two");
  EXPECT_EQ(entries_of(folder.path()), 1U);
  EXPECT_THROW(file.append("three"), Bug);
  EXPECT_THROW(file.commit(), Bug);
}

TEST(Files, AnAtomicFileThatIsNotCommittedLeavesNothing) {
  const TempFolder folder;
  write_atomic(folder / "a.txt", "old");
  {
    AtomicFile file(folder / "a.txt");
    file.append("new");
    EXPECT_EQ(entries_of(folder.path()), 2U);
  }
  EXPECT_EQ(read_text(folder / "a.txt"), "old");
  EXPECT_EQ(entries_of(folder.path()), 1U);
}

// In a container every start of the program may be process 1.
TEST(Files, WhatAProcessOfTheSameNumberLeftIsNotInTheWay) {
  const TempFolder folder;
  write_atomic(folder / "probe", "x");
  for (int i = 0; i < 10000; ++i) folder.file(str(".a.txt.", ::getpid(), ".", i, ".tmp"), "half");
  write_atomic(folder / "a.txt", "whole");
  EXPECT_EQ(read_text(folder / "a.txt"), "whole");
  folder.file(".hidden", "stays");
  remove_temporaries(folder.path());
  EXPECT_EQ(entries_of(folder.path()), 3U);
  remove_temporaries(folder / "none");
}

TEST(Files, AFolderIsLinkedOrCopied) {
  const TempFolder folder;
  make_folder(folder / "a/b");
  folder.file("a/b/c", "123");
  link_folder(folder / "a", folder / "linked");
  EXPECT_TRUE(std::filesystem::equivalent(folder / "a/b/c", folder / "linked/b/c"));
  const auto without = [](int error, const Path& to, const Path& from) {
    static int refusal = 0;
    refusal = error;
    link_folder(from, to, [](const char*, const char*) { return errno = refusal, -1; });
  };
  for (const int error : {EPERM, EOPNOTSUPP, ENOSYS, EMLINK}) {
    const Path to = folder / str("copied-", error);
    without(error, to, folder / "a");
    EXPECT_EQ(read_text(to / "b/c"), "123");
    EXPECT_FALSE(std::filesystem::equivalent(folder / "a/b/c", to / "b/c"));
  }
  EXPECT_EQ(error_of<Error>([&] { return without(ENOSPC, folder / "full", folder / "a"), 0; }),
            str((folder / "full/b/c").string(), ": cannot be linked to ", (folder / "a/b/c").string(), ": No space left on device"));
}

TEST(Files, FoldersAreListedByNameAndRemovedWithAllThatIsInThem) {
  const TempFolder folder;
  make_folder(folder / "a/b");
  folder.file("a/b/2", "");
  folder.file("a/1", "");
  EXPECT_EQ(list_folder(folder / "a"), (std::vector<Path>{folder / "a/1", folder / "a/b"}));
  EXPECT_EQ(files_below(folder / "a"), (std::vector<Path>{folder / "a/1", folder / "a/b/2"}));
  sync_tree(folder / "a");
  EXPECT_EQ(error_of([&] { return list_folder(folder / "none"); }),
            (folder / "none").string() + ": cannot be read: No such file or directory");
  remove_tree(folder / "a");
  remove_tree(folder / "a");
  EXPECT_FALSE(is_folder(folder / "a"));
}

TEST(Files, AFileThatIsNotThereIsTheUsersErrorAndADiskThatFailsTheWorlds) {
  const auto kind = [](int error) -> std::string {
    try {
      errno = error;
      throw_unreadable("a.txt");
    } catch (const UsageError&) {
      return "user";
    } catch (const Error&) {
      return "world";
    }
  };
  for (const int error : {ENOENT, EACCES, EISDIR}) EXPECT_EQ(kind(error), "user") << error;
  for (const int error : {EIO, EMFILE, ESTALE, ENOMEM}) EXPECT_EQ(kind(error), "world") << error;
}

TEST(Files, WritersOfTheSameFileDoNotDisturbEachOther) {
  const TempFolder folder;
  std::vector<std::thread> writers;
  for (char c = 'a'; c < 'e'; ++c)
    writers.emplace_back([&folder, c] {
      for (int i = 0; i < 20; ++i) write_atomic(folder / "f", std::string(1000, c));
    });
  for (auto& writer : writers) writer.join();
  const std::string content = read_text(folder / "f");
  EXPECT_EQ(content, std::string(1000, content.at(0)));
  EXPECT_EQ(entries_of(folder.path()), 1U);
}

TEST(Files, AnAppendedFileGrowsAcrossOpeningsAndCanBeCutBack) {
  const TempFolder folder;
  {
    AppendFile file(folder / "log");
    file.append("one ");
    file.append("two ");
    file.sync();
    EXPECT_EQ(file.size(), 8);
  }
  AppendFile file(folder / "log");
  EXPECT_EQ(file.size(), 8);
  file.cut_back(4);
  file.append("three");
  EXPECT_EQ(read_text(folder / "log"), "one three");
}

TEST(Files, AnAppendThatFailsLeavesNoHalfAndLaterOnesWork) {
  const TempFolder folder;
  AppendFile file(folder / "log");
  file.append("first ");
  {
    const FileSizeLimit limit(1024);
    EXPECT_EQ(error_of<Error>([&] { file.append(std::string(5000, 'x')); }),
              (folder / "log").string() + ": cannot be written: File too large");
    EXPECT_EQ(read_text(folder / "log"), "first ");
  }
  file.append("second");
  EXPECT_EQ(read_text(folder / "log"), "first second");
}

TEST(Files, AFolderIsMadeWithThoseAboveIt) {
  const TempFolder folder;
  make_folder(folder / "a/b/c");
  make_folder(folder / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  const Path file = folder.file("f", "");
  EXPECT_EQ(error_of([&] { make_folder(file / "x"); }), (file / "x").string() + ": cannot be created as a folder: Not a directory");
}

TEST(Files, ANameIsAFileAFolderOrNeither) {
  const TempFolder folder;
  const Path file = folder.file("f", "");
  std::filesystem::create_symlink(file, folder / "link");
  EXPECT_TRUE(is_file(file));
  EXPECT_TRUE(is_file(folder / "link"));
  EXPECT_FALSE(is_folder(file));
  EXPECT_TRUE(is_folder(folder.path()));
  EXPECT_FALSE(is_file(folder.path()));
  for (const Path& none : {folder / "none", file / "below", folder / std::string(5000, 'x')}) {
    EXPECT_FALSE(is_file(none));
    EXPECT_FALSE(is_folder(none));
  }
}

TEST(Files, MapsAFileInPlace) {
  const TempFolder folder;
  MappedFile mapped(folder.file("m.bin", "hello"));
  EXPECT_EQ(mapped.text(), "hello");
  EXPECT_EQ(mapped.bytes().size(), 5U);
  const MappedFile moved = std::move(mapped);
  EXPECT_EQ(moved.text(), "hello");
  EXPECT_EQ(MappedFile(folder.file("empty", "")).size(), 0U);
}

TEST(Files, BytesMayBeReadPastTheMapping) {
  const TempFolder folder;
  const auto path = folder.file("m.bin", "hello");
  MappedFile first(path);
  const MappedFile mapped = std::move(first);
  EXPECT_EQ(mapped.read(1, 4), "ell");
  EXPECT_EQ(mapped.read(5, 5), "");
  EXPECT_THROW(static_cast<void>(mapped.read(1, 6)), Bug);
  std::filesystem::resize_file(path, 3);
  EXPECT_EQ(error_of<Error>([&] { return mapped.read(1, 5); }),
            path.string() + ": was 5 bytes long and is shorter now; did something write to it?");
}

TEST(Files, ErrorsNameThePath) {
  const TempFolder folder;
  const std::string missing = (folder / "none").string();
  EXPECT_EQ(error_of([&] { read_text(missing); }), missing + ": cannot be read: No such file or directory");
  EXPECT_EQ(error_of([&] { MappedFile{missing}; }), missing + ": cannot be read: No such file or directory");
  EXPECT_EQ(error_of([&] { read_text(folder.path()); }), folder.path().string() + ": expected a file, found a folder");
  EXPECT_EQ(error_of([&] { MappedFile{folder.path()}; }), folder.path().string() + ": expected a file, found a folder");
  EXPECT_EQ(error_of([&] { AppendFile{folder.path()}; }), folder.path().string() + ": cannot be opened for writing: Is a directory");
  const std::string nowhere = (folder / "no/such/folder/a").string();
  EXPECT_EQ(error_of<Error>([&] { write_atomic(nowhere, "x"); }), nowhere + ": cannot be written: No such file or directory");
}

TEST(Files, DroppedPagesAreReadAgainWhenTouched) {
  const TempFolder folder;
  const std::string content(100000, 'x');
  const MappedFile mapped(folder.file("f", content));
  EXPECT_EQ(mapped.text(), content);
  mapped.drop_pages(0, mapped.size());
  EXPECT_EQ(mapped.text(), content);
  mapped.drop_pages(5, 50000);  // a range that is no multiple of pages
  mapped.drop_pages(99990, 1 << 20);
  EXPECT_EQ(mapped.text(), content);
}

}  // namespace
}  // namespace kedge
