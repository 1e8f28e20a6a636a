// Bytes as a YAML file and overrides: up to the first NUL the file, then one override a line. Only UsageError may come out,
// and what loads must survive a dump and a second load unchanged.
#include <cstdlib>
#include <sstream>

#include "kedge/core/error.h"

#include "tests/support/config_toys.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(text.find('\0'), text.size());
  std::vector<std::string> overrides;
  if (end < text.size()) {
    std::istringstream lines(text.substr(end + 1));
    for (std::string line; std::getline(lines, line);) overrides.push_back(line);
  }
  try {
    kedge::testing::ToyConfig config;
    static_cast<void>(load_section(kedge::describe(config), {"fuzz.yaml", text.substr(0, end)}, overrides));
    const std::string dump = dump_config(kedge::describe(config));
    kedge::testing::ToyConfig again;
    if (!load_section(kedge::describe(again), {"dump.yaml", dump}, {}).empty()) std::abort();
    if (dump_config(kedge::describe(again)) != dump) std::abort();
  } catch (const kedge::UsageError&) {
  }
  return 0;
}
