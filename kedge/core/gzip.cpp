#include "kedge/core/gzip.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/inflate.h"

namespace kedge {
namespace {

constexpr size_t kBufferBytes = 1U << 18U;

// A file that is written to and then mapped; it is unlinked with this object.
class TemporaryFile {
 public:
  TemporaryFile() : path_((std::filesystem::temp_directory_path() / "kedge-unpacked-XXXXXX").string()), fd_(::mkstemp(path_.data())) {
    if (fd_ < 0) throw Error(str(path_, ": cannot be written: ", std::strerror(errno)));
  }
  ~TemporaryFile() {
    ::unlink(path_.c_str());
    ::close(fd_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(const char* data, size_t size) const {
    while (size > 0) {
      const ssize_t count = ::write(fd_, data, size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0)
        throw Error(str(path_, ": cannot be written: ", std::strerror(errno), "; TMPDIR sets another folder for unpacked files"));
      data += count;
      size -= static_cast<size_t>(count);
    }
  }
  [[nodiscard]] MappedFile map() const { return MappedFile(path_); }

 private:
  std::string path_;
  int fd_;
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

MappedFile map_unpacked(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  check(in.good(), path.string(), ": cannot be read");
  const TemporaryFile out;
  try {
    Inflater inflater(Packing::gzip);
    std::vector<char> input(kBufferBytes);
    while (in.read(input.data(), static_cast<std::streamsize>(input.size())), in.gcount() > 0)
      inflater.unpack({input.data(), static_cast<size_t>(in.gcount())},
                      [&](std::string_view piece) { out.write(piece.data(), piece.size()); });
    if (in.bad()) throw Error(str(path.string(), ": cannot be read"));
    inflater.finish();
  } catch (const UsageError& error) {
    throw UsageError(str(path.string(), ": ", error.what()));
  }
  return out.map();
}

}  // namespace kedge
