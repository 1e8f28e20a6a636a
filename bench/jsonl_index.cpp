// How fast a JSON Lines file is indexed and read in random order, and how much memory that takes.
//
//   bench_jsonl_index FILE [MEGABYTES [ROW_BYTES]]
//
// Writes FILE first when it is not there (1000 MB of rows of about 500 bytes). Prints one JSON line a phase: seconds, processor seconds,
// MB/s, and the process's resident memory at its highest during the phase, sampled every 10 ms: anonymous (RssAnon) and mapped (RssFile).
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "kedge/core/random.h"
#include "kedge/data/files/jsonl_file.h"
#include "kedge/data/files/rows.h"

namespace {

int64_t status_kb(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::stoll(line.substr(field.size()));
  return 0;
}

void write_rows(const kedge::Path& path, int64_t bytes, int64_t row_bytes) {
  constexpr std::string_view kWords =
      "the cat sat on a mat and saw another cat that sat there too, while \\\"rain\\\" fell \\u00fcber all ";
  std::ofstream out(path, std::ios::binary);
  const kedge::Random random(1, 2);
  uint64_t number = 0;
  for (int64_t written = 0; written < bytes; ++number) {
    const auto length = static_cast<size_t>(row_bytes) / 2 + random.below(static_cast<uint64_t>(row_bytes), number);
    std::string row = "{\"id\": " + std::to_string(number) + ", \"text\": \"";
    while (row.size() < length) row += kWords;
    row += "\", \"answer\": " + std::to_string(number % 97) + "}\n";
    out << row;
    written += static_cast<int64_t>(row.size());
  }
}

void measure(const char* phase, int64_t bytes, int64_t rows, const std::function<void()>& work) {
  int64_t peak = 0, peak_anon = 0, peak_file = 0;
  const auto sample = [&] {
    const int64_t anon = status_kb("RssAnon:"), file = status_kb("RssFile:");
    peak = std::max(peak, anon + file), peak_anon = std::max(peak_anon, anon), peak_file = std::max(peak_file, file);
  };
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  {
    std::jthread watcher([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) sample(), std::this_thread::sleep_for(std::chrono::milliseconds(10));
    });
    work();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  sample();
  std::printf(
      "{\"phase\": \"%s\", \"seconds\": %.2f, \"cpu_seconds\": %.2f, \"mb_per_s\": %.0f, \"rows_per_s\": %.0f, \"peak_rss_mb\": %.0f, "
      "\"rss_anon_mb\": %.0f, "
      "\"rss_file_mb\": %.0f}\n",
      phase, seconds, cpu_seconds, static_cast<double>(bytes) / 1e6 / seconds, static_cast<double>(rows) / seconds,
      static_cast<double>(peak) / 1e3, static_cast<double>(peak_anon) / 1e3, static_cast<double>(peak_file) / 1e3);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: bench_jsonl_index FILE [MEGABYTES [ROW_BYTES]]\n"), 2;
  const kedge::Path path = argv[1];
  if (!std::filesystem::exists(path))
    write_rows(path, (argc > 2 ? std::stoll(argv[2]) : 1000) * 1000000, argc > 3 ? std::stoll(argv[3]) : 500);
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));

  std::unique_ptr<kedge::JsonlFile> file;
  measure("index", bytes, 0, [&] { file = std::make_unique<kedge::JsonlFile>(path); });
  const int64_t rows = file->size();
  std::vector<int64_t> order = kedge::permutation(rows, 1234);
  int64_t sum = 0;
  measure("shuffled bytes", bytes, rows, [&] {
    for (const int64_t row : order) sum += static_cast<int64_t>(file->bytes(row).size());
  });
  measure("shuffled rows, parsed", bytes, rows, [&] {
    for (const int64_t row : order) sum += file->row(row).find("text") != nullptr ? 1 : 0;
  });
  measure("in order, parsed, all cores", bytes, rows, [&] {
    std::atomic<int64_t> found = 0;
    kedge::for_each_example(rows, [&](int64_t row) { found += file->row(row).find("text") != nullptr ? 1 : 0; });
    sum += found;
  });
  return sum > 0 ? 0 : 1;
}
