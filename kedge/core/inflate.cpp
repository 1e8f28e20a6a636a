#include "kedge/core/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18U;
constexpr size_t kMaxInputBytes = size_t{1} << 30U;  // zlib counts in 32 bits
constexpr int kZlibWindow = 15;                      // the largest; with a header and a check sum
constexpr int kGzipWindow = kZlibWindow + 16;

std::string_view name_of(Packing packing) { return packing == Packing::gzip ? "gzip" : "deflate"; }

}  // namespace

struct Inflater::Stream {
  explicit Stream(Packing wanted) : packing(wanted) {
    if (inflateInit2(&state, wanted == Packing::gzip ? kGzipWindow : kZlibWindow) != Z_OK) throw Error("zlib cannot start");
  }
  ~Stream() { inflateEnd(&state); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void unpack(std::string_view packed, const std::function<void(std::string_view)>& use) {
    // zlib reads the bytes through a pointer that is not const, and leaves them as they are.
    state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    state.avail_in = static_cast<uInt>(packed.size());
    while (state.avail_in > 0) {
      check(is_open || packing == Packing::gzip, "not valid deflate: bytes follow after its end");
      if (!is_open) inflateReset(&state), is_open = true;
      int result = Z_OK;
      do {
        state.next_out = reinterpret_cast<Bytef*>(buffer.data());
        state.avail_out = static_cast<uInt>(buffer.size());
        result = ::inflate(&state, Z_NO_FLUSH);
        check(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR, "not valid ", name_of(packing), ": ",
              state.msg == nullptr ? "broken data" : state.msg);
        use({buffer.data(), buffer.size() - state.avail_out});
      } while (result == Z_OK && state.avail_out == 0);
      if (result == Z_STREAM_END) is_open = false;
      if (result == Z_BUF_ERROR) break;  // needs more input
    }
  }

  Packing packing;
  z_stream state{};
  bool is_open = true;  // a packed member has not ended
  std::array<char, kBufferBytes> buffer;
};

Inflater::Inflater(Packing packing) : stream_(std::make_unique<Stream>(packing)) {}
Inflater::~Inflater() = default;
Inflater::Inflater(Inflater&& other) noexcept = default;
Inflater& Inflater::operator=(Inflater&& other) noexcept = default;

void Inflater::unpack(std::string_view packed, const std::function<void(std::string_view)>& use) {
  for (; !packed.empty(); packed.remove_prefix(std::min(packed.size(), kMaxInputBytes)))
    stream_->unpack(packed.substr(0, kMaxInputBytes), use);
}

void Inflater::finish() const { check(!stream_->is_open, "not valid ", name_of(stream_->packing), ": it is cut off"); }

bool can_inflate() { return true; }

}  // namespace kedge
