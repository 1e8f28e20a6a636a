#include "kedge/net/call_queue.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/support/expect_error.h"
#include "tests/support/toy_models.h"

namespace kedge {
namespace {

using testing::count_by;
using testing::Counter;
using testing::doubling_model;
using testing::error_of;
using testing::numbers;

// A gate that holds whoever runs until it is opened.
class Gate {
 public:
  void pass() { opened_.wait(); }
  void open() { open_.set_value(); }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

// Models with their queue. What is sent answers by a future.
class Served {
 public:
  explicit Served(std::vector<ServedModel> models, const QueueOptions& options = {}) : models_(std::move(models)) {
    for (const ServedModel& model : models_) stats_.emplace_back(model.signature.name);
    queue_ = std::make_unique<CallQueue>(options, models_, stats_);
  }

  std::future<std::vector<int64_t>> send(size_t model, InferRequest request, int64_t rows = 1, std::function<bool()> is_gone = {}) {
    auto promise = std::make_shared<std::promise<std::vector<int64_t>>>();
    Call call{.model = model, .request = std::move(request), .rows = rows};
    call.done = [promise](const ServedResult& result) {
      const auto values = int64_values(result.outputs[0]);
      promise->set_value({values.begin(), values.end()});
    };
    call.failed = [promise](const std::exception_ptr& error) { promise->set_exception(error); };
    call.is_gone = std::move(is_gone);
    if (!queue_->add(std::move(call))) throw std::runtime_error("full");
    return promise->get_future();
  }
  void wait_for_size(int64_t size) {
    while (queue_->size() != size) std::this_thread::yield();
  }
  CallQueue& queue() { return *queue_; }
  ModelStats& stats(size_t model) { return stats_[model]; }

