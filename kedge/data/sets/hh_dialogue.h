#pragma once
// Dialogues as Anthropic's HH data writes them: "\n\nHuman: ...\n\nAssistant: ...". Pure text.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/data/sets/prompt_reader.h"

namespace kedge {

struct HhTurn {
  bool human = true;
  std::string_view said;  // without the name; keeps the blank in front
  friend bool operator==(const HhTurn&, const HhTurn&) = default;
};

// All turns in order; nothing where the text does not open with a turn. The same side may speak twice.
[[nodiscard]] std::optional<std::vector<HhTurn>> hh_turns(std::string_view text);

// Everything up to the name of the last assistant turn, and what it says; nothing where there is no such turn.
[[nodiscard]] std::optional<PromptResponse> hh_prompt(std::string_view text);

}  // namespace kedge
