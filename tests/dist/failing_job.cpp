// A program as job_test.cpp wants it: all ranks meet, then rank 1, or the one of the second argument, fails in the way the first argument
// names while the others wait for it, or all of them fail ("all"). Its main has the one catch that kedge's own has.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/stop.h"
#include "kedge/core/tensor.h"
#include "kedge/dist/mesh.h"
#include "kedge/dist/rank_orders.h"
#include "kedge/dist/transport.h"

namespace kedge {
namespace {

void fail(std::string_view how) {
  if (how == "throw") throw Error("no room left on the disk");
  if (how == "refuse") throw UsageError("train.jsonl:3: no \"prompt\" field");
  if (how == "kill") std::raise(SIGKILL);
  if (how == "stop") ::kill(::getpid(), SIGSTOP);  // the process; raise stops one thread first
  if (how == "exit") std::_Exit(3);
  if (how == "all") throw UsageError("trainer.max_step: unknown key");
  // "leave": back to main, as if the work were done
}

// All ranks are stopped for longer than any of them may be silent, as by a batch system.
void suspend_all(const Group& world) {
  std::string ids;
  for (const std::string& id : world.all_gather(std::to_string(::getpid()))) ids += " " + id;
  if (world.rank() == 1) {
    const std::string command = "(sleep 1; kill -STOP" + ids + "; sleep 6; kill -CONT" + ids + ") &";
    ensure(std::system(command.c_str()) == 0, "cannot run ", command);
  }
  for (int i = 0; i < 50; ++i) ::usleep(100000);
}

// A part of an order fails on one rank, while the others wait for it in a call that it does not make: one whose ranks compare what they
// call ("order"), or a transport's, which do not ("exchange").
void fail_in_order(const Group& world, std::string_view how, int who) {
  RankOrders(world).carry_out("training", [&] {
    if (world.rank() == who) throw Error("no memory left");
    if (how == "order") return world.all_reduce(at::ones({3}), Reduce::sum);
    const std::vector<Tensor> parts(static_cast<size_t>(world.size()), at::ones({3}));
    world.transport(false).exchange(parts, std::vector<Tensor>{at::ones({3}), at::ones({3}), at::ones({3})});
  });
}

void run(std::string_view how, int who) {
  const StopSignals signals;  // as in kedge's trainers: the launcher's SIGTERM leaves a rank time to say why it ends
  const Mesh mesh = Mesh::from_environment({.device = "cpu"});
  const Tensor tensor = at::ones({3});
  mesh.world.all_reduce(tensor, Reduce::sum);
  if (mesh.world.rank() == 1) std::cout << "an unfinished line";
  if (how == "suspend") suspend_all(mesh.world);
  if (how == "order" || how == "exchange") fail_in_order(mesh.world, how, who);
  if (how == "all" || (how != "work" && how != "suspend" && mesh.world.rank() == who)) return fail(how);
  mesh.world.all_reduce(tensor, Reduce::sum);
  mesh.world.barrier();
}

}  // namespace
}  // namespace kedge

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);  // std::cout keeps a buffer of its own, as in a program that prints much
  try {
    kedge::run(argc > 1 ? argv[1] : "work", argc > 2 ? std::atoi(argv[2]) : 1);
    return kedge::kExitOk;
  } catch (const kedge::UsageError& error) {
    kedge::end_job(error.what(), kedge::kExitUsage);
  } catch (const std::exception& error) {
    kedge::end_job(error.what(), kedge::kExitWorld);
  }
}
