#include "cli/plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <sstream>

#include "kedge/config/yaml.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/core/memory_budget.h"

#include "cli/commands.h"
#include "cli/text/json_lines.h"
#include "cli/training.h"

namespace kedge::cli {
namespace {

struct Planned {
  std::string_view name;
  PlanReport (*plan_server)(const Arguments& arguments, const PlanOptions& options) = nullptr;  // null: it trains

  [[nodiscard]] PlanReport plan(const Arguments& arguments, const PlanOptions& options) const {
    return plan_server == nullptr ? plan_training(name, arguments, options) : plan_server(arguments, options);
  }
};
constexpr std::array kPlanned = {Planned{"sft"},
                                 Planned{"rm"},
                                 Planned{"dpo"},
                                 Planned{"kto"},
                                 Planned{"ppo"},
                                 Planned{"reinforce"},
                                 Planned{"grpo"},
                                 Planned{"rloo"},
                                 Planned{"rs"},
                                 Planned{"serve reward", plan_serve_reward},
                                 Planned{"serve critic", plan_serve_critic}};

bool is_server(const Planned& planned) { return planned.plan_server != nullptr; }

// "a, b or c".
std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

// The command at the start of these arguments, which is removed from them. None if there is no command.
const Planned* take_command(Arguments& arguments) {
  const std::string one = arguments.empty() ? "" : arguments[0], two = arguments.size() < 2 ? one : one + " " + arguments[1];
  for (const Planned& planned : kPlanned) {
    if (planned.name != one && planned.name != two) continue;
    arguments.erase(arguments.begin(), arguments.begin() + (planned.name == one ? 1 : 2));
    return &planned;
  }
  return nullptr;
}

bool is_file_of(const Planned& planned, const ConfigNode& file) {
  const auto has = [&](const std::string& section) { return file.find(section) != nullptr; };
  if (planned.name == "serve reward") return has("rm_model_file");
  if (planned.name == "serve critic" || planned.name == "ppo")  // both have trainer.ppo, but a critic's server no rollouts and no data
    return has("trainer.ppo") && (has("model.ppo") || has("model.data")) == (planned.name == "ppo");
  return has("trainer." + std::string(planned.name));
}

// Named first, or determined by the sections of the file.
const Planned& find_planned(Arguments& arguments) {
  if (const Planned* planned = take_command(arguments)) return *planned;
  Arguments rest = arguments;
  static_cast<void>(take_flag(rest, "--recipe", "the name of a recipe"));
  const ConfigArguments given = read_config_arguments(rest);
  std::vector<std::string> sections;
  for (const Planned& planned : kPlanned)
    if (!is_server(planned)) sections.push_back("trainer." + std::string(planned.name));
  sections.emplace_back("rm_model_file");
  if (given.file) {
    const ConfigNode file = parse_yaml(read_text(*given.file), given.file->string());
    for (const Planned& planned : kPlanned)
      if (is_file_of(planned, file)) return planned;
  }
  throw UsageError(str("kedge plan: expected ", alternatives(plan_words()), " first, or a file with a section ", alternatives(sections)));
}

// --beside 'serve reward rm_model_file=DIR': what another process will take on the same device.
struct Beside {
  std::string command;
  PlanReport report;
};
std::vector<Beside> take_besides(Arguments& arguments) {
  std::vector<Beside> besides;
  for (size_t i = 0; i < arguments.size();) {
    if (arguments[i] != "--beside") {
      ++i;
      continue;
    }
    check(i + 1 < arguments.size(), "--beside: expected a command in quotes, as in --beside 'serve reward rm_model_file=DIR'");
    Beside beside{.command = arguments[i + 1], .report = {}};
    std::istringstream words(beside.command);
    Arguments other{std::istream_iterator<std::string>(words), {}};
    const Planned* planned = take_command(other);
    check(planned != nullptr, "--beside: \"", beside.command, "\" does not start with a command that can be planned");
    beside.report = planned->plan(other, {});
    besides.push_back(std::move(beside));
    arguments.erase(arguments.begin() + static_cast<int64_t>(i), arguments.begin() + static_cast<int64_t>(i) + 2);
  }
  return besides;
}

template <typename T>
T number_of(std::string_view text, const std::string& flag, std::string_view what) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  check(error == std::errc() && end == text.data() + text.size() && number > 0, flag, ": expected ", what, ", found \"", text, "\"");
  return number;
}

// --mesh 2x8: nodes, and GPUs of a node. --links nvlink=350,net=40. --gpu 140GiB: memory of GPUs that need not be here.
std::optional<PlannedRanks> take_ranks(Arguments& arguments) {
  const std::optional<std::string> mesh = take_flag(arguments, "--mesh", "a value"), links = take_flag(arguments, "--links", "a value");
  const std::optional<std::string> gpu = take_flag(arguments, "--gpu", "a value");
  check(mesh || !links, "--links: needs --mesh NODESxGPUS");
  check(mesh || !gpu, "--gpu: needs --mesh NODESxGPUS");
  if (!mesh) return std::nullopt;
  const std::string shape = "NODESxGPUS, such as 2x8";
  const size_t cross = mesh->find('x');
  check(cross != std::string::npos, "--mesh: expected ", shape, ", found \"", *mesh, "\"");
  PlannedRanks ranks;
  ranks.nodes = number_of<int>(std::string_view(*mesh).substr(0, cross), "--mesh", shape);
  ranks.per_node = number_of<int>(std::string_view(*mesh).substr(cross + 1), "--mesh", shape);
  if (gpu) ranks.gpu_bytes = memory_budget(*gpu, 0, "--gpu");
  std::istringstream parts(links.value_or(""));
  for (std::string part; std::getline(parts, part, ',');) {
    const std::string speeds = "nvlink=GB/S,net=GB/S";
    const size_t equals = part.find('=');
    check(equals != std::string::npos, "--links: expected ", speeds, ", found \"", part, "\"");
    const std::string name = part.substr(0, equals);
    check(name == "nvlink" || name == "net", "--links: expected ", speeds, ", found \"", part, "\"");
    (name == "net" ? ranks.net_speed : ranks.node_speed) = number_of<double>(std::string_view(part).substr(equals + 1), "--links", speeds);
  }
  return ranks;
}

}  // namespace

