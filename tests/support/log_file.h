#pragma once
// What is logged while it lives, by any thread.
#include <chrono>
#include <string>
#include <thread>

#include "kedge/core/files.h"
#include "kedge/core/log.h"

#include "tests/support/temp_folder.h"

namespace kedge::testing {

class LogFile {
 public:
  LogFile() { set_log_file(path_); }
  ~LogFile() { set_log_file(""); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  [[nodiscard]] bool contains(const std::string& text) const { return read_text(path_).find(text) != std::string::npos; }
  // The thread that polls a server writes when it finds out, which may be after the calls that went elsewhere.
  void wait_for(const std::string& text) const {
    while (!contains(text)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

 private:
  TempFolder folder_;
  std::string path_ = (folder_ / "log").string();
};

}  // namespace kedge::testing
