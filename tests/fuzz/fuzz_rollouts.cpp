// Bytes as the recorded answers of two steps (rollouts/step-1.jsonl and step-2.jsonl), read as kedge show, report, the dashboard, replay
// and a resumed run read them. Only UsageError may come out, and JSON that is printed is JSON.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "kedge/core/error.h"
#include "kedge/inspect/before_after.h"
#include "kedge/inspect/run_records.h"
#include "kedge/rollout/recorded_sources.h"
#include "kedge/rollout/replay_store.h"
#include "kedge/rollout/rollout_records.h"

#include "cli/report/report_answers.h"
#include "cli/text/answer_json.h"
#include "cli/text/replay_text.h"
#include "cli/text/show_text.h"
#include "tests/fuzz/input_folder.h"
#include "tests/support/toy_encoders.h"

namespace {

using namespace kedge;
using kedge::testing::byte_encoder;
using kedge::testing::InputFolder;
using kedge::testing::read_or_refused;

constexpr int64_t kVocabSize = 256;
constexpr cli::PageLook kLook{.width = 40};
constexpr cli::PageLook kFullLook{.width = 80, .colour = true, .full = true};

void print(const Json& json) {
  if (Json::parse(json.dump()).dump() != Json::parse(json.dump_compact()).dump()) std::abort();
}

void show_step(const RunRecords& records, int64_t step) {
  const RolloutRows rows = records.rows(step);
  const StepNumbers numbers = numbers_of(rows);
  print(cli::json_of(step, numbers));
  static_cast<void>(cli::steps_line(step, numbers));
  static_cast<void>(cli::heading_text("", cli::step_pieces(numbers), kLook));
  for (const auto& key : enum_names(AnswerKey{}))
    for (const bool worst : {false, true})
      if (choose_answers(rows, {.key = key.value, .worst = worst}).size() != rows.size()) std::abort();
  for (const RolloutRow& row : rows) {
    for (const auto parts : {cli::AnswerParts::main, cli::AnswerParts::all}) print(cli::json_of(step, row, parts));
    for (const cli::PageLook& look : {kLook, kFullLook}) static_cast<void>(cli::answer_text("  1", row, cli::WithPrompt::yes, look));
  }
  static_cast<void>(cli::step_html(step, rows));
}

void show_pairs(const RunRecords& records) {
  const BeforeAfter both = find_before_after(records);
  const RolloutRows &before = both.before.rows, &after = both.after.rows;
  for (const auto& key : enum_names(AnswerKey{})) static_cast<void>(choose_pairs(both.pairs, before, after, {.key = key.value}));
  static_cast<void>(cli::pairs_pieces(both.pairs, before, after));
  for (const AnswerPair& pair : both.pairs) {
    print(cli::json_of(pair, before[pair.first], after[pair.second]));
    static_cast<void>(cli::pair_text("  1", before[pair.first], after[pair.second], kLook));
  }
  static_cast<void>(cli::before_after_html(both));
}

// Two prompts of two bytes each, as a step of two slots has them.
PromptDataset two_prompts(const Path& folder) {
  const Path file = folder / "prompts.jsonl";
  std::ofstream(file) << R"({"text": "ab"})"
                      << "\n"
                      << R"({"text": "cd"})"
                      << "\n";
  return {Rows::of_file(file), byte_encoder(), {}, 8};
}

void replay(const Path& folder, int64_t step, const PromptDataset& prompts) {
  const std::vector<int64_t> batch = {0, 1};
  ReplayStore store(folder, kVocabSize, 0);
  RecordHeader header{.step = step};
  const auto rows = store.load({.header = header, .prompts = prompts, .batch = batch, .draw = {}});
  if (!rows) return;
  Rollouts rollouts;
  for (const RolloutRow& row : *rows) rollouts.push_back(row.rollout);
  const auto find = [&](const Rollout& rollout) { return store.find(rollout); };
  read_or_refused([&] { static_cast<void>(RecordedCritic(find).values(rollouts).get()); });
  read_or_refused([&] { static_cast<void>(RecordedReward(find, "reward.sources.tone", "tone").submit(rollouts).get()); });
  // The same step computed again differs in nothing.
  RecordedStep again = read_recorded_step(folder, step);
  for (size_t i = 0; i < again.rows.size(); ++i) again.rows[i].rollout = (*rows)[i].rollout;
  store.save(again.header, again.rows);
  if (!store.comparison().matches()) std::abort();
  print(cli::comparison_json(store.comparison()));
  store.save({.step = step}, *rows);  // and without its numbers it may
  static_cast<void>(cli::comparison_table(store.comparison(), true));
  static_cast<void>(cli::paragraph(blame_of(store.comparison())));
}

// What a resumed run takes it can train on: the prompts are its own, and every answer has its reward.
void resume(const Path& folder, int64_t step, const PromptDataset& prompts) {
  const std::vector<int64_t> batch = {0, 1};
  RolloutRecords records(folder, {});
  const RecordHeader header{.step = step, .fingerprint = "f"};
  const auto rows = records.load({.header = header, .prompts = prompts, .batch = batch, .draw = {}});
  if (!rows) return;
  for (const RolloutRow& row : *rows) {
    const TokenIds prompt = prompts.get(batch.at(static_cast<size_t>(row.slot))).ids;
    const TokenIds own(row.rollout->ids.begin(), row.rollout->ids.begin() + row.rollout->prompt_length);
    if (row.reward.failed() || own != prompt) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static InputFolder folder({"rollouts/step-1.jsonl", "rollouts/step-2.jsonl"});
  static const PromptDataset prompts = two_prompts(folder.path());
  folder.write(data, size);
  read_or_refused([] {
    const RunRecords records(folder.path().string());
    for (const int64_t step : records.steps()) read_or_refused([&] { show_step(records, step); });
    read_or_refused([&] { show_pairs(records); });
  });
  for (const int64_t step : {1, 2}) {
    read_or_refused([&] { replay(folder.path() / "rollouts", step, prompts); });
    resume(folder.path() / "rollouts", step, prompts);
  }
  return 0;
}
