#include "kedge/core/identity.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "kedge/core/error.h"

namespace kedge {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::string random_hex(size_t num_bytes) {
  std::vector<unsigned char> bytes(num_bytes);
  if (::getentropy(bytes.data(), bytes.size()) != 0) throw Error(str("no randomness: ", std::strerror(errno)));
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

}  // namespace kedge
