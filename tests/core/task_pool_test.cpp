#include "kedge/core/task_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>

namespace kedge {
namespace {

TEST(TaskPool, DoesEverythingWithSoManyThreadsAtMost) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> num_done = 0;
  {
    TaskPool pool(3);
    for (int i = 0; i < 500; ++i)
      pool.post([&] {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
        ++num_done;
      });
  }
  EXPECT_EQ(num_done, 500);
  EXPECT_LE(threads.size(), 3U);
}

TEST(TaskPool, TasksThatWaitForEachOtherRunTogether) {
  std::promise<void> first, second;  // before the pool, whose destructor waits for the tasks that use them
  TaskPool pool(2);
  pool.post([&] {
    first.set_value();
    second.get_future().wait();
  });
  first.get_future().wait();
  pool.post([&] { second.set_value(); });
}

}  // namespace
}  // namespace kedge
