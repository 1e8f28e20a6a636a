#pragma once
// A fast hash of every byte, to detect damage on disk. The same on every machine; not cryptographic.
#include <cstdint>
#include <string>
#include <string_view>

#include "kedge/core/files.h"

namespace kedge {

// 16 digits. Bytes that differ within one aligned word of 8 and nowhere else always have different hashes: a flipped bit is never missed.
[[nodiscard]] std::string content_hash(std::string_view bytes);

// That of the file's bytes. Read by `num_threads` threads, each a piece at a time, without mapping it: a file that is cut short meanwhile
// is an Error. Faster than disks are: several GB/s on two cores for what is in memory already.
[[nodiscard]] std::string file_content_hash(const Path& file, int num_threads = 4);

// Empty if the bytes of FOLDER/NAME have the hash that they had when they were saved. Otherwise "NAME: its bytes are not those that were
// saved". An Error if they cannot be read.
[[nodiscard]] std::string file_damage(const Path& folder, const std::string& name, const std::string& hash);

}  // namespace kedge
