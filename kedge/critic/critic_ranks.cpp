#include "kedge/critic/critic_ranks.h"

#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/critic/train_call.h"
#include "kedge/reward/rank_rows.h"
#include "kedge/train/checkpoint/model_state.h"
#include "kedge/train/checkpoint/state_parts.h"

namespace kedge {
namespace {

// For people, in errors.
constexpr const char *kStarting = "loading the critic's model", *kTrainingCall = "a training call", *kLoading = "loading a checkpoint",
                     *kSaving = "saving a checkpoint";

}  // namespace

void write_critic_part(const CriticModel& model, const Group& group, const Path& folder) {
  StateSnapshot state(false);
  const FolderWriter write_model = model.save(state);
  const bool has_part = state.has_tensors() || write_model;
  static_cast<void>(ranks_with_parts(group, has_part));
  if (has_part)
    write_part(parts_stage(folder, model.step()), group.rank(),
               [&](const Path& to) { write_part_of(group.rank(), state, write_model, to); });
}

void CriticRanks::give(Order order, std::string_view rest) const {
  if (group().size() > 1) orders_.give(str(static_cast<char>(order), rest));
}

void CriticRanks::start(const std::function<void()>& work) const {
  give(Order::start);
  orders_.carry_out(kStarting, work);
}

Tensor CriticRanks::compute_values(const CriticModel& own, std::span<const TokenIds> rows) const {
  return compute_shared(data_, rows, RowResult::of_token, [&](std::span<const TokenIds> some) {
    Tensor values;
    orders_.carry_out("computing values", [&] { values = own.values(some); });
    return values;
  });
}

Tensor CriticRanks::compute_rewards(CriticModel& own, std::span<const TokenIds> rows) const {
  return compute_shared(data_, rows, RowResult::of_row, [&](std::span<const TokenIds> some) {
    Tensor rewards;
    orders_.carry_out("computing rewards", [&] { rewards = own.rewards(some); });
    return rewards;
  });
}

Tensor CriticRanks::values(const CriticModel& own, std::span<const TokenIds> rows) const {
  give(Order::values, rows_to_bytes(rows));
  return compute_values(own, rows);
}

Tensor CriticRanks::rewards(CriticModel& own, std::span<const TokenIds> rows) const {
  give(Order::rewards, rows_to_bytes(rows));
  return compute_rewards(own, rows);
}

std::vector<Metrics> CriticRanks::train(CriticModel& own, const CriticBatch& batch) const {
  give(Order::train, to_bytes(TrainCall{.key = {}, .settings = {}, .start = {}, .batch = batch}));
  std::vector<Metrics> updates;
  orders_.carry_out(kTrainingCall, [&] { updates = own.train(batch); });
  return updates;
}

void CriticRanks::load(CriticModel& own, const Path& state) const {
  give(Order::load, state.string());
  orders_.carry_out(kLoading, [&] { own.load(StateFiles(state)); });
}

void CriticRanks::save(const std::function<void()>& work) const {
  give(Order::save);
  orders_.carry_out(kSaving, work);
}

void CriticRanks::stop() const { give(Order::stop); }

void CriticRanks::obey(const Received& received, const Start& start, std::unique_ptr<CriticModel>& model) const {
  switch (received.order) {
    case Order::start:
      return orders_.carry_out(kStarting, [&] {
        model.reset();  // its memory first
        model = start();
        static_cast<void>(start_print(model->model()));
      });
    case Order::values:
      return static_cast<void>(compute_values(*model, received.rows));
    case Order::rewards:
      return static_cast<void>(compute_rewards(*model, received.rows));
    case Order::train:
      return orders_.carry_out(kTrainingCall, [&] { static_cast<void>(model->train(received.batch)); });
    case Order::load:
      return orders_.carry_out(kLoading, [&] { model->load(StateFiles(received.state)); });
    default:
      return orders_.carry_out(kSaving, [&] { write_critic_part(*model, group(), folder_); });
  }
}

// Everything that only an error of ours could prevent happens here: rank 0 would wait for a part that is not carried out.
CriticRanks::Received CriticRanks::receive() const {
  const std::string bytes = orders_.next();
  const std::string_view rest = std::string_view(bytes).substr(1);
  Received received{.order = static_cast<Order>(bytes.at(0))};
  if (received.order == Order::values || received.order == Order::rewards) received.rows = read_rows(rest);
  if (received.order == Order::train) received.batch = read_train_call(rest).batch;
  if (received.order == Order::load) received.state = Path(rest);
  return received;
}

void CriticRanks::follow(const Start& start) const {
  std::unique_ptr<CriticModel> model;
  while (true) {
    const Received received = receive();
    if (received.order == Order::stop) return;
    ensure(model != nullptr || received.order == Order::start, "an order for a critic that has not started");
    try {
      obey(received, start, model);
    } catch (const std::exception& error) {
      log_debug("a call failed: ", error.what());  // rank 0 has it too, tells the caller, and restores the critic
    }
  }
}

}  // namespace kedge
