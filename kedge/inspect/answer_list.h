#pragma once
// Which answers of a step are shown, in what order, and which of two steps are paired. Independent of files and terminals.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// Highest first, except `order`: as in the step.
enum class AnswerKey { reward, kl, length, advantage, order };
constexpr auto enum_names(AnswerKey) {
  return std::array<EnumName<AnswerKey>, 5>{{{"reward", AnswerKey::reward},
                                             {"kl", AnswerKey::kl},
                                             {"length", AnswerKey::length},
                                             {"advantage", AnswerKey::advantage},
                                             {"order", AnswerKey::order}}};
}

struct AnswerChoice {
  AnswerKey key = AnswerKey::reward;
  bool worst = false;    // from the other end
  bool reverse = false;  // those that were chosen, the last one first
  int64_t limit = 0;     // 0: all
};

// Places of the rows. Equal ones keep the order of the step; those that have no such number, because there is no reward or no
// reference, come after all others, also from the other end.
[[nodiscard]] std::vector<size_t> choose_answers(std::span<const RolloutRow> rows, const AnswerChoice& choice);

// An answer and its partner, as places in their steps.
struct AnswerPair {
  size_t first = 0, second = 0;
  bool differs = false;  // in text or reward
};

// Answers to equal prompts, in the order in which both steps have them. By the prompt's text, as runs on other
// files number prompts differently; among equal texts those of equal numbers are paired first.
[[nodiscard]] std::vector<AnswerPair> pair_answers(std::span<const RolloutRow> first, std::span<const RolloutRow> second);

// Those that differ come first, the largest increase of the key first, with `worst` the largest decrease.
[[nodiscard]] std::vector<AnswerPair> choose_pairs(std::vector<AnswerPair> pairs, std::span<const RolloutRow> first,
                                                   std::span<const RolloutRow> second, const AnswerChoice& choice);

// A step in numbers. None: no row has one.
struct StepNumbers {
  int64_t num_answers = 0, num_prompts = 0, num_failed = 0, num_ended = 0;
  std::optional<double> reward, reward_std, reward_min, reward_max, kl, length;
};
[[nodiscard]] StepNumbers numbers_of(std::span<const RolloutRow> rows);

// A step of the recorded ones, which rise: its number, or first or last. UsageError: "NAME: ..." with the nearest ones.
[[nodiscard]] int64_t choose_step(std::span<const int64_t> steps, std::string_view wanted, std::string_view name);

// The row's number by that key; none for `order`, and if there is none.
[[nodiscard]] std::optional<double> number_of(const RolloutRow& row, AnswerKey key);

}  // namespace kedge
