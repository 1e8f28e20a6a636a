#pragma once
// Hand-written matchers for the expressions most models split their text with: GPT-2's (GPT-NeoX too), Llama 3's and Qwen 2's.
// Each finds exactly the matches of its expression, many times faster; a test compares them with regex.h.
#include <string_view>
#include <vector>

#include "kedge/text/tokenizer/bpe.h"

namespace kedge {

inline constexpr std::string_view kGpt2Expression = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Appends the matches in `text`, which together cover it, each moved by `offset`.
using SplitScanner = void (*)(std::string_view text, size_t offset, std::vector<WordSpan>& words);

// Null if there is none for this expression.
[[nodiscard]] SplitScanner find_split_scanner(std::string_view expression);

}  // namespace kedge
