#include "kedge/train/checkpoint/state_parts.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStages = ".checkpoint-parts";

// Written last: the part is complete if it is empty, else it says what went wrong.
Path mark_of(const Path& stage, int rank) { return stage / str("part.", rank, ".done"); }

}  // namespace

void PartWriter::wait() {
  if (writing_.valid()) writing_.get();
}

void PartWriter::start(const Path& stage, int rank, std::function<void(const Path& stage)> write) {
  wait();
  writing_ = std::async(std::launch::async, [stage, rank, write = std::move(write)] { write_part(stage, rank, write); });
}

void write_part(const Path& stage, int rank, const std::function<void(const Path& stage)>& write) {
  std::string problem;
  try {
    make_folder(stage);
    write(stage);
  } catch (const std::exception& error) {
    problem = str("rank ", rank, ": ", error.what());
  }
  try {
    write_atomic(mark_of(stage, rank), problem);
  } catch (const std::exception& error) {
    throw Error(str("a checkpoint's part of rank ", rank, " cannot be written: ", problem.empty() ? error.what() : problem));
  }
}

std::vector<int> ranks_with_parts(const Group& group, bool has_part) {
  const std::vector<std::string> all = group.all_gather(has_part ? "part" : "");
  std::vector<int> ranks;
  for (int rank = 1; rank < group.size(); ++rank)
    if (!all[static_cast<size_t>(rank)].empty()) ranks.push_back(rank);
  return ranks;
}

Path parts_stage(const Path& run_folder, int64_t step) { return run_folder / kStages / std::to_string(step); }

void remove_parts(const Path& run_folder) { remove_tree(run_folder / kStages); }

void collect_parts(const Path& stage, const std::vector<int>& ranks, const Path& state) {
  using namespace std::chrono_literals;
  std::string problem;
  for (const int rank : ranks) {
    // A rank that dies takes the job with it, so this ends.
    while (!fs::exists(mark_of(stage, rank))) std::this_thread::sleep_for(20ms);
    problem = problem.empty() ? read_text(mark_of(stage, rank)) : problem;
  }
  if (problem.empty())
    for (const auto& entry : fs::directory_iterator(stage))
      if (entry.path().extension() != ".done") fs::rename(entry.path(), state / entry.path().filename());
  remove_tree(stage);
  if (!problem.empty()) throw Error(problem);
}

}  // namespace kedge
