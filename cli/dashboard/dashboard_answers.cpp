#include "cli/dashboard/dashboard_answers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "kedge/core/error.h"
#include "kedge/inspect/before_after.h"
#include "kedge/inspect/run_overview.h"
#include "kedge/inspect/run_records.h"
#include "kedge/rollout/record_file.h"

#include "cli/text/answer_json.h"

namespace kedge::cli {
namespace {

constexpr size_t kSampleBytes = size_t{8} << 20U;  // of samples.jsonl, from its end

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool row_has_text(const RolloutRow& row, const std::string& wanted) {
  return has_text(row.rollout->prompt, wanted) || has_text(row.rollout->response, wanted);
}

// A page of `all` as JSON.
template <typename T, typename Function>
Json page_of(const std::vector<T>& all, int64_t offset, int64_t limit, const Function& json) {
  Json::Array page;
  for (auto i = static_cast<size_t>(offset); i < all.size() && page.size() < static_cast<size_t>(limit); ++i) page.push_back(json(all[i]));
  return page;
}

// The complete lines at the end of a file. Copies, because the run may truncate it.
std::string end_of_file(const Path& path) {
  const MappedFile file(path);
  const size_t begin = file.size() - std::min(file.size(), kSampleBytes);
  std::string text = file.read(begin, file.size());
  text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
  return begin == 0 ? text : text.substr(std::min(text.size(), text.find('\n') + 1));
}

std::vector<Json> read_samples(const Path& path) {
  std::vector<Json> samples;
  if (!is_file(path)) return samples;
  const std::string text = end_of_file(path);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    try {
      Json sample = Json::parse(line);
      if (sample.is_object()) samples.push_back(std::move(sample));
    } catch (const UsageError&) {
      continue;  // damaged: others may be readable
    }
  }
  return samples;
}

std::string text_at(const Json& sample, std::string_view key) {
  const Json* value = sample.find(key);
  return value != nullptr && value->is_text() ? value->as_text(key) : "";
}

double sample_number(const Json& sample, SampleKey key) {
  const Json* value = sample.find(key == SampleKey::step ? "step" : key == SampleKey::reward ? "reward" : "length");
  return value != nullptr && value->is_number() ? value->as_number("") : std::numeric_limits<double>::quiet_NaN();
}

Json steps_json(const std::vector<int64_t>& steps) {
  Json::Array array;
  for (const int64_t step : steps) array.emplace_back(step);
  return array;
}

}  // namespace

bool has_text(std::string_view text, std::string_view wanted) {
  return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(), [](char a, char b) { return lower(a) == lower(b); }) !=
             text.end() ||
         wanted.empty();
}

Json recorded_json(const Path& run, const Json& settings) {
  const std::vector<int64_t> steps = recorded_steps(run / "rollouts");
  const std::string keep = setting_text(settings, "rollouts.keep");
  const std::string why = !steps.empty()   ? ""
                          : keep.empty()   ? "no records: only kedge grpo, rloo, reinforce, rs and ppo keep the answers of their steps"
                          : keep == "none" ? "no records: rollouts.keep=none"
                                           : "no records yet";
  return Json::Object{{"steps", steps_json(steps)}, {"why", why}};
}

Json answers_json(const Path& run, std::optional<int64_t> step, const AnswerQuery& query) {
  const RunRecords records(run.string());
  const int64_t chosen = records.choose(step ? std::to_string(*step) : "last");
  const RolloutRows rows = records.rows(chosen);
  std::vector<size_t> places = choose_answers(rows, {.key = query.key, .worst = query.worst});
  std::erase_if(places, [&](size_t place) { return !row_has_text(rows[place], query.search); });
  return Json::Object{{"step", chosen},
                      {"numbers", json_of(chosen, numbers_of(rows))},
                      {"total", static_cast<int64_t>(rows.size())},
                      {"found", static_cast<int64_t>(places.size())},
                      {"answers", page_of(places, query.offset, query.limit,
                                          [&](size_t place) { return json_of(chosen, rows[place], AnswerParts::main); })}};
}

Json pairs_json(const Path& run, const Path& other_run, const PairQuery& query) {
  const RunRecords records(run.string()), others(other_run.string());
  check(query.step.has_value() == query.other_step.has_value(), "name both steps, or none");
  check(query.step || run == other_run, "two runs are compared step by step: name both steps");
  const BeforeAfter all = query.step ? compare_steps(records, records.choose(std::to_string(*query.step)), others,
                                                     others.choose(std::to_string(*query.other_step)))
                                     : find_before_after(records);
  const RolloutRows &before = all.before.rows, &after = all.after.rows;
  std::vector<AnswerPair> pairs = choose_pairs(all.pairs, before, after, {.key = query.key, .worst = query.worst});
  std::erase_if(pairs, [&](const AnswerPair& pair) {
    return !row_has_text(before[pair.first], query.search) && !has_text(after[pair.second].rollout->response, query.search);
  });
  const auto json = [&](const AnswerPair& pair) {
    Json told = json_of(pair, before[pair.first], after[pair.second]);
    told.set("step", steps_json({all.before.steps[pair.first], all.after.steps[pair.second]}));
    return told;
  };
  return Json::Object{{"total", static_cast<int64_t>(all.pairs.size())},
                      {"found", static_cast<int64_t>(pairs.size())},
                      {"pairs", page_of(pairs, query.offset, query.limit, json)}};
}

Json samples_json(const Path& run, const SampleQuery& query) {
  std::vector<Json> samples = read_samples(run / "samples.jsonl");
  std::set<std::string> tables;
  for (const Json& sample : samples) tables.insert(text_at(sample, "table"));
  const auto total = static_cast<int64_t>(samples.size());
  std::erase_if(samples, [&](const Json& sample) {
    return (!query.table.empty() && text_at(sample, "table") != query.table) ||
           (!has_text(text_at(sample, "prompt"), query.search) && !has_text(text_at(sample, "response"), query.search));
  });
  // Highest first, those without the number last from either end.
  std::stable_sort(samples.begin(), samples.end(), [&](const Json& a, const Json& b) {
    const double x = sample_number(a, query.key), y = sample_number(b, query.key);
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
    return query.worst ? x < y : x > y;
  });
  Json::Array names;
  for (const std::string& table : tables) names.emplace_back(table);
  return Json::Object{{"total", total},
                      {"found", static_cast<int64_t>(samples.size())},
                      {"tables", std::move(names)},
                      {"samples", page_of(samples, query.offset, query.limit, [](const Json& sample) { return sample; })}};
}

}  // namespace kedge::cli
