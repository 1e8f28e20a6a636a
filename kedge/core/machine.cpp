#include "kedge/core/machine.h"

#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <sstream>

#include "kedge/core/error.h"
#include "kedge/core/numbers.h"

namespace kedge {
namespace {

// The value after the colon of the first line with this name; empty when there is none.
std::string value_of(std::string_view text, std::string_view name) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (line.rfind(name, 0) != 0 || colon == std::string::npos) continue;
    if (line.find_first_not_of(" \t", name.size()) != colon) continue;  // a longer name
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

int64_t kilobytes(std::string_view meminfo, std::string_view name) { return std::atoll(value_of(meminfo, name).c_str()) * 1024; }

std::string read_or_empty(const Path& path) {
  try {
    return read_text(path);
  } catch (const Error&) {
    return "";  // not every kernel has every file
  }
}

// Arm's /proc/cpuinfo names cores by number only.
std::string arm_name(std::string_view cpuinfo) {
  struct Part {
    std::string_view number, name;
  };
  static constexpr std::array<Part, 9> kParts = {{{"0xd0c", "Neoverse-N1"},
                                                  {"0xd40", "Neoverse-V1"},
                                                  {"0xd49", "Neoverse-N2"},
                                                  {"0xd4f", "Neoverse-V2"},
                                                  {"0xd8e", "Neoverse-N3"},
                                                  {"0xd84", "Neoverse-V3"},
                                                  {"0xd08", "Cortex-A72"},
                                                  {"0xd0b", "Cortex-A76"},
                                                  {"0xac3", "Ampere-1"}}};
  const std::string part = value_of(cpuinfo, "CPU part");
  for (const Part& known : kParts)
    if (known.number == part) return std::string(known.name);
  return part.empty() ? "unknown" : str("Arm part ", part);
}

}  // namespace

Machine parse_machine(std::string_view cpuinfo, std::string_view meminfo) {
  static constexpr std::array<std::string_view, 12> kTelling = {"avx",      "avx2",  "fma", "avx512f", "avx512_bf16", "amx_tile",
                                                                "amx_bf16", "asimd", "sve", "sve2",    "bf16",        "i8mm"};
  Machine machine;
  machine.cpu = value_of(cpuinfo, "model name");
  if (machine.cpu.empty()) machine.cpu = arm_name(cpuinfo);
  std::istringstream flags(value_of(cpuinfo, "flags") + value_of(cpuinfo, "Features"));
  for (std::string flag; flags >> flag;)
    if (std::find(kTelling.begin(), kTelling.end(), flag) != kTelling.end()) machine.features.push_back(flag);
  machine.memory_bytes = kilobytes(meminfo, "MemTotal");
  machine.available_bytes = kilobytes(meminfo, "MemAvailable");
  return machine;
}

Machine this_machine() {
  Machine machine = parse_machine(read_or_empty("/proc/cpuinfo"), read_or_empty("/proc/meminfo"));
  struct utsname name {};
  if (::uname(&name) == 0) machine.architecture = name.machine;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof(cores), &cores) == 0) machine.num_cores = CPU_COUNT(&cores);
  int64_t group_limit = 0;  // "max" if there is none
  std::string limit = read_or_empty("/sys/fs/cgroup/memory.max");
  if (!limit.empty() && limit.back() == '\n') limit.pop_back();
  if (read_integer(limit, group_limit) && group_limit > 0 && group_limit < machine.memory_bytes) {
    machine.memory_bytes = group_limit;
    machine.available_bytes = std::min(machine.available_bytes, group_limit);
  }
  return machine;
}

int64_t free_disk_bytes(const Path& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) throw Error(str(folder.string(), ": ", std::strerror(errno)));
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

int64_t resident_bytes() {
  std::istringstream numbers(read_text("/proc/self/statm"));  // total pages, resident pages, ...
  int64_t all = 0, resident = 0;
  numbers >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::string format_bytes(int64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text.data();
}

void end_process(int exit_code) {
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace kedge
