#include "kedge/data/files/rows.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "kedge/core/error.h"
#include "kedge/core/machine.h"

namespace kedge {
namespace {

constexpr int kMaxThreads = 16;
constexpr int64_t kChunk = 256;  // examples a thread takes at a time

std::vector<BlendPart> blend_parts(const std::vector<Rows::Part>& parts) {
  std::vector<BlendPart> blend;
  for (const Rows::Part& part : parts) blend.push_back({part.weight, part.end - part.begin});
  return blend;
}

std::vector<Rows::Part> whole_files(const std::vector<WeightedFile>& files, int64_t rows_per_example) {
  std::vector<Rows::Part> parts;
  for (const WeightedFile& file : files) {
    auto opened = std::make_shared<const JsonlFile>(file.path);
    const int64_t size = num_examples(*opened, rows_per_example);
    parts.push_back({std::move(opened), 0, size, file.weight});
  }
  return parts;
}

}  // namespace

Rows::Rows(std::vector<Part> parts, int64_t rows_per_example)
    : parts_(std::move(parts)), rows_per_example_(rows_per_example), blend_(blend_parts(parts_)) {}

Rows::Rows(const std::vector<WeightedFile>& files, int64_t rows_per_example)
    : Rows(whole_files(files, rows_per_example), rows_per_example) {}

Rows Rows::of_file(const Path& path, int64_t rows_per_example) { return Rows({{1, path}}, rows_per_example); }

Rows::Place Rows::place(int64_t example, int64_t row) const {
  const Blend::Pick pick = blend_.pick(example);
  const Part& part = parts_[pick.part];
  return {*part.file, (part.begin + pick.index) * rows_per_example_ + row};
}

Row Rows::row(int64_t example, int64_t row) const {
  const Place at = place(example, row);
  return at.file.row(at.row);
}

std::string Rows::where(int64_t example, int64_t row) const {
  const Place at = place(example, row);
  return at.file.where(at.row);
}

int64_t Rows::line(int64_t example) const {
  const Place at = place(example, 0);
  return at.file.line(at.row);
}

std::string Rows::name() const {
  std::string names;
  for (const Part& part : parts_) names += (names.empty() ? "" : ", ") + part.file->path().string();
  return names;
}

int64_t num_examples(const JsonlFile& file, int64_t rows_per_example) {
  check(file.size() % rows_per_example == 0, file.path().string(), ": ", file.size(), " rows; expected a multiple of ", rows_per_example,
        ", because every ", rows_per_example, " make one example");
  return file.size() / rows_per_example;
}

std::map<std::string, Rows> open_splits(const DataPrefix& prefix, int64_t rows_per_example) {
  std::map<std::string, Rows> splits;
  for (const auto& [name, files] : prefix.files) splits.emplace(name, Rows(files, rows_per_example));
  if (prefix.cut_files.empty()) return splits;

  const std::vector<Rows::Part> whole = whole_files(prefix.cut_files, rows_per_example);
  size_t number = 0;
  for (const char* name : {"train", "validation", "test"}) {
    std::vector<Rows::Part> parts;
    for (Rows::Part part : whole) {
      const auto borders = split_borders(prefix.shares, part.end);
      part.begin = borders.at(number);
      part.end = borders.at(number + 1);
      if (part.begin < part.end) parts.push_back(std::move(part));
    }
    if (!parts.empty()) splits.emplace(name, Rows(std::move(parts), rows_per_example));
    ++number;
  }
  return splits;
}

void for_each_example(int64_t num_examples, const std::function<void(int64_t)>& visit) {
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  std::atomic<int64_t> first_error = num_examples;
  const auto work = [&] {
    for (int64_t begin = next.fetch_add(kChunk); begin < std::min(num_examples, first_error.load()); begin = next.fetch_add(kChunk)) {
      int64_t at = begin;
      try {
        for (; at < std::min(num_examples, begin + kChunk); ++at) visit(at);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (at < first_error) first_error = at, error = std::current_exception();
      }
    }
  };
  const int64_t wanted = std::min<int64_t>(kMaxThreads, num_examples / (4 * kChunk));
  std::vector<std::jthread> helpers;
  if (wanted > 1)
    for (int64_t i = 1; i < std::min<int64_t>(wanted, this_machine().num_cores); ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  if (error) std::rethrow_exception(error);
}

}  // namespace kedge
