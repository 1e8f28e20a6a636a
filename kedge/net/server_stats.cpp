#include "kedge/net/server_stats.h"

#include <array>

#include "kedge/core/error.h"

namespace kedge {
namespace {

Json count_and_time(int64_t count, int64_t ns) { return Json::Object{{"count", count}, {"ns", ns}}; }

// One number of every model.
struct Family {
  std::string_view name, help;
  double (*value)(const ModelStats&);
};

constexpr double kNs = 1e-9;
constexpr std::array kFamilies = {
    Family{"kedge_rows_total", "Rows that models were run on.", [](const ModelStats& m) { return static_cast<double>(m.num_rows); }},
    Family{"kedge_batches_total", "Runs of models; one may hold several calls.",
           [](const ModelStats& m) { return static_cast<double>(m.num_batches); }},
    Family{"kedge_queue_seconds_total", "Time that calls waited for their turn.",
           [](const ModelStats& m) { return static_cast<double>(m.wait_ns) * kNs; }},
    Family{"kedge_compute_seconds_total", "Time in which models ran.",
           [](const ModelStats& m) { return static_cast<double>(m.compute_ns) * kNs; }},
};

std::string number(double value) {
  std::string text = shortest(value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string heading(std::string_view name, std::string_view help, std::string_view type) {
  return str("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

}  // namespace

Json stats_json(std::span<const ModelStats* const> models) {
  Json::Array all;
  for (const ModelStats* m : models) {
    const int64_t done = m->num_done, failed = m->num_failed + m->num_refused;
    Json entry;
    entry.set("name", m->name);
    entry.set("version", "1");
    entry.set("inference_count", m->num_rows.load());
    entry.set("execution_count", m->num_batches.load());
    entry.set("inference_stats", Json::Object{{"success", count_and_time(done, m->wait_ns + m->compute_ns)},
                                              {"fail", count_and_time(failed, 0)},
                                              {"cancel", count_and_time(m->num_dropped, 0)},
                                              {"queue", count_and_time(done, m->wait_ns)},
                                              {"compute_infer", count_and_time(m->num_batches, m->compute_ns)}});
    all.push_back(std::move(entry));
  }
  return Json::Object{{"model_stats", std::move(all)}};
}

std::string prometheus_text(std::span<const ModelStats* const> models, const Gauges& gauges) {
  std::string text = heading("kedge_calls_total", "Calls by how they ended.", "counter");
  for (const ModelStats* m : models) {
    const std::array<std::pair<std::string_view, int64_t>, 4> outcomes = {
        {{"done", m->num_done}, {"refused", m->num_refused}, {"failed", m->num_failed}, {"dropped", m->num_dropped}}};
    for (const auto& [outcome, count] : outcomes)
      text += str("kedge_calls_total{model=\"", m->name, "\",outcome=\"", outcome, "\"} ", count, "\n");
  }
  for (const Family& family : kFamilies) {
    text += heading(family.name, family.help, "counter");
    for (const ModelStats* m : models) text += str(family.name, "{model=\"", m->name, "\"} ", number(family.value(*m)), "\n");
  }
  for (const auto& [name, value] : gauges) text += str("# TYPE ", name, " gauge\n", name, " ", number(value), "\n");
  return text;
}

}  // namespace kedge
