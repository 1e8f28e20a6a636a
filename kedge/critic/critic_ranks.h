#pragma once
// A served critic whose network several ranks hold together. Only rank 0 has a Critic, with its folder, journal and callers; it tells the
// others what to do with their parts of the network, after the journal has it. Independent of requests and of exactly-once.
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/critic/critic_model.h"
#include "kedge/dist/rank_orders.h"

namespace kedge {

// Not thread-safe. The calls of rank 0 change all parts, or fail on all ranks; a rank that fails alone ends the job (RankOrders).
class CriticRanks {
 public:
  // All ranks of the job, and those with different rows, where others compute the same ones with them. `folder` is the critic's, in which
  // all write their parts of a save.
  CriticRanks(const Group& world, Group data, Path folder) : orders_(world), data_(std::move(data)), folder_(std::move(folder)) {}

  [[nodiscard]] const Group& group() const { return orders_.world(); }

  // Rank 0, with its own part of the network; `work` is what it does with it while the others do the same.
  void start(const std::function<void()>& work) const;
  [[nodiscard]] Tensor values(const CriticModel& own, std::span<const TokenIds> rows) const;
  [[nodiscard]] Tensor rewards(CriticModel& own, std::span<const TokenIds> rows) const;
  [[nodiscard]] std::vector<Metrics> train(CriticModel& own, const CriticBatch& batch) const;
  void load(CriticModel& own, const Path& state) const;
  void save(const std::function<void()>& work) const;
  void stop() const;  // the others return from follow()

  // The others: does what rank 0 says until it stops. `start` gives this rank's part of the initial network.
  using Start = std::function<std::unique_ptr<CriticModel>()>;
  void follow(const Start& start) const;

 private:
  enum class Order : char { start, values, rewards, train, load, save, stop };
  void give(Order order, std::string_view rest = {}) const;
  struct Received {
    Order order = Order::stop;
    std::vector<TokenIds> rows = {};
    CriticBatch batch = {};
    Path state = {};
  };
  [[nodiscard]] Received receive() const;
  void obey(const Received& received, const Start& start, std::unique_ptr<CriticModel>& model) const;
  [[nodiscard]] Tensor compute_values(const CriticModel& own, std::span<const TokenIds> rows) const;
  [[nodiscard]] Tensor compute_rewards(CriticModel& own, std::span<const TokenIds> rows) const;

  RankOrders orders_;
  Group data_;
  Path folder_;
};

// A rank's part of a save, where rank 0 waits for it (state_parts.h). Collective.
void write_critic_part(const CriticModel& model, const Group& group, const Path& folder);

}  // namespace kedge