std::string plan_flags() {
  return "  --mesh NODESxGPUS         plan for NODES x GPUS ranks, one per GPU, such as 2x8\n"
         "  --links nvlink=350,net=40 GB/s that a GPU sends within its node and to others\n"
         "  --gpu BYTES               free memory of such a GPU, as 138GiB, if there is none here; without times\n"
         "  --recipe NAME             start from a recipe, as the command itself does\n"
         "  --beside 'COMMAND ...'    also count this command's memory on the same device; may be repeated\n"
         "  --no-time                 do not measure the speed of this machine\n"
         "  --json                    print one JSON object instead of text\n\n"
         "Exit code 2 if the run would not fit.\n";
}

std::vector<std::string> plan_words() {
  std::vector<std::string> names;
  for (const Planned& planned : kPlanned) names.emplace_back(planned.name);
  return names;
}

int run_plan(const Arguments& given) {
  Arguments arguments = given;
  PlanOptions options;
  const bool as_json = std::erase(arguments, "--json") > 0;
  options.wants_time = std::erase(arguments, "--no-time") == 0;
  options.ranks = take_ranks(arguments);
  if (options.ranks && options.ranks->gpu_bytes) options.wants_time = false;
  const std::vector<Beside> besides = take_besides(arguments);
  for (const Beside& beside : besides) options.beside += beside.report.needed;
  const Planned& planned = find_planned(arguments);
  PlanReport report = planned.plan(arguments, options);
  for (const Beside& beside : besides)
    report.text += str("\nAlso counted: kedge ", beside.command, ", ", format_bytes(beside.report.needed), "\n");
  report.json.set("beside_bytes", options.beside);
  print_text(as_json ? report.json.dump() + "\n" : report.text);
  return report.fits ? kExitOk : kExitUsage;
}

}  // namespace kedge::cli
