#include "kedge/core/content_hash.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// Pieces are hashed separately and then their hashes, so that threads can share a file. What is saved with a checkpoint depends on this
// size.
constexpr size_t kPiece = size_t{4} << 20U;
constexpr size_t kRead = size_t{256} << 10U;  // at a time: stays in a core's own cache between being read and being hashed
constexpr size_t kWord = sizeof(uint64_t), kLanes = 8, kBlock = kLanes * kWord;
// The digits of e, pi and the golden ratio, whose bits look random. Odd, so that multiplying by them loses nothing.
constexpr uint64_t kOfWord = 0xB7E151628AED2A6BU, kOfState = 0x243F6A8885A308D3U, kSeed = 0x9E3779B97F4A7C15U;

uint64_t word64_at(const char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, kWord);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

// For a given state every word leads to another result, and for a given word every state: a difference never goes away by itself. A
// product spreads a bit to those above it only; turned about and multiplied again, a flipped bit is not undone by another one near it.
uint64_t step(uint64_t state, uint64_t word) { return std::rotl((state ^ std::rotl(word * kOfWord, 32)) * kOfState, 29); }

// The hash of one piece, fed in blocks. Lanes do not wait for each other's multiplications.
class PieceHash {
 public:
  PieceHash() {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes_.at(lane) = kSeed * (lane + 1);
  }

  // A multiple of the block's size, but for the last bytes of the piece.
  void add(std::string_view bytes) {
    size_ += bytes.size();
    std::array<uint64_t, kLanes> lanes = lanes_;
    for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock))
      for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = step(lanes[lane], word64_at(bytes.data() + lane * kWord));
    if (!bytes.empty()) {
      std::array<char, kBlock> last{};
      std::copy(bytes.begin(), bytes.end(), last.begin());
      for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = step(lanes[lane], word64_at(last.data() + lane * kWord));
    }
    lanes_ = lanes;
  }

  // With the size, so that zeros at the end count.
  [[nodiscard]] uint64_t value() const {
    uint64_t hash = step(kSeed, size_);
    for (const uint64_t lane : lanes_) hash = step(hash, lane);
    return hash;
  }

 private:
  std::array<uint64_t, kLanes> lanes_{};
  uint64_t size_ = 0;
};

std::string hex_of(uint64_t hash) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(hash >> static_cast<unsigned>(shift)) & 0xFU];
  return text;
}

// The last steps spread every difference over all digits.
std::string whole_hash(const std::vector<uint64_t>& pieces) {
  uint64_t hash = kSeed;
  for (const uint64_t piece : pieces) hash = step(hash, piece);
  for (int i = 0; i < 3; ++i) hash = step(hash ^ (hash >> 32U), 0);
  return hex_of(hash);
}

size_t num_pieces(size_t size) { return std::max<size_t>(1, (size + kPiece - 1) / kPiece); }

class OpenFile {
 public:
  explicit OpenFile(const Path& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw_unreadable(path);
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void read(size_t begin, char* to, size_t size) const {
    while (size > 0) {
      const ssize_t count = ::pread(fd_, to, size, static_cast<off_t>(begin));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw Error(str(path_.string(), ": cannot be read: ", std::strerror(errno)));
      if (count == 0) throw Error(str(path_.string(), ": became shorter while it was read"));
      begin += static_cast<size_t>(count);
      to += count;
      size -= static_cast<size_t>(count);
    }
  }

 private:
  Path path_;
  int fd_;
};

uint64_t hash_piece(const OpenFile& file, size_t begin, size_t end, std::vector<char>& buffer) {
  PieceHash hash;
  for (size_t at = begin; at < end; at += kRead) {
    const size_t size = std::min(kRead, end - at);
    file.read(at, buffer.data(), size);
    hash.add({buffer.data(), size});
  }
  return hash.value();
}

}  // namespace

std::string content_hash(std::string_view bytes) {
  std::vector<uint64_t> pieces(num_pieces(bytes.size()));
  for (size_t i = 0; i < pieces.size(); ++i) {
    PieceHash hash;
    hash.add(bytes.substr(i * kPiece, kPiece));
    pieces[i] = hash.value();
  }
  return whole_hash(pieces);
}

std::string file_content_hash(const Path& file, int num_threads) {
  const OpenFile open(file);
  const size_t size = std::filesystem::file_size(file);
  std::vector<uint64_t> pieces(num_pieces(size));
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr problem;
  const auto work = [&] {
    try {
      std::vector<char> buffer(std::min(kRead, size));
      for (size_t i = next++; i < pieces.size(); i = next++)
        pieces[i] = hash_piece(open, i * kPiece, std::min(size, (i + 1) * kPiece), buffer);
    } catch (...) {
      const std::lock_guard lock(mutex);
      problem = std::current_exception();
    }
  };
  const size_t most = std::max(1U, std::thread::hardware_concurrency());
  const size_t wanted = std::min({static_cast<size_t>(std::max(1, num_threads)), most, pieces.size()});
  std::vector<std::thread> others;
  for (size_t i = 1; i < wanted; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (problem) std::rethrow_exception(problem);
  return whole_hash(pieces);
}

std::string file_damage(const Path& folder, const std::string& name, const std::string& hash) {
  return file_content_hash(folder / name) == hash ? "" : name + ": its bytes are not those that were saved";
}

}  // namespace kedge
