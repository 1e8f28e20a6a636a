#include "kedge/data/sets/hh_dialogue.h"

#include <algorithm>

namespace kedge {
namespace {

constexpr std::string_view kHuman = "\n\nHuman:";
constexpr std::string_view kAssistant = "\n\nAssistant:";

}  // namespace

std::optional<std::vector<HhTurn>> hh_turns(std::string_view text) {
  std::vector<HhTurn> turns;
  while (!text.empty()) {
    const bool human = text.starts_with(kHuman);
    if (!human && !text.starts_with(kAssistant)) return std::nullopt;  // only before the first turn
    text.remove_prefix(human ? kHuman.size() : kAssistant.size());
    const size_t end = std::min({text.find(kHuman), text.find(kAssistant), text.size()});
    turns.push_back({human, text.substr(0, end)});
    text.remove_prefix(end);
  }
  return turns;
}

std::optional<PromptResponse> hh_prompt(std::string_view text) {
  const size_t name = text.rfind(kAssistant);
  if (name == std::string_view::npos) return std::nullopt;
  const size_t end = name + kAssistant.size();
  return PromptResponse{std::string(text.substr(0, end)), std::string(text.substr(end))};
}

}  // namespace kedge
