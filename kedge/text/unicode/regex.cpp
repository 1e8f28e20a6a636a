#include "kedge/text/unicode/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <map>
#include <mutex>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/unicode/regex_syntax.h"
#include "kedge/text/unicode/unicode.h"

namespace kedge {
namespace {

using Code = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

constexpr uint32_t kUnicode = PCRE2_UTF | PCRE2_UCP;

Code compile(std::string_view expression, uint32_t options, int& error, size_t& at) {
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(pcre2_compile_context_create(nullptr),
                                                                                              &pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_bsr(context.get(), PCRE2_BSR_UNICODE);
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(), options, &error, &at, context.get()),
            &pcre2_code_free);
  if (code != nullptr) pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // without the JIT, matching interprets
  return code;
}

// What a match writes into, one for each thread. The JIT's own 32 KB of stack are too few for long runs.
struct Workspace {
  static constexpr size_t kStackStart = size_t{32} << 10U;
  static constexpr size_t kStackLimit = size_t{8} << 20U;

  static constexpr uint32_t kHeapLimitKiB = 256 << 10U;  // without the JIT; PCRE2 itself would take 20 GB

  Workspace() {
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    pcre2_set_heap_limit(context.get(), kHeapLimitKiB);
  }

  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data{pcre2_match_data_create(1, nullptr), &pcre2_match_data_free};
  std::unique_ptr<pcre2_jit_stack, decltype(&pcre2_jit_stack_free)> stack{pcre2_jit_stack_create(kStackStart, kStackLimit, nullptr),
                                                                          &pcre2_jit_stack_free};
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context{pcre2_match_context_create(nullptr),
                                                                                    &pcre2_match_context_free};
};

// The next match at or after `from`, as start and end; false when there is none.
bool next_match(const pcre2_code* code, std::string_view text, size_t from, std::array<size_t, 2>& match) {
  thread_local Workspace workspace;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const auto attempt = [&](uint32_t options) {
    return pcre2_match(code, subject, text.size(), from, options, workspace.data.get(), workspace.context.get());
  };
  int result = attempt(PCRE2_NO_UTF_CHECK);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = attempt(PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
  if (result == PCRE2_ERROR_NOMATCH) return false;
  check(result >= 0, "a regular expression gave up on this text: ", message_of(result));
  const size_t* offsets = pcre2_get_ovector_pointer(workspace.data.get());
  match = {offsets[0], offsets[1]};
  return true;
}

template <typename Found>
void each_match(const pcre2_code* code, std::string_view text, Found&& found) {
  std::array<size_t, 2> match{};
  size_t last_end = std::string_view::npos;
  for (size_t from = 0; from <= text.size() && next_match(code, text, from, match);) {
    if (match[0] == match[1] && match[1] == last_end) {
      from = match[1] + (match[1] < text.size() ? utf8_length(text.substr(match[1])) : 1);
      continue;
    }
    found(match[0], match[1]);
    from = last_end = match[1];
  }
}

// What this machine's PCRE2 counts to \p{name}, found by matching every code point there is.
CodeSet pcre2_property(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, CodeSet> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(name); found != known.end()) return found->second;
  int error = 0;
  size_t at = 0;
  std::vector<CodeRange> ranges;
  if (const Code code = compile("\\p{" + name + "}+", kUnicode, error, at)) {
    std::string all;
    for (char32_t c = 0; c < kNumCodePoints; ++c)
      if (c < 0xD800 || c > 0xDFFF) utf8_append(all, c);
    each_match(code.get(), all, [&](size_t start, size_t end) {
      size_t last = end - 1;
      while (utf8_length(std::string_view(all).substr(last)) == 0) --last;
      ranges.push_back({utf8_decode(std::string_view(all).substr(start)), utf8_decode(std::string_view(all).substr(last))});
    });
  }
  return known.emplace(name, CodeSet(std::move(ranges))).first->second;
}

}  // namespace

bool has_regex() { return true; }

struct Regex::Compiled {
  Code code{nullptr, &pcre2_code_free};
};

Regex::Regex(std::string_view expression, std::string_view where) : compiled_(std::make_unique<Compiled>()) {
  int error = 0;
  size_t at = 0;
  const std::string translated = to_pcre2(expression, where, pcre2_property);
  compiled_->code = compile(translated, kUnicode | PCRE2_NO_AUTO_CAPTURE, error, at);
  check(compiled_->code != nullptr, where, ": the expression ", expression, " is not supported: ", message_of(error));
}
Regex::Regex() : compiled_(std::make_unique<Compiled>()) {}

Regex Regex::perl(std::string_view expression, std::string_view where, Extent extent) {
  const uint32_t whole = PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL;
  int error = 0;
  size_t at = 0;
  Regex regex;
  regex.compiled_->code = compile(expression, extent == Extent::whole_text ? kUnicode | whole : kUnicode, error, at);
  check(regex.compiled_->code != nullptr, where, ": the expression ", expression, " is wrong at byte ", at, ": ", message_of(error));
  return regex;
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

void Regex::for_each_match(std::string_view text, const std::function<void(size_t, size_t)>& found) const {
  each_match(compiled_->code.get(), text, found);
}

bool Regex::matches(std::string_view text) const {
  std::array<size_t, 2> match{};
  return next_match(compiled_->code.get(), text, 0, match);
}

}  // namespace kedge
