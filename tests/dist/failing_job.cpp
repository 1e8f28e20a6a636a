// A program as job_test.cpp wants it: all ranks meet, then rank 1 fails in the way the argument names while the others wait
// for it, or all of them fail ("all"). Its main has the one catch that kedge's own has.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "kedge/core/tensor.h"
#include "kedge/dist/mesh.h"

namespace kedge {
namespace {

void fail(std::string_view how) {
  if (how == "throw") throw Error("no room left on the disk");
  if (how == "refuse") throw UsageError("train.jsonl:3: no \"prompt\" field");
  if (how == "kill") std::raise(SIGKILL);
  if (how == "exit") std::_Exit(3);
  if (how == "all") throw UsageError("trainer.max_step: unknown key");
  // "leave": back to main, as if the work were done
}

void run(std::string_view how) {
  const Mesh mesh = Mesh::from_environment({.device = "cpu"});
  const Tensor tensor = at::ones({3});
  mesh.world.all_reduce(tensor, Reduce::sum);
  if (mesh.world.rank() == 1) std::cout << "an unfinished line";
  if (how == "all" || (how != "work" && mesh.world.rank() == 1)) return fail(how);
  mesh.world.all_reduce(tensor, Reduce::sum);
  mesh.world.barrier();
}

}  // namespace
}  // namespace kedge

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);  // std::cout keeps a buffer of its own, as in a program that prints much
  try {
    kedge::run(argc > 1 ? argv[1] : "work");
    return kedge::kExitOk;
  } catch (const kedge::UsageError& error) {
    kedge::end_job(error.what(), kedge::kExitUsage);
  } catch (const std::exception& error) {
    kedge::end_job(error.what(), kedge::kExitWorld);
  }
}
