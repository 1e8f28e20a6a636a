#include "kedge/core/error.h"
#include "kedge/data/gzip.h"

namespace kedge {

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

MappedFile map_unpacked(const Path& path) {
  throw UsageError(
      str(path.string(), ": packed with gzip, and this build cannot unpack it; unpack the file, or install zlib1g-dev and build again"));
}

}  // namespace kedge
