#include "kedge/rollout/rollout_records.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <future>
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
  std::optional<RolloutRows> found = read(key.header.step, key.header.fingerprint);
  if (found && !answers(*found, key)) found.reset();
  // A reward source that failed may work again.
  if (found && std::any_of(found->begin(), found->end(), [](const RolloutRow& row) { return row.reward.failed(); })) found.reset();
  if (found) log_info("step ", key.header.step, ": reusing the answers recorded before");
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
