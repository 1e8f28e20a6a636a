#include "kedge/rollout/rollout_records.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <future>
#include <limits>
#include <string_view>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

std::optional<RolloutRows> read_rows(const Path& path, int64_t step, const std::string& fingerprint) {
  const std::string name = path.string();
  const std::string text = read_text(path);
  const RecordHeader header = parse_record_header(text, name);
  if (header.step != step || header.fingerprint != fingerprint) return std::nullopt;
  return parse_record_rows(text, name, RecordParts::answers);
}

// Is it of another step, or of answers that depend on something else? False if that cannot be told.
bool is_other(const Path& path, const RecordHeader& header) {
  try {
    const RecordHeader found = parse_record_header(read_text(path), path.string());
    return found.step != header.step || found.fingerprint != header.fingerprint;
  } catch (const Error&) {
    return false;
  }
}

// Do they answer the prompts that the file has now? It may have been changed since.
bool answers(const RolloutRows& rows, const StepKey& key) {
  std::vector<TokenIds> prompts;
  for (const int64_t row : key.batch) prompts.push_back(key.prompts.get(row).ids);
  return std::all_of(rows.begin(), rows.end(), [&](const RolloutRow& row) {
    if (row.slot < 0 || row.slot >= std::ssize(prompts)) return false;
    const auto own = std::span(row.rollout->ids).first(static_cast<size_t>(row.rollout->prompt_length));
    const TokenIds& prompt = prompts[static_cast<size_t>(row.slot)];
    return std::equal(own.begin(), own.end(), prompt.begin(), prompt.end());
  });
}

// Leftovers of a run that was killed while writing.
void remove_unfinished(const Path& folder) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".step-") && name.ends_with(".tmp")) std::filesystem::remove(entry.path(), none);
  }
}

}  // namespace

int64_t recorded_every(const RolloutsConfig& config) {
  if (config.keep == "all") return 1;
  if (config.keep == "none") return 0;
  constexpr std::string_view kEvery = "every:";
  const std::string_view keep = config.keep;
  int64_t every = 0;
  if (keep.starts_with(kEvery)) {
    const auto [end, error] = std::from_chars(keep.data() + kEvery.size(), keep.data() + keep.size(), every);
    if (error != std::errc() || end != keep.data() + keep.size()) every = 0;
  }
  check(every >= 1, "rollouts.keep: expected all, none or every:n with n of at least 1, found ", Json(config.keep).dump());
  return every;
}

RolloutRecords::RolloutRecords(Path folder, const RolloutsConfig& config) : folder_(std::move(folder)), every_(recorded_every(config)) {
  remove_unfinished(folder_);
}

Path RolloutRecords::path_of(int64_t step) const { return record_path(folder_, step); }

void RolloutRecords::save(RecordHeader header, RolloutRows rows) {
  if (every_ == 0 || header.step % every_ != 0) return;
  worker_.post([this, header = std::move(header), rows = std::move(rows)] {
    try {
      write_file(header, rows);
    } catch (const std::runtime_error& error) {  // an I/O error
      if (!std::exchange(told_, true))
        log_warn("the answers of step ", header.step, " are not recorded: ", error.what(), " (the run continues)");
    }
  });
}

void RolloutRecords::write_file(const RecordHeader& header, const RolloutRows& rows) {
  make_folder(folder_);
  write_atomic(path_of(header.step), format_record(header, rows));
}

std::optional<RolloutRows> RolloutRecords::load(const StepKey& key) {
  const int64_t step = key.header.step;
  std::optional<RolloutRows> found = read(step, key.header.fingerprint);
  // The run goes another way than the one that was recorded. Readers would take what came after this step there for this run's.
  if (found ? !answers(*found, key) : is_other(path_of(step), key.header)) {
    const int64_t count = remove_records(folder_, step, std::numeric_limits<int64_t>::max());
    log_info("step ", step, ": the answers recorded before are of other weights, prompts or settings; they are removed, as are those of ",
             count - 1, " later steps");
    return std::nullopt;
  }
  // A reward source that failed may work again.
  if (found && std::any_of(found->begin(), found->end(), [](const RolloutRow& row) { return row.reward.failed(); })) found.reset();
  if (found) log_info("step ", step, ": reusing the answers recorded before");
  return found;
}

std::optional<RolloutRows> RolloutRecords::read(int64_t step, const std::string& fingerprint) {
  flush();
  if (!is_file(path_of(step))) return std::nullopt;
  try {
    return read_rows(path_of(step), step, fingerprint);
  } catch (const Error& error) {
    log_warn("the answers of step ", step, " cannot be reused: ", error.what());
    return std::nullopt;
  }
}

void RolloutRecords::flush() {
  const auto done = std::make_shared<std::promise<void>>();  // the worker may still be about to write it when this returns
  worker_.post([done] { done->set_value(); });
  done->get_future().wait();
}

}  // namespace kedge