 private:
  std::vector<ServedModel> models_;
  std::deque<ModelStats> stats_;
  std::unique_ptr<CallQueue> queue_;
};

using Numbers = std::vector<int64_t>;

TEST(CallQueue, CallsThatWaitRunTogetherAndEachGetsItsOwnRows) {
  Gate gate;
  std::vector<int64_t> batches;
  Counter counter;
  Served served({doubling_model([&](int64_t rows) { batches.push_back(rows); }), counter.model([&] { gate.pass(); })});
  auto held = served.send(1, count_by(1));
  served.wait_for_size(0);  // it runs, and everything below waits
  auto a = served.send(0, numbers({1, 2}, 1));
  auto b = served.send(0, numbers({3, 4, 5, 6}, 2), 2);
  auto wider = served.send(0, numbers({7, 8, 9}, 1));
  auto c = served.send(0, numbers({10, 11}, 1));
  gate.open();
  EXPECT_EQ(held.get(), (Numbers{1}));
  EXPECT_EQ(a.get(), (Numbers{2, 4}));
  EXPECT_EQ(b.get(), (Numbers{6, 8, 10, 12}));
  EXPECT_EQ(wider.get(), (Numbers{14, 16, 18}));
  EXPECT_EQ(c.get(), (Numbers{20, 22}));
  EXPECT_EQ(batches, (Numbers{3, 1, 1}));  // rows of another width cannot be joined, and nothing goes past them
  EXPECT_EQ(served.stats(0).num_done, 4);
  EXPECT_EQ(served.stats(0).num_rows, 5);
  EXPECT_EQ(served.stats(0).num_batches, 3);
}

TEST(CallQueue, WithoutMergingEveryCallRunsAlone) {
  Gate gate;
  std::vector<int64_t> batches;
  Counter counter;
  Served served({doubling_model([&](int64_t rows) { batches.push_back(rows); }), counter.model([&] { gate.pass(); })}, {.merge = false});
  auto held = served.send(1, count_by(1));
  served.wait_for_size(0);
  auto a = served.send(0, numbers({1}));
  auto b = served.send(0, numbers({2}));
  gate.open();
  EXPECT_EQ(a.get(), (Numbers{2}));
  EXPECT_EQ(b.get(), (Numbers{4}));
  EXPECT_EQ(batches, (Numbers{1, 1}));
}

TEST(CallQueue, WhatIsSentAfterATrainingCallRunsAfterIt) {
  Gate gate;
  std::vector<int64_t> sums;
  Counter counter;
  Served served({doubling_model([&](int64_t) { sums.push_back(counter.sum()); }), counter.model([&] { gate.pass(); })});
  auto held = served.send(1, count_by(1));
  served.wait_for_size(0);
  auto before = served.send(0, numbers({1}));
  auto training = served.send(1, count_by(10));
  auto after = served.send(0, numbers({2}));
  gate.open();
  EXPECT_EQ(after.get(), (Numbers{4}));
  EXPECT_EQ(sums, (Numbers{1, 11}));
}

TEST(CallQueue, ACallThatMayNotRunYetLetsOthersPass) {
  Counter counter;
  ServedModel doubling = doubling_model();
  doubling.may_run = [&](const InferRequest& request) {
    const Json* wanted = request.parameters.find("wants");
    return wanted == nullptr || counter.sum() >= wanted->as_integer("wants");
  };
  Served served({doubling, counter.model()});
  InferRequest early = numbers({1});
  early.parameters.set("wants", 5);
  auto first = served.send(0, early);
  EXPECT_EQ(served.send(0, numbers({2})).get(), (Numbers{4}));
  EXPECT_EQ(first.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  EXPECT_EQ(served.send(1, count_by(5)).get(), (Numbers{5}));
  EXPECT_EQ(first.get(), (Numbers{2}));
}

TEST(CallQueue, ACallThatNeverMayRunIsRefused) {
  ServedModel doubling = doubling_model();
  doubling.may_run = [](const InferRequest& request) -> bool {
    if (request.parameters.find("hopeless") != nullptr) throw RequestError(409, "will not come");
    return true;
  };
  Served served({doubling});
  InferRequest hopeless = numbers({1});
  hopeless.parameters.set("hopeless", true);
  EXPECT_EQ(error_of<RequestError>([&] { (void)served.send(0, hopeless).get(); }), "will not come");
  EXPECT_EQ(served.send(0, numbers({2})).get(), (Numbers{4}));
  EXPECT_EQ(served.stats(0).num_refused, 1);
}

TEST(CallQueue, AFullQueueTakesNothing) {
  Gate gate;
  Counter counter;
  Served served({counter.model([&] { gate.pass(); })}, {.max_calls = 2});
  auto running = served.send(0, count_by(1));
  served.wait_for_size(0);
  auto a = served.send(0, count_by(1));
  auto b = served.send(0, count_by(1));
  EXPECT_EQ(error_of<std::runtime_error>([&] { (void)served.send(0, count_by(1)); }), "full");
  gate.open();
  EXPECT_EQ(b.get(), (Numbers{3}));
}

TEST(CallQueue, CallsThatWaitForTrainingDoNotKeepItOut) {
  Counter counter;
  ServedModel doubling = doubling_model();
  doubling.may_run = [&](const InferRequest&) { return counter.sum() > 0; };
  Served served({doubling, counter.model()}, {.max_calls = 1});
  auto waiting = served.send(0, numbers({1}));
  EXPECT_EQ(error_of<std::runtime_error>([&] { (void)served.send(0, numbers({2})); }), "full");
  EXPECT_EQ(served.send(1, count_by(1)).get(), (Numbers{1}));
  EXPECT_EQ(waiting.get(), (Numbers{2}));
}

TEST(CallQueue, WhoIsGoneIsNotServedUnlessItsCallChangesSomething) {
  Gate gate;
  std::atomic<int64_t> doubled = 0;
  Counter counter;
  Served served({doubling_model([&](int64_t) { ++doubled; }), counter.model([&] { gate.pass(); })});
  auto held = served.send(1, count_by(1));
  served.wait_for_size(0);
  const auto gone = [] { return true; };
  auto dropped = served.send(0, numbers({1}), 1, gone);
  auto kept = served.send(1, count_by(10), 1, gone);
  gate.open();
  EXPECT_EQ(kept.get(), (Numbers{11}));
  EXPECT_THROW(dropped.get(), std::future_error);  // nobody answered
  EXPECT_EQ(doubled, 0);
  EXPECT_EQ(served.stats(0).num_dropped, 1);
}

TEST(CallQueue, WhoGoesWhileItWaitsForAnothersCallIsDropped) {
  ServedModel patient = doubling_model();
  patient.may_run = [](const InferRequest&) { return false; };
  Served served({patient});
  std::atomic<bool> gone = false;
  auto dropped = served.send(0, numbers({1}), 1, [&] { return gone.load(); });
  EXPECT_EQ(served.queue().size(), 1);
  gone = true;
  served.wait_for_size(0);  // although no other call comes
  EXPECT_THROW(dropped.get(), std::future_error);
}

TEST(CallQueue, AQuestionThatFailsIsTheCallsErrorAndNotTheServersEnd) {
  ServedModel broken = doubling_model();
  broken.may_run = [](const InferRequest&) -> bool { throw std::runtime_error("no memory"); };
  Served served({broken, doubling_model()});
  auto bad = served.send(0, numbers({1}));
  EXPECT_EQ(error_of<std::runtime_error>([&] { (void)bad.get(); }), "no memory");
  EXPECT_EQ(served.send(1, numbers({1})).get(), std::vector<int64_t>{2});
}

TEST(CallQueue, AModelThatGivesTooFewRowsFailsItsCalls) {
  Gate gate;
  ServedModel stingy = doubling_model([&](int64_t) { gate.pass(); });
  stingy.run = [run = stingy.run](const std::vector<WireTensor>& inputs, const Json& parameters) {
    ServedResult result = run(inputs, parameters);
    if (inputs[0].shape[0] == 2) result.outputs = {int64_tensor("y", {1, 1}, std::vector<int64_t>{2})};
    return result;
  };
  Served served({stingy});
  auto first = served.send(0, numbers({1}));
  served.wait_for_size(0);
  auto second = served.send(0, numbers({2})), third = served.send(0, numbers({3}));
  gate.open();
  EXPECT_EQ(first.get(), std::vector<int64_t>{2});
  EXPECT_EQ(second.get(), std::vector<int64_t>{2});
  EXPECT_THROW((void)third.get(), std::exception);
  EXPECT_EQ(served.send(0, numbers({4})).get(), std::vector<int64_t>{8});
}

TEST(CallQueue, AnErrorIsAnswered) {
  Served served({doubling_model()});
  EXPECT_EQ(error_of<std::runtime_error>([&] { (void)served.send(0, numbers({666})).get(); }), "cannot double 666");
  EXPECT_EQ(served.send(0, numbers({1})).get(), (Numbers{2}));
  EXPECT_EQ(served.stats(0).num_failed, 1);
}

TEST(CallQueue, StoppingEndsWhatRunsAndTellsTheRest) {
  Gate gate;
  Counter counter;
  Served served({counter.model([&] { gate.pass(); })});
  auto running = served.send(0, count_by(1));
  served.wait_for_size(0);
  auto waiting = served.send(0, count_by(1));
  std::thread stopper([&] { served.queue().stop(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  gate.open();
  stopper.join();
  EXPECT_EQ(running.get(), (Numbers{1}));
  EXPECT_EQ(error_of<RequestError>([&] { (void)waiting.get(); }), "the server is shutting down");
  EXPECT_EQ(error_of<RequestError>([&] { (void)served.send(0, count_by(1)); }), "the server is shutting down");
}

TEST(CallQueue, OnlyWhoHasCompanyWaitsForMore) {
  // Preferred are four rows, and the oldest of fewer would wait two milliseconds for them. Who waits takes at least that long every time; a
  // busy machine holds up the others too, but not every time.
  std::vector<int64_t> batches;
  Gate gate;
  Counter counter;
  Served served({doubling_model([&](int64_t rows) { batches.push_back(rows); }, {4}, 2000), counter.model([&] { gate.pass(); })});
  int64_t num_at_once = 0;
  for (int64_t i = 0; i < 1000 && num_at_once < 20; ++i) {
    const int64_t before = served.stats(0).wait_ns;
    EXPECT_EQ(served.send(0, numbers({3})).get(), (Numbers{6}));
    if (served.stats(0).wait_ns - before < 2000000) ++num_at_once;
  }
  EXPECT_EQ(num_at_once, 20);
  auto held = served.send(1, count_by(1));
  served.wait_for_size(0);
  std::vector<std::future<Numbers>> four;
  for (int64_t i = 0; i < 4; ++i) four.push_back(served.send(0, numbers({i})));
  gate.open();
  for (auto& answer : four) (void)answer.get();
  EXPECT_EQ(batches.back(), 4);
}

TEST(CallQueue, ALongWaitThatWasAskedForIsWaitedOut) {
  std::vector<int64_t> batches;
  Served served({doubling_model([&](int64_t rows) { batches.push_back(rows); }, {2}, 60000000)});
  auto first = served.send(0, numbers({1}));
  EXPECT_EQ(first.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  auto second = served.send(0, numbers({2}));
  EXPECT_EQ(first.get(), (Numbers{2}));
  EXPECT_EQ(second.get(), (Numbers{4}));
  EXPECT_EQ(batches, (Numbers{2}));
}

}  // namespace
}  // namespace kedge
