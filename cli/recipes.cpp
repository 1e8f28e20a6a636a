#include "cli/recipes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kedge/config/nearest.h"
#include "kedge/core/error.h"

#include "cli/embed.h"

KEDGE_EMBED(recipe_cispo, KEDGE_RECIPES_FOLDER "/cispo.yaml");
KEDGE_EMBED(recipe_dapo, KEDGE_RECIPES_FOLDER "/dapo.yaml");
KEDGE_EMBED(recipe_dr_grpo, KEDGE_RECIPES_FOLDER "/dr_grpo.yaml");
KEDGE_EMBED(recipe_grpo, KEDGE_RECIPES_FOLDER "/grpo.yaml");
KEDGE_EMBED(recipe_gspo, KEDGE_RECIPES_FOLDER "/gspo.yaml");
KEDGE_EMBED(recipe_liteppo, KEDGE_RECIPES_FOLDER "/liteppo.yaml");
KEDGE_EMBED(recipe_reinforce_pp, KEDGE_RECIPES_FOLDER "/reinforce_pp.yaml");

namespace kedge::cli {

std::string Recipe::about() const {
  const std::string_view line = yaml.substr(0, yaml.find('\n'));
  return std::string(line.substr(std::min(line.size(), line.find_first_not_of("# "))));
}

std::span<const Recipe> recipes() {
  static const std::array<Recipe, 7> all = {{
      {"cispo", "grpo", KEDGE_EMBEDDED(recipe_cispo)},
      {"dapo", "grpo", KEDGE_EMBEDDED(recipe_dapo)},
      {"dr_grpo", "grpo", KEDGE_EMBEDDED(recipe_dr_grpo)},
      {"grpo", "grpo", KEDGE_EMBEDDED(recipe_grpo)},
      {"gspo", "grpo", KEDGE_EMBEDDED(recipe_gspo)},
      {"liteppo", "grpo", KEDGE_EMBEDDED(recipe_liteppo)},
      {"reinforce_pp", "grpo", KEDGE_EMBEDDED(recipe_reinforce_pp)},
  }};
  return all;
}

std::string recipe_names(std::string_view command) {
  std::string names;
  for (const Recipe& recipe : recipes())
    if (recipe.command == command) names += str(names.empty() ? "" : " | ", recipe.name);
  return names;
}

std::string recipes_help(std::string_view command) {
  std::string text;
  for (const Recipe& recipe : recipes())
    if (recipe.command == command) text += str("  ", recipe.name, std::string(14 - recipe.name.size(), ' '), recipe.about(), "\n");
  return text;
}

void set_recipe(const Section& section, std::string_view command, const std::string& name) {
  std::vector<std::string> known;
  for (const Recipe& recipe : recipes()) {
    if (recipe.command != command) continue;
    if (recipe.name == name) return set_defaults(section, {str("recipe ", name), std::string(recipe.yaml)});
    known.emplace_back(recipe.name);
  }
  check(!known.empty(), "--recipe: kedge ", command, " has no recipes");
  throw UsageError(
      str("--recipe: kedge ", command, " has no recipe \"", name, "\"", nearest_hint(name, known), "; it has ", recipe_names(command)));
}

}  // namespace kedge::cli
