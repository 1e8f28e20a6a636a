#include "cli/plan.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/core/yaml.h"
#include "kedge/metrics/progress.h"

#include "cli/commands.h"
#include "cli/json_lines.h"

namespace kedge::cli {
namespace {

struct Planned {
  std::string_view name;
  PlanReport (*plan)(const PlanArguments& arguments);
};
constexpr std::array kPlanned = {Planned{"sft", plan_sft},
                                 Planned{"rm", plan_rm},
                                 Planned{"ppo", plan_ppo},
                                 Planned{"reinforce", plan_reinforce},
                                 Planned{"rs", plan_rs},
                                 Planned{"serve reward", plan_serve_reward},
                                 Planned{"serve critic", plan_serve_critic}};

bool is_server(const Planned& planned) { return planned.name.starts_with("serve"); }

// "a, b or c".
std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

// The command that these arguments begin with; it is taken from them. None where they begin with no command.
const Planned* take_command(Arguments& arguments) {
  const std::string one = arguments.empty() ? "" : arguments[0], two = arguments.size() < 2 ? one : one + " " + arguments[1];
  for (const Planned& planned : kPlanned) {
    if (planned.name != one && planned.name != two) continue;
    arguments.erase(arguments.begin(), arguments.begin() + (planned.name == one ? 1 : 2));
    return &planned;
  }
  return nullptr;
}

// Named first, or told by the section of the file that only it has.
const Planned& find_planned(Arguments& arguments) {
  if (const Planned* planned = take_command(arguments)) return *planned;
  const ConfigArguments given = read_config_arguments(arguments);
  std::vector<std::string> sections;
  for (const Planned& planned : kPlanned)
    if (!is_server(planned)) sections.push_back("trainer." + std::string(planned.name));
  if (given.file) {
    const ConfigNode file = parse_yaml(read_text(*given.file), given.file->string());
    for (const Planned& planned : kPlanned)
      if (!is_server(planned) && file.find("trainer." + std::string(planned.name)) != nullptr) return planned;
  }
  throw UsageError(str("kedge plan: wants ", alternatives(plan_words()), " first, or a file with a section ", alternatives(sections)));
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
    check(i + 1 < arguments.size(), "--beside: wants a command in quotes, as in --beside 'serve reward rm_model_file=DIR'");
    Beside beside{.command = arguments[i + 1], .report = {}};
    std::istringstream words(beside.command);
    Arguments other{std::istream_iterator<std::string>(words), {}};
    const Planned* planned = take_command(other);
    check(planned != nullptr, "--beside: \"", beside.command, "\" begins with none of the commands that can be planned");
    beside.report = planned->plan({.rest = other});
    besides.push_back(std::move(beside));
    arguments.erase(arguments.begin() + static_cast<int64_t>(i), arguments.begin() + static_cast<int64_t>(i) + 2);
  }
  return besides;
}

std::string padded(const std::string& text, size_t width) { return text + std::string(width - std::min(width, text.size()), ' '); }
std::string right(const std::string& text, size_t width) { return std::string(width - std::min(width, text.size()), ' ') + text; }

}  // namespace

std::string plan_flags() {
  return "  --beside 'COMMAND ...'    count what this one will take on the same device too; may be given several times\n"
         "  --no-time                 do not try how fast this machine is\n"
         "  --json                    print one JSON object instead of text\n\n"
         "Exit code 2 where the run would not fit.\n";
}

std::vector<std::string> plan_words() {
  std::vector<std::string> names;
  for (const Planned& planned : kPlanned) names.emplace_back(planned.name);
  return names;
}

std::string plan_heading(std::string_view name, const Path& folder, at::ScalarType dtype, const Mesh& mesh) {
  return str("kedge ", name, " from ", folder.string(), ", ", name_of(dtype), " on ", name_of(mesh.device), ", ", mesh.world.size(),
             mesh.world.size() == 1 ? " rank\n" : " ranks\n");
}

std::string memory_text(const MemoryVerdict& verdict, const NamedBytes& others) {
  const bool has_host = verdict.host_needed > 0;
  std::string out = str("\nMemory by phase, at its worst moment", has_host ? "   on the GPU   in host memory" : "", "\n");
  const std::string worst = verdict.worst().name;
  for (const PhaseBytes& phase : verdict.phases)
    out += str("  ", padded(phase.name, has_host ? 36 : 20), right(format_bytes(phase.device), 10),
               has_host ? right(format_bytes(phase.host), 17) : "", phase.name == worst ? "  most" : "", "\n");
  out += str("\nWhat an update is made of\n", verdict.plan.table());
  NamedBytes beside = others;
  if (verdict.cache > 0) beside.insert(beside.begin(), {"keys and values", verdict.cache});
  if (verdict.reference_bytes > 0) beside.insert(beside.begin(), {"reference policy", verdict.reference_bytes});
  for (const auto& [name, bytes] : beside)
    if (bytes > 0) out += str("  ", padded(name, 20), right(format_bytes(bytes), 10), "  beside it\n");
  out +=
      str("\n", verdict.fits ? "fits: " : "does not fit: ", format_bytes(verdict.needed), " needed, ", format_bytes(verdict.free), " free");
  if (has_host) out += str("; host memory ", format_bytes(verdict.host_needed), ", ", format_bytes(verdict.host_free), " free");
  out += "\n";
  if (verdict.blocks) out += "training will wait while a checkpoint is written: there is no memory for a copy of its state\n";
  for (const std::string& remedy : verdict.remedies) out += "  would fit: " + remedy + "\n";
  return out;
}

