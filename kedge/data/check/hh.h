#pragma once
// Prepares Anthropic's HH data: from raw {"chosen", "rejected"} dialogues to comparisons for reward models, prompts for the
// online trainers, and rows for KTO.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/core/files.h"
#include "kedge/text/chat/chat_renderer.h"

namespace kedge {

struct HhConfig {
  std::string input;
  std::string comparisons;
  std::string prompts;
  std::optional<std::string> kto;
  std::string human = "\n\nHuman:";
  std::string assistant = "\n\nAssistant:";

  void fields(auto&& field) {
    field("input", input, "raw HH file: JSON Lines of {\"chosen\", \"rejected\"}, plain or gzip", required());
    field("comparisons", comparisons, "output: one {\"text\"} per line, the better response then the worse", required());
    field("prompts", prompts, "output: one {\"text\"} per line", required());
    field("kto", kto, "output: one {\"prompt\", \"response\", \"preference\"} per line; null: not written");
    field("human", human, "text that opens a human turn");
    field("assistant", assistant, "text that opens an assistant turn");
  }
};

struct HhReport {
  int64_t num_read = 0;
  int64_t num_written = 0;                 // pairs
  std::vector<int64_t> different_prompts;  // lines left out: the two sides have different prompts
  std::vector<int64_t> no_dialogue;        // lines left out: no Human: and Assistant: turns
  std::vector<int64_t> empty_answers;      // lines kept: a response is empty
};

// With a chat template, dialogues are rendered by it (human: user); else turns open with `human` and `assistant`. Files
// appear when all are complete.
[[nodiscard]] HhReport prepare_hh(const HhConfig& config, const ChatRenderer& chat = {});

// For people: counts and line numbers.
[[nodiscard]] std::string to_text(const HhReport& report);

}  // namespace kedge
