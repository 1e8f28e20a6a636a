#pragma once
// Recipes: the settings of published algorithms by name, from configs/recipes. They are parts of the program.
#include <span>
#include <string>
#include <string_view>

#include "kedge/config/config.h"

namespace kedge::cli {

struct Recipe {
  std::string_view name;
  std::string_view command;  // that it is for: "grpo"
  std::string_view yaml;     // opens with a comment of one line that says what it is

  [[nodiscard]] std::string about() const;
};
[[nodiscard]] std::span<const Recipe> recipes();

// "dapo | gspo": those of a command; empty if it has none.
[[nodiscard]] std::string recipe_names(std::string_view command);
// A line for each of them.
[[nodiscard]] std::string recipes_help(std::string_view command);

// Makes the recipe's values the defaults of a command's configuration. UsageError if the command has no such recipe.
void set_recipe(const Section& section, std::string_view command, const std::string& name);

}  // namespace kedge::cli
