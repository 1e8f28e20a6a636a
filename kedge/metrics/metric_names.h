#pragma once
// Names under which other trainers log the same metrics, so that dashboards made for them show a run of kedge. Knows names only.
#include <array>

#include "kedge/config/config_schema.h"
#include "kedge/metrics/metrics.h"

namespace kedge {

enum class MetricNames { kedge, trl, verl };
constexpr auto enum_names(MetricNames) {
  return std::array<EnumName<MetricNames>, 3>{{{"kedge", MetricNames::kedge}, {"trl", MetricNames::trl}, {"verl", MetricNames::verl}}};
}

// Those of the metrics that the other trainer logs too, under its names; none for kedge's own. docs/metrics.md lists them.
[[nodiscard]] Metrics as_known_elsewhere(const Metrics& metrics, MetricNames names);

}  // namespace kedge
