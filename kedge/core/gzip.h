#pragma once
// Files packed with gzip, unpacked once into a temporary file that is then mapped. Knows nothing of what is in them.
#include <string_view>

#include "kedge/core/files.h"

namespace kedge {

// By its first bytes, whatever the name of the file.
[[nodiscard]] bool is_gzip(std::string_view bytes);

// The temporary file lies in TMPDIR (or /tmp), has no name any more when this returns, and is gone with the mapping. Several
// packed members in a row are one text. A broken or cut file is a UsageError.
[[nodiscard]] MappedFile map_unpacked(const Path& path);

}  // namespace kedge
