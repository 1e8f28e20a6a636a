#pragma once
// Files that are complete or absent, append-only files, and memory-mapped files. Every error names the path.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

using Path = std::filesystem::path;

// A UsageError if a path does not exist or is not accessible (the user named it), an Error if the disk or the system fails.
[[noreturn]] void throw_file_error(int error, const std::string& text);
[[noreturn]] void throw_unreadable(const Path& path);  // by errno: "PATH: cannot be read: ..."

// The complete file. A missing file is a UsageError (the user named it).
std::string read_text(const Path& path);

// After a crash at any moment the file holds its old content or all of the new: written next to its final name, fsynced,
// renamed, folder fsynced. A failure leaves the old content and removes the temporary file.
void write_atomic(const Path& path, std::string_view content);

// The same for content written in pieces: the file does not exist under its name before `commit` returns. One that is not
// committed leaves the old content and removes the temporary file. For one writer; not thread-safe.
class AtomicFile {
 public:
  explicit AtomicFile(const Path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void append(std::string_view bytes);
  void commit();  // once; nothing is appended after it

  [[nodiscard]] const Path& path() const { return path_; }

 private:
  Path path_;
  Path temporary_;  // empty once it has its final name
  int fd_ = -1;
};

// Is there a file, a folder of this name (or a link to one)? False if that cannot be determined.
[[nodiscard]] bool is_file(const Path& path);
[[nodiscard]] bool is_folder(const Path& path);

// What is in a folder, by name. Errors name the folder, which those of std::filesystem do not always.
[[nodiscard]] std::vector<Path> list_folder(const Path& folder);
// Every file in it and in those below it, by name.
[[nodiscard]] std::vector<Path> files_below(const Path& folder);
// Removes a file or a folder with its contents; a missing one is not an error.
void remove_tree(const Path& path);

// Creates a folder and its parents; an existing one is not an error.
void make_folder(const Path& folder);

// The complete folder under another name, each file a hard link: it takes no more space. A file system without hard links gets copies,
// which is logged once. `link` is the system's call, or a test's.
using LinkCall = int (*)(const char* from, const char* to);
void link_folder(const Path& from, const Path& to, LinkCall link = nullptr);

// Removes the temporary files that writers who were killed left in this folder. There must be no concurrent writer.
void remove_temporaries(const Path& folder);

// Makes a rename or a new entry in this folder survive a power cut.
void sync_folder(const Path& folder);

// Makes a file's own content survive a power cut.
void sync_file(const Path& file);

// Both for everything below a folder and for itself.
void sync_tree(const Path& folder);

// An append-only file. For one writer; not thread-safe.
class AppendFile {
 public:
  // Opened if it exists, else created; the folder must exist.
  explicit AppendFile(const Path& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // All of the bytes, or an Error and none of them: a partial write is cut off again. The bytes are with the
  // operating system on return, so they outlive this process; `sync` makes them outlive a power cut.
  void append(std::string_view bytes);
  void cut_back(int64_t size);  // to at most the present size
  void sync();

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] const Path& path() const { return path_; }

 private:
  Path path_;
  int fd_ = -1;
  int64_t size_ = 0;
  bool torn_ = false;  // bytes of a failed write may follow size_
};

// A file that several processes write at once, each its own bytes of it, in any order. It has its name from the beginning: only they
// know when it is complete.
class SharedFile {
 public:
  explicit SharedFile(const Path& path);  // opened if it exists, else created
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  void write_at(uint64_t offset, std::string_view bytes);
  void sync();  // what this process wrote outlives a power cut

 private:
  Path path_;
  int fd_ = -1;
};

// A file mapped for reading. Movable; the bytes live as long as the object. An empty file maps to no bytes.
class MappedFile {
 public:
  explicit MappedFile(const Path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::string_view text() const { return {data_, size_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(data_, size_)); }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] const Path& path() const { return path_; }

  // Releases the memory of these bytes; they are read from the file again on access, so other
  // threads may read meanwhile. Only complete pages inside the range are released.
  void drop_pages(size_t begin, size_t end) const;
  // A copy of these bytes, read without the mapping: no page of it becomes resident, which for short pieces in random order is
  // also several times faster. A file that was cut short meanwhile is an Error.
  [[nodiscard]] std::string read(size_t begin, size_t end) const;

 private:
  Path path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;
};

}  // namespace kedge
