#include "kedge/data/gzip.h"

#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr size_t kBufferBytes = 1U << 18U;
constexpr int kGzipWindow = 15 + 16;  // the largest window, gzip header and check sum

// A file that is written to and then mapped; its name is gone when this is.
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
        throw Error(str(path_, ": cannot be written: ", std::strerror(errno), "; TMPDIR names another place for unpacked files"));
      data += count;
      size -= static_cast<size_t>(count);
    }
  }
  [[nodiscard]] MappedFile map() const { return MappedFile(path_); }

 private:
  std::string path_;
  int fd_;
};

class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw Error("zlib cannot start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Unpacks all of `input`; `member_open` says whether a packed member still waits for more.
  void unpack(std::span<char> input, const TemporaryFile& out, const Path& path) {
    stream_.next_in = reinterpret_cast<Bytef*>(input.data());
    stream_.avail_in = static_cast<uInt>(input.size());
    while (stream_.avail_in > 0) {
      if (!member_open) inflateReset(&stream_), member_open = true;
      int state = Z_OK;
      do {
        stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
        stream_.avail_out = static_cast<uInt>(buffer_.size());
        state = inflate(&stream_, Z_NO_FLUSH);
        check(state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR, path.string(),
              ": not a valid gzip file: ", stream_.msg == nullptr ? "broken data" : stream_.msg);
        out.write(buffer_.data(), buffer_.size() - stream_.avail_out);
      } while (state == Z_OK && stream_.avail_out == 0);
      if (state == Z_STREAM_END) member_open = false;
      if (state == Z_BUF_ERROR) break;  // wants more input
    }
  }

  bool member_open = false;

 private:
  z_stream stream_{};
  std::vector<char> buffer_ = std::vector<char>(kBufferBytes);
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

MappedFile map_unpacked(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  check(in.good(), path.string(), ": cannot be read");
  const TemporaryFile out;
  Inflater inflater;
  std::vector<char> input(kBufferBytes);
  while (in.read(input.data(), static_cast<std::streamsize>(input.size())), in.gcount() > 0)
    inflater.unpack({input.data(), static_cast<size_t>(in.gcount())}, out, path);
  if (in.bad()) throw Error(str(path.string(), ": cannot be read"));
  check(!inflater.member_open, path.string(), ": not a valid gzip file: it is cut off");
  return out.map();
}

}  // namespace kedge
