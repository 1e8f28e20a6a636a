#include "kedge/train/checkpoint/state_parts.h"

#include <chrono>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStages = ".checkpoint-parts";

// Written last: the part is complete, or could not be written. The latter says why if the disk has room for it.
Path mark_of(const Path& stage, int rank) { return stage / str("part.", rank, ".done"); }
Path failure_of(const Path& stage, int rank) { return stage / str("part.", rank, ".failed"); }

void note_failure(const Path& stage, int rank, const std::string& problem) {
  try {
    write_atomic(failure_of(stage, rank), problem);
  } catch (const std::exception&) {
    write_atomic(failure_of(stage, rank), "");
  }
}

// What went wrong; empty: nothing. A rank that dies takes the job with it, so this ends.
std::string wait_for_part(const Path& stage, int rank) {
  using namespace std::chrono_literals;
  for (;; std::this_thread::sleep_for(20ms)) {
    if (fs::exists(mark_of(stage, rank))) return "";
    if (!fs::exists(failure_of(stage, rank))) continue;
    const std::string problem = read_text(failure_of(stage, rank));
    return problem.empty() ? str("rank ", rank, ": its part cannot be written") : problem;
  }
}

void move_parts(const Path& stage, const Path& folder) {
  for (const Path& file : files_below(stage)) {
    const std::string extension = file.extension().string();
    if (file.parent_path() == stage && (extension == ".done" || extension == ".failed")) continue;
    const Path to = folder / file.lexically_relative(stage);
    make_folder(to.parent_path());
    fs::rename(file, to);
  }
}

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
    return write_atomic(mark_of(stage, rank), "");
  } catch (const std::exception& error) {
    problem = str("rank ", rank, ": ", error.what());
  }
  try {
    note_failure(stage, rank, problem);
  } catch (const std::exception&) {
    throw Error(str("a part of a checkpoint cannot be written: ", problem));
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

void write_together(const Path& stage, const std::vector<int>& others, const Path& folder,
                    const std::function<void(const Path& stage)>& write) {
  if (others.empty()) return write(folder);
  std::exception_ptr own;
  try {
    make_folder(stage);
    write(stage);
  } catch (...) {
    if (!is_folder(stage)) throw;  // nor could the others say anything there
    own = std::current_exception();
  }
  // Also where this rank has failed: the others must not go on writing into what is removed.
  std::string problem;
  for (const int rank : others) {
    const std::string other = wait_for_part(stage, rank);
    if (problem.empty()) problem = other;
  }
  if (!own && problem.empty()) move_parts(stage, folder);
  remove_tree(stage);
  if (own) std::rethrow_exception(own);
  if (!problem.empty()) throw Error(problem);
}

}  // namespace kedge
