#pragma once
// Files packed with gzip, unpacked once into a temporary file that is then mapped. Independent of their contents.
#include <string_view>

#include "kedge/core/files.h"

namespace kedge {

// By its first bytes, whatever the name of the file.
[[nodiscard]] bool is_gzip(std::string_view bytes);

// The temporary file is in TMPDIR (or /tmp), is already unlinked when this returns, and disappears with the mapping. Several
// packed members in a row are one text. A broken or cut file is a UsageError.
[[nodiscard]] MappedFile map_unpacked(const Path& path);

}  // namespace kedge
