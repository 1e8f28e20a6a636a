#include "kedge/metrics/timer.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace kedge {
namespace {

constexpr double kNotMeasured = -1;  // below every measured time, so the maximum drops it

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Timers::Timers(TimersOptions options) : options_(std::move(options)) {
  if (!options_.clock) options_.clock = steady_seconds;
}

Timers::Scope::Scope(Timers& timers, size_t index) : timers_(&timers), index_(index), num_exceptions_(std::uncaught_exceptions()) {}

Timers::Scope::~Scope() noexcept(false) {
  if (timers_ == nullptr) return;
  const bool goes_on = std::uncaught_exceptions() == num_exceptions_;
  if (!goes_on) timers_->interrupt(index_);
  timers_->end(index_, goes_on);
}

void Timers::Scope::stop() {
  if (Timers* timers = std::exchange(timers_, nullptr)) timers->end(index_, true);
}

Timers::Scope Timers::measure(std::string_view name) {
  auto found = std::find_if(phases_.begin(), phases_.end(), [&](const Phase& phase) { return phase.name == name; });
  if (found == phases_.end()) found = phases_.insert(phases_.end(), Phase{.name = std::string(name)});
  interrupted_.clear();
  if (options_.synchronize) options_.synchronize();
  if (found->depth++ == 0) found->start = options_.clock();
  return {*this, static_cast<size_t>(found - phases_.begin())};
}

// An exception ends scopes from the innermost on: the first one after a scope began counts.
void Timers::interrupt(size_t index) {
  if (interrupted_.empty()) interrupted_ = phases_.at(index).name;
}

void Timers::end(size_t index, bool synchronize) {
  Phase& phase = phases_.at(index);
  --phase.depth;
  if (synchronize && options_.synchronize) options_.synchronize();
  if (phase.depth > 0) return;
  phase.seconds += options_.clock() - phase.start;
  phase.measured = true;
}

Metrics Timers::take() { return take({}, {}); }

Metrics Timers::take(std::span<const std::string_view> names, const MaxOverRanks& max_over_ranks) {
  Metrics own;
  for (Phase& phase : phases_) {
    if (phase.measured) own.set(phase.name, phase.seconds);
    phase.seconds = 0;
    phase.measured = false;
  }
  if (max_over_ranks) {
    std::vector<double> values;
    for (const std::string_view name : names) values.push_back(own.find(name).value_or(kNotMeasured));
    max_over_ranks(values);
    for (size_t i = 0; i < names.size(); ++i)
      if (values[i] != kNotMeasured) own.set(names[i], values[i]);
  }
  return own.with_prefix("timers/");
}

}  // namespace kedge
