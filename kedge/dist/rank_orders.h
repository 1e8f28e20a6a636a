#pragma once
// How rank 0 of a server tells the others what to do next, and how all of them learn whether it worked. Independent of what orders mean.
#include <functional>
#include <string>
#include <utility>

#include "kedge/dist/group.h"

namespace kedge {

// A value, as Group is. Used by one thread at a time. If ranks cannot reach each other, or one of them fails where the others wait for it,
// the job ends with an error that names the rank: some ranks alone cannot continue.
class RankOrders {
 public:
  // All ranks of the job. One rank alone gives orders to nobody.
  explicit RankOrders(Group world) : world_(std::move(world)) {}

  [[nodiscard]] const Group& world() const { return world_; }

  // Rank 0: the others get it from next(), for which they wait almost without using the CPU.
  void give(std::string order) const;
  [[nodiscard]] std::string next() const;

  // Every rank, once for every order: does its own part, and waits until all have done theirs. If it fails on any of them it throws on all:
  // their own errors, and elsewhere an Error that names the rank. `what` is for people: "training".
  void carry_out(const std::string& what, const std::function<void()>& work) const;

 private:
  Group world_;
};

}  // namespace kedge
