#include "kedge/data/check/hh.h"

#include <algorithm>
#include <memory>

#include "kedge/core/error.h"
#include "kedge/data/files/jsonl_file.h"
#include "kedge/data/files/jsonl_writer.h"
#include "kedge/data/sets/hh_dialogue.h"

namespace kedge {
namespace {

std::string_view without_blanks_before(std::string_view text) { return text.substr(std::min(text.find_first_not_of(' '), text.size())); }

Json message_of(const HhTurn& turn) {
  return Json::Object{{"role", turn.human ? "user" : "assistant"}, {"content", without_blanks_before(turn.said)}};
}

// Turns up to the last, which is the assistant's, and what it says.
PromptResponse rendered(const std::vector<HhTurn>& turns, const HhConfig& config, const PromptReader* chat, const Row& row) {
  if (chat != nullptr) {
    Json::Array messages;
    for (const HhTurn& turn : turns) messages.push_back(message_of(turn));
    return chat->dialogue(row, messages);
  }
  PromptResponse texts;
  for (const HhTurn& turn : turns) {
    texts.prompt += turn.human ? config.human : config.assistant;
    if (&turn != &turns.back()) texts.prompt += turn.said;
  }
  texts.response = turns.back().said;
  return texts;
}

bool ends_with_answer(const std::optional<std::vector<HhTurn>>& turns) { return turns && turns->size() >= 2 && !turns->back().human; }

Json text_row(std::string text) { return Json::Object{{"text", std::move(text)}}; }

Json kto_row(const std::string& prompt, const std::string& response, const char* preference) {
  return Json::Object{{"prompt", prompt}, {"response", response}, {"preference", preference}};
}

std::string line_list(const std::vector<int64_t>& lines) {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < std::min(lines.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + std::to_string(lines[i]);
  return text + (lines.size() > kShown ? ", ..." : "");
}

}  // namespace

HhReport prepare_hh(const HhConfig& config, const ChatRenderer& chat) {
  const JsonlFile file(config.input);
  JsonlWriter comparisons(config.comparisons), prompts(config.prompts);
  std::unique_ptr<JsonlWriter> kto;
  if (config.kto) kto = std::make_unique<JsonlWriter>(*config.kto);
  const auto reader = chat ? std::make_unique<PromptReader>(DataConfig{}, chat) : nullptr;
  HhReport report;
  for (report.num_read = 0; report.num_read < file.size(); ++report.num_read) {
    const Row row = file.row(report.num_read);
    const auto chosen = hh_turns(row.text("chosen")), rejected = hh_turns(row.text("rejected"));
    if (!ends_with_answer(chosen) || !ends_with_answer(rejected)) {
      report.no_dialogue.push_back(row.line());
      continue;
    }
    const PromptResponse better = rendered(*chosen, config, reader.get(), row), worse = rendered(*rejected, config, reader.get(), row);
    if (better.prompt != worse.prompt) {
      report.different_prompts.push_back(row.line());
      continue;
    }
    if (without_blanks_before(chosen->back().said).empty() || without_blanks_before(rejected->back().said).empty())
      report.empty_answers.push_back(row.line());
    comparisons.append(text_row(better.prompt + better.response));
    comparisons.append(text_row(worse.prompt + worse.response));
    prompts.append(text_row(better.prompt));
    if (kto) kto->append(kto_row(better.prompt, better.response, "chosen")), kto->append(kto_row(worse.prompt, worse.response, "rejected"));
    ++report.num_written;
  }
  check(report.num_written > 0, config.input, ": no pair of dialogues with the same prompt");
  comparisons.commit();
  prompts.commit();
  if (kto) kto->commit();
  return report;
}

std::string to_text(const HhReport& report) {
  std::string text = str("read ", report.num_read, " pairs, wrote ", report.num_written, "\n");
  if (!report.different_prompts.empty())
    text += str("left out ", report.different_prompts.size(), " pairs whose sides have different prompts: lines ",
                line_list(report.different_prompts), "\n");
  if (!report.no_dialogue.empty())
    text += str("left out ", report.no_dialogue.size(), " rows that are not dialogues: lines ", line_list(report.no_dialogue), "\n");
  if (!report.empty_answers.empty())
    text += str("kept ", report.empty_answers.size(), " pairs with an empty response: lines ", line_list(report.empty_answers), "\n");
  return text;
}

}  // namespace kedge
