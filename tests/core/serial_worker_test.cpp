#include "kedge/core/serial_worker.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace kedge {
namespace {

TEST(SerialWorker, DoesTasksInTheirOrderOnOneOtherThread) {
  std::vector<int> done;
  std::vector<std::thread::id> threads;
  {
    SerialWorker worker;
    for (int i = 0; i < 100; ++i)
      worker.post([&, i] {
        done.push_back(i);
        threads.push_back(std::this_thread::get_id());
      });
  }
  ASSERT_EQ(done.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
  for (const auto id : threads) EXPECT_EQ(id, threads[0]);
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(SerialWorker, ATaskThatThrowsCostsItselfAlone) {
  std::promise<void> next;
  SerialWorker worker;
  worker.post([] { throw std::runtime_error("no memory"); });
  worker.post([&] { next.set_value(); });
  next.get_future().get();
}

TEST(SerialWorker, ATaskMayPostAnother) {
  std::promise<void> second;
  SerialWorker worker;
  worker.post([&] { worker.post([&] { second.set_value(); }); });
  second.get_future().get();
}

}  // namespace
}  // namespace kedge
