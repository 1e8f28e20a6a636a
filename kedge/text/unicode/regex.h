#pragma once
// Regular expressions of tokenizer files and of configurations over valid UTF-8. The only part that uses PCRE2; if that is not
// installed, no_regex.cpp throws an error. Safe to use from several threads.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kedge {

// Whether this build can: without PCRE2 every expression is refused.
[[nodiscard]] bool has_regex();

class Regex {
 public:
  // The expression in Oniguruma's syntax. `where` opens every error: "tokenizer.json: pre_tokenizer.pattern.Regex".
  Regex(std::string_view expression, std::string_view where);
  // The expression as Perl and Python write it, for those that people put into a configuration.
  enum class Extent { anywhere, whole_text };  // whole_text: a match is all of the text, and a dot matches a line end too
  [[nodiscard]] static Regex perl(std::string_view expression, std::string_view where, Extent extent = Extent::anywhere);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Start and end of each match, from left to right. An empty match right after another match is skipped.
  void for_each_match(std::string_view text, const std::function<void(size_t, size_t)>& found) const;
  [[nodiscard]] bool matches(std::string_view text) const;

 private:
  Regex();
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace kedge
