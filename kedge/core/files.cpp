#include "kedge/core/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

// An open file descriptor, closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string reason() { return std::strerror(errno); }

int open_for_reading(const Path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw_unreadable(path);
  return fd;
}

size_t size_of(int fd, const Path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw Error(str(path.string(), ": ", reason()));
  check(S_ISREG(info.st_mode), path.string(), ": expected a file, found ", S_ISDIR(info.st_mode) ? "a folder" : "something else");
  return static_cast<size_t>(info.st_size);
}

void write_all(int fd, std::string_view content, const Path& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(str(path.string(), ": cannot be written: ", reason()));
    content.remove_prefix(static_cast<size_t>(count));
  }
}

void sync_path(const Path& path, int flags) {
  const Descriptor file(::open(path.c_str(), flags | O_RDONLY | O_CLOEXEC));
  if (!file.valid() || ::fsync(file.get()) != 0) throw Error(str(path.string(), ": cannot be synced to disk: ", reason()));
}

constexpr std::string_view kTemporary = ".tmp";

// Unique among the processes and threads that may write the same file at the same time, except by processes that had the same pid before.
Path temporary_beside(const Path& path) {
  static std::atomic<uint64_t> counter = 0;
  return path.parent_path() / str(".", path.filename().string(), ".", ::getpid(), ".", counter++, kTemporary);
}

int make_temporary(const Path& path, Path& temporary) {
  int fd = -1;
  do {
    temporary = temporary_beside(path);
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EEXIST);  // left by a process that was killed: in a container every one may be number 1
  return fd;
}

// The errors of file systems without hard links, or with too few of them.
bool has_no_links(int error) {
  return error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK || error == EXDEV || error == EINVAL;
}

}  // namespace

void throw_file_error(int error, const std::string& text) {
  for (const int users : {ENOENT, ENOTDIR, EISDIR, EEXIST, EACCES, EPERM, EROFS, ELOOP, ENAMETOOLONG, EINVAL})
    if (error == users) throw UsageError(text);
  throw Error(text);
}

void throw_unreadable(const Path& path) { throw_file_error(errno, str(path.string(), ": cannot be read: ", reason())); }

