// Any bytes as a template: it renders, or it is refused with a UsageError; never a crash, a hang or a filled memory.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kedge/core/error.h"
#include "kedge/text/jinja/jinja.h"

namespace {

kedge::Json context() {
  return kedge::Json::parse(R"({
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hé \"quoted\""},
                 {"role": "assistant", "content": "<think>\nx\n</think>\n\nyes", "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5, null, true]}}}]},
                 {"role": "tool", "content": [{"type": "text", "text": "ok"}]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "array"}}}}}],
    "documents": null, "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>", "n": 7, "f": 0.5, "s": "text"
  })");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const kedge::Json variables = context();
  kedge::JinjaOptions options;
  options.max_steps = 200'000;
  options.max_bytes = int64_t{1} << 22;
  try {
    const auto parsed = kedge::JinjaTemplate::parse(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    static_cast<void>(parsed.render_generated(variables, options));
  } catch (const kedge::UsageError&) {
  }
  return 0;
}
