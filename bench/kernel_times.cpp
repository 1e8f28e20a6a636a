// Preloaded, and loaded by the CUDA driver, into a program (bench/gpu_profile): the time of each kernel, by name and grid, and of copies
// and fills, when the program ends. KERNEL_TIMES=FILE is where the table goes; KERNEL_TIMES_LAST_MS=N looks only at the last N ms of the
// card's work, without the start.
#include <cupti.h>
#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Launch {
  int name;
  uint64_t start, end;  // ns
};

struct Record {
  std::mutex mutex;
  std::map<std::string, int> numbers;
  std::vector<Launch> launches;

  void add(const std::string& name, uint64_t start, uint64_t end) {
    launches.push_back({numbers.try_emplace(name, static_cast<int>(numbers.size())).first->second, start, end});
  }
};
Record& record() {
  static auto* const all = new Record;  // CUPTI's thread may still write to it when the program ends
  return *all;
}

constexpr size_t kBufferBytes = size_t{8} << 20U;

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *size = kBufferBytes;
  *most_records = 0;
}

// Its name as C++ has it, and its grid, which tells products of different shapes apart.
std::string named(const CUpti_ActivityKernel10& kernel) {
  int status = 0;
  char* const plain = abi::__cxa_demangle(kernel.name, nullptr, nullptr, &status);
  std::string name = status == 0 ? plain : kernel.name;
  std::free(plain);
  for (const char* const noise : {"void ", "(anonymous namespace)::", "at::native::", "kedge::"})
    for (size_t at = name.find(noise); at != std::string::npos; at = name.find(noise)) name.erase(at, std::strlen(noise));
  name.resize(std::min(name.size(), size_t{90}));
  return name + "` " + std::to_string(kernel.gridX) + "x" + std::to_string(kernel.gridY) + "x" + std::to_string(kernel.gridZ);
}

// Copies and fills of one size: up to the next power of two.
std::string size_class(uint64_t bytes) {
  uint64_t most = 1024;
  while (most < bytes) most *= 2;
  return most < (uint64_t{1} << 20U) ? "up to " + std::to_string(most >> 10U) + " KiB" : "up to " + std::to_string(most >> 20U) + " MiB";
}
std::string named(const CUpti_ActivityMemcpy6& copy) {
  const char* const way = copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "to the card"
                          : copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "to the host"
                                                                             : "on the card";
  return std::string("copy` ") + way + ", " + size_class(copy.bytes);
}

void CUPTIAPI take_buffer(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer, size_t /*size*/, size_t filled) {
  const std::lock_guard lock(record().mutex);
  CUpti_Activity* activity = nullptr;
  while (cuptiActivityGetNextRecord(buffer, filled, &activity) == CUPTI_SUCCESS) {
    if (activity->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(activity);
      record().add(named(kernel), kernel.start, kernel.end);
    } else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(activity);
      record().add(named(copy), copy.start, copy.end);
    } else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      const auto& fill = *reinterpret_cast<const CUpti_ActivityMemset4*>(activity);
      record().add("fill` of " + size_class(fill.bytes), fill.start, fill.end);
    }
  }
  std::free(buffer);
}

struct Sum {
  std::string name;
  int64_t calls = 0;
  double ms = 0, idle = 0;  // and how long nothing ran before it
};

void print_table(std::FILE* out, std::vector<Launch> launches) {
  if (launches.empty()) {
    std::fputs("no kernels were seen\n", out);
    return;
  }
  std::sort(launches.begin(), launches.end(), [](const Launch& a, const Launch& b) { return a.start < b.start; });
  uint64_t last = 0;
  for (const Launch& launch : launches) last = std::max(last, launch.end);
  const char* const wanted = std::getenv("KERNEL_TIMES_LAST_MS");
  const uint64_t window = wanted == nullptr ? last : std::strtoull(wanted, nullptr, 10) * 1'000'000;
  const uint64_t first = std::max(launches.front().start, last - std::min(window, last));

  std::vector<Sum> sums(record().numbers.size());
  for (const auto& [name, number] : record().numbers) sums[static_cast<size_t>(number)].name = name;
  double busy = 0;
  uint64_t reached = first;
  for (const Launch& launch : launches) {
    if (launch.start < first) continue;
    Sum& sum = sums[static_cast<size_t>(launch.name)];
    sum.calls += 1;
    sum.ms += static_cast<double>(launch.end - launch.start) / 1e6;
    if (launch.start > reached) sum.idle += static_cast<double>(launch.start - reached) / 1e6;
    if (launch.end > reached) busy += static_cast<double>(launch.end - std::max(launch.start, reached)) / 1e6;
    reached = std::max(reached, launch.end);
  }
  std::sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) { return a.ms > b.ms; });
  const double span = static_cast<double>(last - first) / 1e6;
  std::fprintf(out,
               "%.1f ms of the card's time, a kernel runs in %.1f of them\n\n| kernel | calls | ms | us a call | %% | idle before, ms "
               "|\n|---|---|---|---|---|---|\n",
               span, busy);
  for (const Sum& sum : sums)
    if (sum.calls > 0)
      std::fprintf(out, "| `%s | %lld | %.2f | %.1f | %.1f | %.2f |\n", sum.name.c_str(), static_cast<long long>(sum.calls), sum.ms,
                   1000 * sum.ms / static_cast<double>(sum.calls), 100 * sum.ms / span, sum.idle);
}

void end() {
  static std::atomic<bool> ended = false;
  if (ended.exchange(true)) return;
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::lock_guard lock(record().mutex);
  const char* const path = std::getenv("KERNEL_TIMES");
  std::FILE* const out = path == nullptr ? stderr : std::fopen(path, "w");
  if (out == nullptr) return;
  print_table(out, record().launches);
  if (path != nullptr) std::fclose(out);
}

}  // namespace

// The driver calls it before the program's first call of CUDA.
extern "C" int InitializeInjection() {
  if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS) return 0;
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET})
    if (cuptiActivityEnable(kind) != CUPTI_SUCCESS) return 0;
  std::atexit(end);
  return 1;
}

// kedge ends without what atexit() would run; preloaded, this stands before the C library's.
extern "C" void _Exit(int code) {
  end();
  ::_exit(code);
}
