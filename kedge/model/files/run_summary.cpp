#include "kedge/model/files/run_summary.h"

#include "kedge/core/error.h"

namespace kedge {

std::optional<RunSummary> read_run_summary(const Path& folder, const Json& starts) {
  const Path file = folder / "summary.json";
  if (!is_file(file)) return std::nullopt;
  const std::string where = file.string(), of_starts = (folder / "run.json").string();
  const Json json = Json::parse(read_text(file), where);
  const Json::Array& all_starts = starts.as_array(of_starts);
  check(!all_starts.empty(), of_starts, ": records no start");
  RunSummary summary{.reason = json.at("reason", where).as_text(where), .step = json.at("step", where).as_integer(where)};
  if (const Json* steps = all_starts.back().find("max_steps")) summary.max_steps = steps->as_integer(of_starts);
  if (summary.max_steps == 0) summary.max_steps = json.at("max_steps", where).as_integer(where);
  if (const Json* model_step = json.find("model_step")) summary.model_step = model_step->as_integer(where);
  const Json* num_starts = json.find("starts");
  const bool is_earlier = num_starts != nullptr && num_starts->as_integer(where) < static_cast<int64_t>(all_starts.size());
  summary.is_old = summary.is_complete() ? summary.step < summary.max_steps : is_earlier;
  return summary;
}

}  // namespace kedge
