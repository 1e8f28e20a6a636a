#pragma once
// An overview of a run as a page, and as JSON. Independent of files.
#include <string>

#include "kedge/inspect/run_overview.h"

#include "cli/text/show_text.h"

namespace kedge::cli {

// "kedge reinforce, 40 of 100 steps, running".
[[nodiscard]] std::string heading_of(const RunOverview& overview);

// What was trained, on what, when and by which program. A fact without a name continues the one before.
struct OverviewFact {
  std::string name, text;
};
[[nodiscard]] std::vector<OverviewFact> story_facts(const RunOverview& overview);

// `name` is the folder as the user wrote it: commands below use it.
[[nodiscard]] std::string story_text(const RunOverview& overview, const std::string& name, const PageLook& look, bool utf8);
[[nodiscard]] Json story_json(const RunOverview& overview);

// Lines of "name  text", the texts wrapped in their column: for a page of facts.
class FactPage {
 public:
  FactPage(size_t name_width, const PageLook& look) : name_width_(name_width), look_(look) {}
  void add(std::string_view name, std::string_view text);  // an empty name continues the one before; an empty text is left out
  void skip() { text_ += "\n"; }
  void raw(std::string_view line) { text_ += std::string(line) + "\n"; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  size_t name_width_;
  PageLook look_;
  std::string text_;
};

}  // namespace kedge::cli
