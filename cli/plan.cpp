#include <array>
#include <cstdio>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/core/yaml.h"
#include "kedge/metrics/progress.h"

#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/training_job.h"

namespace kedge::cli {
namespace {

using UseJob = std::function<void(const TrainingJob& job)>;
struct Planned {
  std::string_view name;
  void (*with_job)(const UseJob& use);
};
constexpr std::array kPlanned = {Planned{"sft", with_sft_job}, Planned{"rm", with_rm_job}};

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
  throw UsageError("kedge plan: wants sft or rm first, or a file with a section trainer.sft or trainer.rm");
}

struct Report {
  const TrainingSetup& setup;
  MemoryVerdict verdict;
  int64_t free_bytes;

  [[nodiscard]] std::string text() const {
    const TrainingJob& job = setup.job;
    const SupervisedBatches batches = job.batches();
    const RowSize& micro = setup.data.largest_micro;
    const auto tokens = setup.data.tokens_per_epoch;
    const auto& steps = setup.plan.steps;
    std::string out = str("kedge ", job.name, " from ", setup.folder.string(), ", ", name_of(setup.storage().dtype), " on ",
                          name_of(setup.mesh.device), ", ", setup.mesh.world.size(), setup.mesh.world.size() == 1 ? " rank\n" : " ranks\n");
    out += str("\nSteps\n  ", steps.max_steps, " in all, ", steps.steps_per_epoch, " an epoch; validation every ",
               setup.plan.intervals.validate, ", saving every ", setup.plan.intervals.save, "\n");
    out += str("  ", setup.task.train.size, " training rows, about ", format_number(tokens), " tokens an epoch, ",
               format_number(tokens / static_cast<double>(setup.task.train.size) * static_cast<double>(batches.global_size)), " a step\n");
    out += str("  a step is ", batches.global_size / batches.micro_size / setup.mesh.world.size(), " micro-batches of ", batches.micro_size,
               " a rank; the largest may have ", micro.tokens, " tokens, its longest row ", micro.longest, "\n");
    out += str("\nMemory\n", verdict.plan.table());
    if (const int64_t cache = cache_bytes(); cache > 0)
      out += str("Between steps, ", format_bytes(cache), " hold keys and values while samples are drawn at a validation.\n");
    out += str("\n", verdict.fits ? "fits: " : "does not fit: ", format_bytes(verdict.needed), " needed, ", format_bytes(free_bytes),
               " free\n");
    if (verdict.blocks) out += "training will wait while a checkpoint is written: there is no memory for a copy of its state\n";
    for (const std::string& remedy : verdict.remedies) out += "  would fit: " + remedy + "\n";
    return out;
  }

  [[nodiscard]] int64_t cache_bytes() const {
    const int64_t element_size = setup.storage().dtype == at::kFloat ? 4 : 2;
    return setup.job.cache_bytes ? setup.job.cache_bytes(setup.network, element_size, setup.data.largest_micro.longest) : 0;
  }

  [[nodiscard]] Json json() const {
    Json json;
    json.set("algorithm", setup.job.name);
    json.set("max_steps", setup.plan.steps.max_steps);
    json.set("steps_per_epoch", setup.plan.steps.steps_per_epoch);
    json.set("tokens_per_epoch", setup.data.tokens_per_epoch);
    json.set("largest_micro_batch_tokens", setup.data.largest_micro.tokens);
    json.set("memory", verdict.plan.json());
    json.set("cache_bytes", cache_bytes());
    json.set("needed_bytes", verdict.needed);
    json.set("free_bytes", free_bytes);
    json.set("fits", verdict.fits);
    Json::Array remedies;
    for (const std::string& remedy : verdict.remedies) remedies.emplace_back(remedy);
    json.set("would_fit", std::move(remedies));
    return json;
  }
};

}  // namespace

std::string plan_flags() { return "  --json    print one JSON object instead of text\n\nExit code 2 where the run would not fit.\n"; }

int run_plan(const Arguments& given) {
  Arguments arguments = given;
  const bool as_json = std::erase(arguments, "--json") > 0;
  const Planned& planned = find_planned(arguments);
  int code = kExitOk;
  planned.with_job([&](const TrainingJob& job) {
    const ConfigArguments config = read_config_arguments(arguments);
    load_config(job.section, config.file, config.overrides);
    if (job.check_config) job.check_config();
    const TrainingSetup setup(job);
    const Report report{setup, setup.check_memory(), setup.free_bytes()};
    print_text(as_json ? report.json().dump() + "\n" : report.text());
    if (!report.verdict.fits) code = kExitUsage;
  });
  return code;
}

}  // namespace kedge::cli
