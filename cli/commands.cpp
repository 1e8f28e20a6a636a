#include "cli/commands.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "kedge/config/nearest.h"
#include "kedge/core/error.h"
#include "kedge/core/version.h"

#include "cli/completion.h"

namespace kedge::cli {
namespace {

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// Every line of it works as it stands, in this order, where the folder BASE and the four files are.
constexpr std::string_view kFirstExample = R"(
A first alignment: BASE is the folder of a chat model, the files are JSON lines (docs/data.md)
  kedge sft model.restore_from_path=BASE exp_manager.explicit_log_dir=runs/sft trainer.sft.max_epochs=3 \
        model.data.train_ds.file_path=rows.jsonl model.data.validation_ds.file_path=val.jsonl \
        model.data.train_ds.global_batch_size=16
  kedge rm pretrained_checkpoint.restore_from_path=runs/sft/model exp_manager.explicit_log_dir=runs/judge \
        'model.data.data_prefix={train: [pairs.jsonl], validation: [pairs.jsonl], test: [pairs.jsonl]}'
  kedge serve reward rm_model_file=runs/judge/model inference.port=5555 &
  kedge reinforce pretrained_checkpoint.restore_from_path=runs/sft/model remote_rm.host=localhost \
        remote_rm.port=5555 exp_manager.explicit_log_dir=runs/rl \
        'model.data.data_prefix={train: [prompts.jsonl], validation: [prompts.jsonl], test: [prompts.jsonl]}'
  kedge generate --model runs/rl/model --chat
)";

std::string overview(std::span<const Command> commands) {
  std::string text =
      str("kedge aligns language models: Hugging Face folders and JSON lines in, a Hugging Face folder out.\n"
          "\n"
          "Usage: kedge COMMAND [arguments]\n",
          kFirstExample);
  size_t width = 0;
  for (const Command& command : commands) width = std::max(width, command.name.size());
  std::string_view group;
  for (const Command& command : commands) {
    if (command.group != group) text += str("\n", command.group, "\n");
    group = command.group;
    text += str("  ", command.name, std::string(width - command.name.size() + 2, ' '), command.summary, "\n");
  }
  return text +
         "\n"
         "Then\n"
         "  kedge COMMAND --help             what a command does, its flags and examples\n"
         "  kedge config sft                 every setting with its default and meaning; --yaml: a file to start from\n"
         "  kedge doctor                     check this machine and list what is missing\n"
         "  source <(kedge completion bash)  enable shell completion of commands, flags and settings\n"
         "\n"
         "Documentation: README.md and docs/ in the source, one page per topic: docs/training.md, docs/online.md, ...\n"
         "Exit codes: 0 done, 1 something failed, 2 invalid input. Training stopped by a signal saves first\n"
         "and exits with 129 for SIGHUP, 130 for Ctrl-C, 138 for SIGUSR1, 143 for SIGTERM.\n";
}

std::string help_of(const Command& command) {
  const std::string flags = command.flags();
  return str("kedge ", command.name, ": ", command.summary, "\n\nUsage: ", command.usage, "\n", flags.empty() ? "" : "\n" + flags);
}

bool is_help(const std::string& argument) { return argument == "--help" || argument == "-h" || argument == "help"; }

// The names of NeMo-Aligner's programs.
std::string without_alias(const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kAliases = {{{"train_gpt_sft", "sft"},
                                                                                             {"train_reward_model", "rm"},
                                                                                             {"train_gpt_dpo", "dpo"},
                                                                                             {"train_gpt_kto", "kto"},
                                                                                             {"train_gpt_ppo_actor", "ppo"},
                                                                                             {"train_gpt_reinforce_actor", "reinforce"},
                                                                                             {"train_gpt_rs_actor", "rs"},
                                                                                             {"serve_reward_model", "serve reward"},
                                                                                             {"serve_ppo_critic", "serve critic"}}};
  for (const auto& [alias, command] : kAliases)
    if (name == alias || name == std::string(alias) + ".py") return std::string(command);
  return name;
}

// The arguments without NeMo-Aligner's names: an alias may be two words.
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
  if (arguments.size() == 2 && arguments[0] == "completion" && arguments[1] == "--table") {  // a shell asks; see completion.h
    print(completion_table(commands));
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
