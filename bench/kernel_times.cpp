// Loaded by the CUDA driver into a program (bench/gpu_profile): the time of each kernel, by name, when the program ends.
// KERNEL_TIMES=FILE is where the table goes; KERNEL_TIMES_LAST_MS=N looks only at the last N ms of the card's work, without the start.
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

void CUPTIAPI take_buffer(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer, size_t /*size*/, size_t filled) {
  const std::lock_guard lock(record().mutex);
  CUpti_Activity* activity = nullptr;
  while (cuptiActivityGetNextRecord(buffer, filled, &activity) == CUPTI_SUCCESS) {
    if (activity->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(activity);
    auto& numbers = record().numbers;
    const int name = numbers.try_emplace(kernel.name, static_cast<int>(numbers.size())).first->second;
    record().launches.push_back({name, kernel.start, kernel.end});
  }
  std::free(buffer);
}

struct Sum {
  std::string name;
  int64_t calls = 0;
  double ms = 0;
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
    if (launch.end > reached) busy += static_cast<double>(launch.end - std::max(launch.start, reached)) / 1e6;
    reached = std::max(reached, launch.end);
  }
  std::sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) { return a.ms > b.ms; });
  const double span = static_cast<double>(last - first) / 1e6;
  std::fprintf(
      out, "%.1f ms of the card's time, a kernel runs in %.1f of them\n\n| kernel | calls | ms | us a call | %% |\n|---|---|---|---|---|\n",
      span, busy);
  for (const Sum& sum : sums)
    if (sum.calls > 0)
      std::fprintf(out, "| `%.100s` | %lld | %.2f | %.1f | %.1f |\n", sum.name.c_str(), static_cast<long long>(sum.calls), sum.ms,
                   1000 * sum.ms / static_cast<double>(sum.calls), 100 * sum.ms / span);
}

void end() {
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
  if (cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) return 0;
  std::atexit(end);
  return 1;
}