void add_verdict(Json& json, const MemoryVerdict& verdict) {
  json.set("memory", verdict.plan.json());
  Json phases{Json::Object{}}, host{Json::Object{}};
  for (const PhaseBytes& phase : verdict.phases) {
    phases.append(phase.name, Json(phase.device));
    host.append(phase.name, Json(phase.host));
  }
  json.set("phases", std::move(phases));
  json.set("host_phases", std::move(host));
  json.set("cache_bytes", verdict.cache);
  json.set("reference_bytes", verdict.reference_bytes);
  json.set("needed_bytes", verdict.needed);
  json.set("free_bytes", verdict.free);
  json.set("host_needed_bytes", verdict.host_needed);
  json.set("host_free_bytes", verdict.host_free);
  json.set("fits", verdict.fits);
  json.set("blocks", verdict.blocks);
  Json::Array remedies;
  for (const std::string& remedy : verdict.remedies) remedies.emplace_back(remedy);
  json.set("would_fit", std::move(remedies));
}

void add_disk(PlanReport& report, const DiskPlan& disk) {
  std::string parts;
  const auto add = [&](const std::string& text) { parts += (parts.empty() ? "" : ", ") + text; };
  if (disk.num_kept > 0)
    add(str(disk.num_kept, disk.num_kept == 1 ? " checkpoint of " : " checkpoints of ", format_bytes(disk.checkpoint)));
  if (disk.model > 0) add("the model " + format_bytes(disk.model));
  if (disk.records > 0) add("answers up to " + format_bytes(disk.records));
  report.text +=
      str("\nDisk\n  ", parts.empty() ? "nothing but logs" : parts, "; ", format_bytes(disk.free), " free in ", disk.folder.string(), "\n");
  if (!disk.fits()) report.text += "  does not fit: there is no room for a second checkpoint beside the first\n";
  if (disk.fits() && disk.needed() > disk.free) report.text += "  the disk will be full before the end\n";
  report.json.set("disk", Json::Object{{"checkpoint_bytes", disk.checkpoint},
                                       {"checkpoints", disk.num_kept},
                                       {"model_bytes", disk.model},
                                       {"records_bytes", disk.records},
                                       {"needed_bytes", disk.needed()},
                                       {"free_bytes", disk.free}});
  report.fits = report.fits && disk.fits();
}

void add_time(PlanReport& report, const StepWork& work, int64_t num_steps, std::string_view what) {
  const Pace pace = measure_pace(work);
  const double all = pace.total() * static_cast<double>(num_steps);
  std::string parts;
  const auto add = [&](const char* name, double seconds) {
    if (seconds > 0) parts += str(parts.empty() ? "" : ", ", name, " ", format_number(seconds), " s");
  };
  add("generate", pace.generate);
  add("log-probs and reference", pace.look);
  add("update", pace.update);
  report.text += str("\nTime, tried here with two layers, ", what, "\n  a step about ", format_number(pace.total()), " s: ", parts, "\n  ",
                     num_steps, " steps about ", format_duration(all), "\n");
  report.json.set(
      "time",
      Json::Object{
          {"step_s", pace.total()}, {"generate_s", pace.generate}, {"look_s", pace.look}, {"update_s", pace.update}, {"all_s", all}});
}

int run_plan(const Arguments& given) {
  PlanArguments arguments{.rest = given};
  const bool as_json = std::erase(arguments.rest, "--json") > 0;
  arguments.wants_time = std::erase(arguments.rest, "--no-time") == 0;
  const std::vector<Beside> besides = take_besides(arguments.rest);
  for (const Beside& beside : besides) arguments.beside += beside.report.needed;
  PlanReport report = find_planned(arguments.rest).plan(arguments);
  for (const Beside& beside : besides)
    report.text += str("\nCounted beside it: kedge ", beside.command, ", ", format_bytes(beside.report.needed), "\n");
  report.json.set("beside_bytes", arguments.beside);
  print_text(as_json ? report.json.dump() + "\n" : report.text);
  return report.fits ? kExitOk : kExitUsage;
}

}  // namespace kedge::cli
