#include "kedge/dist/heartbeats.h"

#include <algorithm>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {

using std::chrono::milliseconds;

Heartbeats::Heartbeats(std::vector<std::string> names, const HeartbeatLimits& limits) : limits_(limits) {
  for (std::string& name : names) ranks_.push_back({.name = std::move(name), .call = {}});
}

void Heartbeats::watch(int rank) {
  Rank& one = ranks_.at(static_cast<size_t>(rank));
  one.is_watched = true;
  one.silence = milliseconds(0);
}

void Heartbeats::forget(int rank) { ranks_.at(static_cast<size_t>(rank)).is_watched = false; }

void Heartbeats::heard(int rank, const WaitingCall& call) {
  Rank& one = ranks_.at(static_cast<size_t>(rank));
  one.silence = milliseconds(0);
  if (call.number != one.call.number) one.waited = milliseconds(0);
  one.call = call;
}

void Heartbeats::pass(milliseconds time) {
  time = std::min(time, 2 * limits_.period);
  for (Rank& one : ranks_) {
    one.silence += time;
    if (!one.call.name.empty()) one.waited += time;
  }
  until_warning_ = std::max(until_warning_ - time, milliseconds(0));
}

std::vector<int> Heartbeats::silent_ranks() const {
  std::vector<int> silent;
  for (size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank].is_watched && ranks_[rank].silence >= limits_.silence) silent.push_back(static_cast<int>(rank));
  return silent;
}

std::string Heartbeats::stall_warning() {
  const Rank* longest = nullptr;
  std::string missing;
  for (const Rank& one : ranks_) {
    if (!one.is_watched) continue;
    if (one.call.name.empty()) missing += str(missing.empty() ? "" : ", ", one.name);
    if (!one.call.name.empty() && (longest == nullptr || one.waited > longest->waited)) longest = &one;
  }
  if (missing.empty() || longest == nullptr || longest->waited < limits_.stall || until_warning_ > milliseconds(0)) return "";
  until_warning_ = limits_.stall_repeat;
  return str(longest->name, " has waited in ", longest->call.name, " for ",
             std::chrono::floor<std::chrono::seconds>(longest->waited).count(), " s; not there: ", missing);
}

}  // namespace kedge
