#include "cli/commands.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "kedge/core/error.h"
#include "kedge/core/nearest.h"
#include "kedge/core/version.h"

namespace kedge::cli {
namespace {

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

std::string overview(std::span<const Command> commands) {
  std::string text =
      "kedge aligns language models: Hugging Face folders and JSONL in, a Hugging Face folder out.\n"
      "\n"
      "Usage: kedge COMMAND [arguments]\n";
  size_t width = 0;
  for (const Command& command : commands) width = std::max(width, command.name.size());
  std::string_view group;
  for (const Command& command : commands) {
    if (command.group != group) text += str("\n", command.group, "\n");
    group = command.group;
    text += str("  ", command.name, std::string(width - command.name.size() + 2, ' '), command.summary, "\n");
  }
  return text +
         "\nExamples\n"
         "  kedge doctor                       is this machine ready, and what is missing\n"
         "  kedge config sft                   every key with its default and meaning\n"
         "  kedge config sft --yaml            the same as a file to start from\n"
         "  kedge sft FILE.yaml model.optim.lr=1e-5\n"
         "  kedge serve reward rm_model_file=DIR inference.port=5555\n"
         "  kedge ppo FILE.yaml pretrained_checkpoint.restore_from_path=DIR remote_critic_rm.critic.port=5556\n"
         "  kedge reinforce FILE.yaml pretrained_checkpoint.restore_from_path=DIR remote_rm.port=5555\n"
         "  kedge tokenize --model DIR --text 'Hello there'\n"
         "  kedge data check prompts.jsonl --as prompts --model DIR\n"
         "  kedge init OUT --shape tiny --tokenizer DIR\n"
         "  kedge generate --model DIR --text 'Once upon a time' --stream\n"
         "  kedge logprobs --model DIR --text 'Once upon a time'\n"
         "\n"
         "kedge COMMAND --help tells more; kedge --version says what this is.\n"
         "Exit codes: 0 done, 1 something failed, 2 the input was wrong.\n";
}

std::string help_of(const Command& command) {
  const std::string flags = command.flags();
  return str("kedge ", command.name, ": ", command.summary, "\n\nUsage: ", command.usage, "\n", flags.empty() ? "" : "\n" + flags);
}

bool is_help(const std::string& argument) { return argument == "--help" || argument == "-h" || argument == "help"; }

// What the reference's programs are called.
std::string without_alias(const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kAliases = {{{"train_gpt_sft", "sft"},
                                                                                             {"train_reward_model", "rm"},
                                                                                             {"train_gpt_ppo_actor", "ppo"},
                                                                                             {"train_gpt_reinforce_actor", "reinforce"},
                                                                                             {"train_gpt_rs_actor", "rs"},
                                                                                             {"serve_reward_model", "serve reward"},
                                                                                             {"serve_ppo_critic", "serve critic"}}};
  for (const auto& [alias, command] : kAliases)
    if (name == alias || name == std::string(alias) + ".py") return std::string(command);
  return name;
}

// The arguments without the reference's names: an alias may stand for two words.
Arguments expand_alias(const Arguments& arguments) {
  const std::string command = without_alias(arguments[0]);
  const size_t space = command.find(' ');
  Arguments result = {command.substr(0, space)};
  if (space != std::string::npos) result.push_back(command.substr(space + 1));
  result.insert(result.end(), arguments.begin() + 1, arguments.end());
  return result;
}

const Command& find_command(std::span<const Command> commands, const std::string& name) {
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const Command& command) { return command.name == name; });
  if (found != commands.end()) return *found;
  std::vector<std::string> names;
  for (const Command& command : commands) names.emplace_back(command.name);
  throw UsageError(str("unknown command \"", name, "\"", nearest_hint(name, names), "; kedge --help lists all commands"));
}

}  // namespace

int run_commands(std::span<const Command> commands, const Arguments& given) {
  const Arguments arguments = given.empty() ? given : expand_alias(given);
  if (arguments.empty() || (is_help(arguments[0]) && arguments.size() == 1)) {
    print(overview(commands));
    return arguments.empty() ? kExitUsage : kExitOk;
  }
  if (arguments[0] == "--version" || arguments[0] == "-V" || arguments[0] == "version") {
    print(str("kedge ", version(), " (", commit(), ", ", build_type(), ")\n"));
    return kExitOk;
  }
  if (is_help(arguments[0])) {
    print(help_of(find_command(commands, expand_alias({arguments[1]})[0])));
    return kExitOk;
  }
  const Command& command = find_command(commands, arguments[0]);
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (std::any_of(rest.begin(), rest.end(), [](const std::string& argument) { return argument == "--help" || argument == "-h"; })) {
    print(help_of(command));
    return kExitOk;
  }
  return command.run(rest);
}

}  // namespace kedge::cli
