#pragma once
// Answers of a step, pairs of them and tables of steps as text of a given width. Independent of files; uses the terminal only on request.
#include <cstdint>
#include <string>
#include <string_view>

#include "kedge/inspect/answer_list.h"

namespace kedge::cli {

struct PageLook {
  size_t width = 80;  // no line is wider
  bool colour = false;
  bool full = false;  // complete texts, not only some lines
};

// As standard output is: its width (COLUMNS before it, 80 without a terminal), and colour on a terminal unless NO_COLOR is set.
[[nodiscard]] PageLook look_of_output(bool full);

// Pieces of text one after another, in as many lines as they need; the first line begins with `lead`, the others are as far in.
[[nodiscard]] std::string heading_text(std::string_view lead, const std::vector<std::string>& pieces, const PageLook& look);

// The lines of one text, each after the mark: "|" for a prompt, of which the end is kept, ">" and others for an answer and its beginning.
[[nodiscard]] std::string marked_text(char mark, std::string_view text, const PageLook& look);

// A step in numbers, as pieces of a heading.
[[nodiscard]] std::vector<std::string> step_pieces(const StepNumbers& numbers);

// An answer with its numbers, and below its prompt; `lead` identifies it.
enum class WithPrompt { no, yes };
[[nodiscard]] std::string answer_text(std::string_view lead, const RolloutRow& row, WithPrompt prompt, const PageLook& look);

// Two answers to one prompt: "-" before the first, "+" before the second, "=" if they are the same.
[[nodiscard]] std::string pair_text(std::string_view lead, const RolloutRow& first, const RolloutRow& second, const PageLook& look);
// All pairs in numbers.
[[nodiscard]] std::vector<std::string> pairs_pieces(std::span<const AnswerPair> pairs, std::span<const RolloutRow> first,
                                                    std::span<const RolloutRow> second);

// The table of steps; its lines have 79 columns, whatever the width.
[[nodiscard]] std::string steps_heading(const PageLook& look);
[[nodiscard]] std::string steps_line(int64_t step, const StepNumbers& numbers);

// A remark at the end.
[[nodiscard]] std::string remark_text(std::string_view text, const PageLook& look);

}  // namespace kedge::cli
