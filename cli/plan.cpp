#include "cli/plan.h"

#include <array>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/core/yaml.h"

#include "cli/commands.h"
#include "cli/json_lines.h"

namespace kedge::cli {
namespace {

struct Planned {
  std::string_view name;
  PlanReport (*plan)(const Arguments& arguments);
};
constexpr std::array kPlanned = {Planned{"sft", plan_sft}, Planned{"rm", plan_rm}, Planned{"ppo", plan_ppo},
                                 Planned{"reinforce", plan_reinforce}, Planned{"rs", plan_rs}};

// "a, b or c", each name behind `start`.
std::string alternatives(std::string_view start) {
  std::string text;
  for (size_t i = 0; i < kPlanned.size(); ++i) text += str(i == 0 ? "" : i + 1 < kPlanned.size() ? ", " : " or ", start, kPlanned[i].name);
  return text;
}

// Named first, or told by the section of the file that only it has.
const Planned& find_planned(Arguments& arguments) {
  for (const Planned& planned : kPlanned)
    if (!arguments.empty() && arguments[0] == planned.name) {
      arguments.erase(arguments.begin());
      return planned;
    }
  const ConfigArguments given = read_config_arguments(arguments);
  if (given.file) {
    const ConfigNode file = parse_yaml(read_text(*given.file), given.file->string());
    for (const Planned& planned : kPlanned)
      if (file.find("trainer." + std::string(planned.name)) != nullptr) return planned;
  }
  throw UsageError(str("kedge plan: wants ", alternatives(""), " first, or a file with a section ", alternatives("trainer.")));
}

}  // namespace

std::string plan_flags() { return "  --json    print one JSON object instead of text\n\nExit code 2 where the run would not fit.\n"; }

std::string plan_heading(std::string_view name, const Path& folder, at::ScalarType dtype, const Mesh& mesh) {
  return str("kedge ", name, " from ", folder.string(), ", ", name_of(dtype), " on ", name_of(mesh.device), ", ", mesh.world.size(),
             mesh.world.size() == 1 ? " rank\n" : " ranks\n");
}

std::string verdict_text(const MemoryVerdict& verdict) {
  std::string out = str("\n", verdict.fits ? "fits: " : "does not fit: ", format_bytes(verdict.needed), " needed, ",
                        format_bytes(verdict.free), " free\n");
  if (verdict.blocks) out += "training will wait while a checkpoint is written: there is no memory for a copy of its state\n";
  for (const std::string& remedy : verdict.remedies) out += "  would fit: " + remedy + "\n";
  return out;
}

void add_verdict(Json& json, const MemoryVerdict& verdict) {
  json.set("needed_bytes", verdict.needed);
  json.set("free_bytes", verdict.free);
  json.set("fits", verdict.fits);
  Json::Array remedies;
  for (const std::string& remedy : verdict.remedies) remedies.emplace_back(remedy);
  json.set("would_fit", std::move(remedies));
}

int run_plan(const Arguments& given) {
  Arguments arguments = given;
  const bool as_json = std::erase(arguments, "--json") > 0;
  const PlanReport report = find_planned(arguments).plan(arguments);
  print_text(as_json ? report.json.dump() + "\n" : report.text);
  return report.fits ? kExitOk : kExitUsage;
}

}  // namespace kedge::cli
