#pragma once
// Jinja templates as Hugging Face chat templates use them: the language of Jinja 3.1 in the sandbox that transformers sets up
// (trim_blocks, lstrip_blocks, break and continue, generation blocks, its own tojson). docs/chat_templates.md lists what is left
// out. Independent of chats.
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/json.h"

namespace kedge {

namespace jinja {
struct Template;
}

struct JinjaOptions {
  std::optional<std::tm> now{};          // the time for strftime_now; without it, the local time
  int64_t max_steps = 50'000'000;        // about a step per expression, loop round or 16 bytes of text
  int64_t max_bytes = int64_t{1} << 28;  // of all values alive at one time
};

struct ByteSpan {
  size_t begin, end;
  friend bool operator==(const ByteSpan&, const ByteSpan&) = default;
};

// Immutable; may be rendered by several threads at once.
class JinjaTemplate {
 public:
  // `name` opens the errors: "NAME:LINE: ...". They are UsageErrors and name what is unknown or not supported.
  static JinjaTemplate parse(std::string_view text, std::string_view name);

  // `context` is an object; its members are the template's variables. Runtime errors are UsageErrors with their line.
  [[nodiscard]] std::string render(const Json& context, const JinjaOptions& options = {}) const;

  struct Rendered {
    std::string text;
    std::vector<ByteSpan> generated;  // the passages inside {% generation %} blocks
  };
  // A UsageError if a passage cannot be located in the text, because a macro or a filter changed it.
  [[nodiscard]] Rendered render_generated(const Json& context, const JinjaOptions& options = {}) const;

  [[nodiscard]] bool has_generation() const;

 private:
  JinjaTemplate() = default;
  std::string name_;
  std::shared_ptr<const jinja::Template> template_;
};

}  // namespace kedge
