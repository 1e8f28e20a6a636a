#include "kedge/dist/rank_orders.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/dist/mesh.h"
#include "kedge/dist/mpi.h"
#include "kedge/dist/watchdog.h"

namespace kedge {
namespace {

// For the other ranks to come to where one waits that has failed. They may be in a call that it will never make.
constexpr std::chrono::seconds kMeetLimit{20};

// Ends the job unless it is destroyed in time.
class Deadline {
 public:
  explicit Deadline(std::string message) : thread_([this, message = std::move(message)] { wait(message); }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  void wait(const std::string& message) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kMeetLimit, [this] { return is_over_; })) return;
    // Without MPI, which another thread is in. The others learn it from the watchdog.
    log_error(message);
    end_watchdog(kExitWorld, message);
    end_process(kExitWorld);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

// Ranks that cannot reach each other cannot continue.
template <typename Talk>
auto talk(const std::string& what, Talk&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    end_job(what.empty() ? error.what() : str(what, "; ", error.what()), kExitWorld);
  }
}

}  // namespace

void RankOrders::give(std::string order) const {
  if (world_.size() == 1) return;
  talk("", [&] {
    mpi::meet_asleep();
    world_.broadcast(order, 0);
  });
}

std::string RankOrders::next() const {
  return talk("", [&] {
    std::string order;
    mpi::meet_asleep();
    world_.broadcast(order, 0);
    return order;
  });
}

void RankOrders::carry_out(const std::string& what, const std::function<void()>& work) const {
  if (world_.size() == 1) return work();
  std::exception_ptr own;
  std::string problem;
  try {
    work();
  } catch (const std::exception& error) {
    own = std::current_exception();
    problem = str(what, " failed: ", error.what());
  }
  std::optional<Deadline> deadline;
  if (own) deadline.emplace(problem);
  const std::vector<std::string> problems = talk(problem, [&] { return world_.all_gather(problem); });
  deadline.reset();
  if (own) std::rethrow_exception(own);
  for (size_t rank = 0; rank < problems.size(); ++rank)
    if (!problems[rank].empty()) throw Error(str("rank ", rank, ": ", problems[rank]));
}

}  // namespace kedge
