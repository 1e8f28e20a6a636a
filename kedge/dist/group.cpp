// Everything of Group but tensors, which are in group_tensors.cpp.
#include "kedge/dist/group.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/dist/collective_signature.h"
#include "kedge/dist/mpi.h"
#include "kedge/dist/watchdog.h"

namespace kedge {
namespace {

mpi::Bytes bytes_of(std::string& text) { return std::as_writable_bytes(std::span(text)); }
mpi::ConstBytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

CollectiveCall call_for_text(std::string_view name, std::string_view text) {
  return make_call(name, "bytes", std::array{static_cast<int64_t>(text.size())});
}

std::vector<CollectiveCall> all_calls(const mpi::World& world, const CollectiveCall& mine) {
  std::vector<CollectiveCall> calls(static_cast<size_t>(world.size()));
  const WaitingScope waiting(mine.name_text());
  world.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(calls)));
  return calls;
}

// Leaving is a call like the others: when some rank still waits in another call, the job ends with an error, not a hang.
// MPI itself may only end where all ranks do, because launchers crash when a job is aborted around a rank that waits in
// MPI_Finalize (seen with Open MPI 4.1.4); so not while an exception is on its way to main either, where abort_job follows.
void leave(const mpi::World* world) noexcept {
  if (std::uncaught_exceptions() > 0) return;
  try {
    check_agreement(all_calls(*world, make_call("the end of the job")), Freedom::none);
    delete world;
    end_watchdog(kExitOk);
  } catch (const Error& error) {
    log_error(error.what());
    end_watchdog(kExitWorld, error.what());
    mpi::abort_job(kExitWorld);
  }
}

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

}  // namespace

Group Group::single() { return {}; }

Group Group::imagined(int size) {
  Group group;
  group.size_ = size;
  return group;
}

Group Group::over_mpi() {
  Group group;
  group.world_ = std::shared_ptr<const mpi::World>(new mpi::World, leave);
  group.rank_ = group.world_->rank();
  group.size_ = group.world_->size();
  return group;
}

Group Group::split(int colour) const {
  if (world_ == nullptr) return *this;
  agree(make_call("split"), Freedom::none);
  // The parts end with the whole, whose end the ranks agree on.
  auto part =
      std::shared_ptr<const mpi::World>(world_->split(colour, rank_).release(), [world = world_](const mpi::World* one) { delete one; });
  Group group;
  group.rank_ = part->rank();
  group.size_ = part->size();
  if (group.size_ > 1) group.world_ = std::move(part);
  return group;
}

std::vector<CollectiveCall> Group::agree(const CollectiveCall& mine, Freedom freedom) const {
  std::vector<CollectiveCall> calls = all_calls(*world_, mine);
  check_agreement(calls, freedom);
  return calls;
}

void Group::check_root(int root) const { ensure(root >= 0 && root < size_, "broadcast from rank ", root, " in a group of ", size_); }

void Group::barrier() const {
  if (world_ == nullptr) return;
  agree(make_call("barrier"), Freedom::none);  // needs every rank's word, so nobody leaves early
}

void Group::broadcast(std::string& text, int root) const {
  check_root(root);
  if (world_ == nullptr) return;
  const std::vector<CollectiveCall> calls = agree(call_for_text(str("broadcast from rank ", root), text), Freedom::all);
  if (rank_ != root) text.resize(static_cast<size_t>(calls[static_cast<size_t>(root)].dims[0]));
  world_->broadcast(bytes_of(text), root);
}

std::vector<std::string> Group::all_gather(std::string_view text) const {
  if (world_ == nullptr) return std::vector(static_cast<size_t>(size_), std::string(text));
  const std::vector<CollectiveCall> calls = agree(call_for_text("all_gather", text), Freedom::all);
  std::vector<std::string> texts;
  texts.reserve(calls.size());
  std::vector<mpi::Bytes> from;
  for (const CollectiveCall& call : calls) from.push_back(bytes_of(texts.emplace_back(static_cast<size_t>(call.dims[0]), '\0')));
  const std::vector<mpi::ConstBytes> to(calls.size(), bytes_of(text));
  world_->exchange(to, from);
  return texts;
}

void Group::all_reduce(std::span<double> values, Reduce reduce) const {
  if (world_ == nullptr) return;
  const std::string_view name = reduce == Reduce::sum ? "all_reduce sum" : "all_reduce max";
  agree(make_call(name, "doubles", std::array{static_cast<int64_t>(values.size())}), Freedom::none);
  std::vector<double> all(values.size() * static_cast<size_t>(size_));
  world_->all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(all)));
  for (size_t i = 0; i < values.size(); ++i) {
    double total = all[i];
    for (size_t at = i + values.size(); at < all.size(); at += values.size())
      total = reduce == Reduce::sum ? total + all[at] : larger(total, all[at]);
    values[i] = total;
  }
}

}  // namespace kedge
