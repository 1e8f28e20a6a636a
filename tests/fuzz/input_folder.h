#pragma once
// A fuzzer's bytes as a folder with files, for what reads folders. A line "@@ NAME" begins the file NAME; only names that the target knows
// are written, so no input reaches a file outside. The folder lies in memory where the machine has such a place.
#include <stdlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge::testing {

class InputFolder {
 public:
  explicit InputFolder(std::vector<std::string> names) : names_(std::move(names)) {
    const std::filesystem::path memory = "/dev/shm";
    std::string pattern =
        ((std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path()) / "kedge-fuzz-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    // Names of models in the input are not looked for in this user's cache.
    ::setenv("HF_HOME", path_.c_str(), 1);
    set_up_log({.level = LogLevel::error});
  }
  ~InputFolder() { std::filesystem::remove_all(path_); }
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // The folder then holds the files of this input and no others. Those that stay as they are are not touched.
  void write(const uint8_t* data, size_t size) {
    const std::map<std::string, std::string, std::less<>> files = split({reinterpret_cast<const char*>(data), size});
    for (const std::string& name : names_) {
      const auto wanted = files.find(name);
      const auto there = there_.find(name);
      if (wanted == files.end() ? there == there_.end() : there != there_.end() && there->second == wanted->second) continue;
      if (wanted == files.end()) {
        std::filesystem::remove(path_ / name);
        continue;
      }
      std::filesystem::create_directories((path_ / name).parent_path());
      std::ofstream(path_ / name, std::ios::binary) << wanted->second;
    }
    there_ = files;
  }

 private:
  [[nodiscard]] std::map<std::string, std::string, std::less<>> split(std::string_view text) const {
    std::map<std::string, std::string, std::less<>> files;
    std::string* at = nullptr;
    while (!text.empty()) {
      const size_t end = std::min(text.size(), text.find('\n'));
      const std::string_view line = text.substr(0, end);
      const std::string_view whole = text.substr(0, std::min(text.size(), end + 1));
      text.remove_prefix(whole.size());
      if (line.starts_with("@@ ")) {
        at = nullptr;
        for (const std::string& name : names_)
          if (name == line.substr(3)) at = &files[name];
      } else if (at != nullptr) {
        *at += whole;
      }
    }
    return files;
  }

  std::vector<std::string> names_;
  std::filesystem::path path_;
  std::map<std::string, std::string, std::less<>> there_;
};

// What reads files of others may refuse them, and nothing else.
template <typename Call>
void read_or_refused(const Call& call) {
  try {
    call();
  } catch (const UsageError&) {
  }
}

}  // namespace kedge::testing