std::string read_text(const Path& path) {
  const Descriptor file(open_for_reading(path));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw Error(str(path.string(), ": ", reason()));
  check(!S_ISDIR(info.st_mode), path.string(), ": expected a file, found a folder");
  std::string content;
  content.reserve(static_cast<size_t>(info.st_size));
  std::string block(1 << 16, '\0');
  while (true) {  // until the end, not until st_size: pipes and /proc files have none
    const ssize_t count = ::read(file.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(str(path.string(), ": cannot be read: ", reason()));
    if (count == 0) return content;
    content.append(block.data(), static_cast<size_t>(count));
  }
}

void write_atomic(const Path& path, std::string_view content) {
  AtomicFile file(path);
  file.append(content);
  file.commit();
}

AtomicFile::AtomicFile(const Path& path) : path_(path), fd_(make_temporary(path, temporary_)) {
  if (fd_ < 0) throw Error(str(path.string(), ": cannot be written: ", reason()));
}

AtomicFile::~AtomicFile() {
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::append(std::string_view bytes) {
  ensure(!temporary_.empty(), path_.string(), ": appended to after its commit");
  write_all(fd_, bytes, path_);
}

void AtomicFile::commit() {
  ensure(!temporary_.empty(), path_.string(), ": committed twice");
  if (::fsync(fd_) != 0) throw Error(str(path_.string(), ": cannot be synced to disk: ", reason()));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw Error(str(path_.string(), ": cannot be renamed into place: ", reason()));
  temporary_.clear();
  sync_folder(path_.parent_path());
}

bool is_file(const Path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

bool is_folder(const Path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::vector<Path> list_folder(const Path& folder) {
  std::error_code error;
  std::vector<Path> paths;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) paths.push_back(entry->path());
  if (error) throw_file_error(error.value(), str(folder.string(), ": cannot be read: ", error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<Path> files_below(const Path& folder) {
  std::vector<Path> files;
  for (const Path& path : list_folder(folder)) {
    if (is_file(path)) files.push_back(path);
    if (!is_folder(path) || std::filesystem::is_symlink(path)) continue;
    const std::vector<Path> below = files_below(path);
    files.insert(files.end(), below.begin(), below.end());
  }
  return files;
}

void remove_tree(const Path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) throw Error(str(path.string(), ": cannot be removed: ", error.message()));
}

// What is written into a new folder is on disk only when the folder's own name is.
void make_folder(const Path& folder) {
  std::vector<Path> missing;
  std::error_code error;
  Path path = std::filesystem::absolute(folder, error);
  if (!path.has_filename()) path = path.parent_path();  // after a "/" at the end
  for (; !error && !std::filesystem::exists(path, error) && path.has_relative_path(); path = path.parent_path()) missing.push_back(path);
  std::filesystem::create_directories(folder, error);
  if (error) throw_file_error(error.value(), str(folder.string(), ": cannot be created as a folder: ", error.message()));
  for (const Path& made : missing)
    if (::access(made.parent_path().c_str(), R_OK) == 0) sync_folder(made.parent_path());
}

void link_folder(const Path& from, const Path& to, LinkCall link) {
  static std::atomic<bool> has_warned = false;
  if (link == nullptr) link = ::link;
  make_folder(to);
  for (const Path& path : list_folder(from)) {
    const Path target = to / path.filename();
    if (is_folder(path)) {
      link_folder(path, target, link);
    } else if (link(path.c_str(), target.c_str()) != 0) {
      if (!has_no_links(errno)) throw Error(str(target.string(), ": cannot be linked to ", path.string(), ": ", reason()));
      if (!has_warned.exchange(true))
        log_warn(target.string(), ": this file system has no hard links (", reason(), "); files are copied, which takes twice the space");
      std::error_code error;
      std::filesystem::copy_file(path, target, error);
      if (error) throw Error(str(target.string(), ": cannot be copied from ", path.string(), ": ", error.message()));
    }
  }
}

void remove_temporaries(const Path& folder) {
  std::error_code error;
  std::vector<Path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') && name.ends_with(kTemporary) && entry.is_regular_file(error)) found.push_back(entry.path());
  }
  for (const Path& path : found) std::filesystem::remove(path, error);  // a leftover takes space but does no harm
}

void sync_folder(const Path& folder) { sync_path(folder.empty() ? Path(".") : folder, O_DIRECTORY); }

void sync_file(const Path& file) { sync_path(file, 0); }

void sync_tree(const Path& folder) {
  for (const Path& path : list_folder(folder)) {
    if (std::filesystem::is_symlink(path)) continue;
    if (is_folder(path)) sync_tree(path);
    if (is_file(path)) sync_file(path);
  }
  sync_folder(folder);
}

AppendFile::AppendFile(const Path& path) : path_(path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid()) throw_file_error(errno, str(path.string(), ": cannot be opened for writing: ", reason()));
  size_ = static_cast<int64_t>(size_of(file.get(), path));
  sync_folder(path.parent_path());
  fd_ = file.release();
}

AppendFile::~AppendFile() { ::close(fd_); }

void AppendFile::append(std::string_view bytes) {
  if (torn_) cut_back(size_);
  try {
    write_all(fd_, bytes, path_);
  } catch (const Error&) {
    torn_ = ::ftruncate(fd_, size_) != 0;
    throw;
  }
  size_ += static_cast<int64_t>(bytes.size());
}

void AppendFile::cut_back(int64_t size) {
  ensure(size >= 0 && size <= size_, path_.string(), ": truncated to ", size, " of ", size_, " bytes");
  if (::ftruncate(fd_, size) != 0) throw Error(str(path_.string(), ": cannot be truncated: ", reason()));
  size_ = size;
  torn_ = false;
}

void AppendFile::sync() {
  if (::fsync(fd_) != 0) throw Error(str(path_.string(), ": cannot be synced to disk: ", reason()));
}

SharedFile::SharedFile(const Path& path) : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) {
  if (fd_ < 0) throw Error(str(path.string(), ": cannot be written: ", reason()));
}

SharedFile::~SharedFile() { ::close(fd_); }

void SharedFile::write_at(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(str(path_.string(), ": cannot be written: ", reason()));
    bytes.remove_prefix(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

void SharedFile::sync() {
  if (::fsync(fd_) != 0) throw Error(str(path_.string(), ": cannot be synced to disk: ", reason()));
}

MappedFile::MappedFile(const Path& path) : path_(path) {
  Descriptor file(open_for_reading(path));
  size_ = size_of(file.get(), path);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) throw Error(str(path.string(), ": cannot be mapped: ", reason()));
  data_ = static_cast<const char*>(mapped);
  fd_ = file.release();
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      fd_(std::exchange(other.fd_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  return *this;
}

void MappedFile::drop_pages(size_t begin, size_t end) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;
  end = end >= size_ ? size_ : end / page * page;
  if (begin < end) ::madvise(const_cast<char*>(data_) + begin, end - begin, MADV_DONTNEED);  // only a hint: a failure only costs memory
}

std::string MappedFile::read(size_t begin, size_t end) const {
  ensure(begin <= end && end <= size_, path_.string(), ": bytes ", begin, " to ", end, " of ", size_);
  std::string bytes(end - begin, '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(begin + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(str(path_.string(), ": cannot be read: ", reason()));
    if (count == 0) throw Error(str(path_.string(), ": was ", size_, " bytes long and is shorter now; did something write to it?"));
    done += static_cast<size_t>(count);
  }
  return bytes;
}

}  // namespace kedge
