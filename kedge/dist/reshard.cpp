#include "kedge/dist/reshard.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include <c10/core/DeviceGuard.h>

#include "kedge/core/error.h"
#include "kedge/dist/transport.h"

namespace kedge {
namespace {

bool is_empty(const Share& share) { return share.begin >= share.end; }

Share common(const Share& a, const Share& b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

// What is left of a rectangle without another one inside it: above and below it, and to its sides.
void add_rest(const WeightBlock& whole, const WeightBlock& taken, std::vector<WeightBlock>& rest) {
  const auto add = [&](Share rows, Share columns) {
    if (!is_empty(rows) && !is_empty(columns)) rest.push_back({whole.parameter, rows, columns});
  };
  add({whole.rows.begin, taken.rows.begin}, whole.columns);
  add(taken.rows, {whole.columns.begin, taken.columns.begin});
  add(taken.rows, {taken.columns.end, whole.columns.end});
  add({taken.rows.end, whole.rows.end}, whole.columns);
}

// Itself, then its neighbours on both sides: those of its machine come before others.
std::vector<int> nearest_ranks(int rank, int num_ranks) {
  std::vector<int> order(static_cast<size_t>(num_ranks));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return std::abs(a - rank) < std::abs(b - rank); });
  return order;
}

using BlocksByParameter = std::map<int64_t, std::vector<WeightBlock>>;

std::vector<BlocksByParameter> by_parameter(const BlocksOfRanks& blocks) {
  std::vector<BlocksByParameter> sorted(blocks.size());
  for (size_t rank = 0; rank < blocks.size(); ++rank)
    for (const WeightBlock& block : blocks[rank]) sorted[rank][block.parameter].push_back(block);
  return sorted;
}

// Takes what a rank has out of what is wanted.
void take_from(const std::vector<WeightBlock>& had, int from, int to, std::vector<WeightBlock>& wanted, std::vector<WeightMove>& moves) {
  for (const WeightBlock& has : had) {
    std::vector<WeightBlock> rest;
    for (const WeightBlock& want : wanted) {
      const WeightBlock both{want.parameter, common(want.rows, has.rows), common(want.columns, has.columns)};
      if (is_empty(both.rows) || is_empty(both.columns)) {
        rest.push_back(want);
        continue;
      }
      moves.push_back({from, to, both});
      add_rest(want, both, rest);
    }
    wanted = std::move(rest);
    if (wanted.empty()) return;
  }
}

auto order_of(const WeightMove& move) {
  return std::tuple(move.block.parameter, move.to, move.from, move.block.rows.begin, move.block.columns.begin);
}

std::string bytes_of(const std::vector<WeightBlock>& blocks) {
  return {reinterpret_cast<const char*>(blocks.data()), blocks.size() * sizeof(WeightBlock)};
}

BlocksOfRanks gather(const Group& ranks, const std::vector<WeightBlock>& own) {
  static_assert(std::is_trivially_copyable_v<WeightBlock>);
  BlocksOfRanks all;
  for (const std::string& bytes : ranks.all_gather(bytes_of(own))) {
    all.emplace_back(bytes.size() / sizeof(WeightBlock));
    std::memcpy(all.back().data(), bytes.data(), bytes.size());
  }
  return all;
}

}  // namespace

bool WeightBlock::contains(const WeightBlock& other) const {
  return parameter == other.parameter && rows.begin <= other.rows.begin && other.rows.end <= rows.end &&
         columns.begin <= other.columns.begin && other.columns.end <= columns.end;
}

std::vector<WeightMove> plan_reshard(const BlocksOfRanks& have, const BlocksOfRanks& want) {
  ensure(have.size() == want.size(), "weights of ", have.size(), " ranks for ", want.size());
  const auto num_ranks = static_cast<int>(have.size());
  const std::vector<BlocksByParameter> had = by_parameter(have);
  std::vector<WeightMove> moves;
  for (int to = 0; to < num_ranks; ++to) {
    const std::vector<int> sources = nearest_ranks(to, num_ranks);
    for (const WeightBlock& block : want[static_cast<size_t>(to)]) {
      std::vector<WeightBlock> missing = {block};
      for (const int from : sources) {
        const auto& blocks = had[static_cast<size_t>(from)];
        if (const auto found = blocks.find(block.parameter); found != blocks.end()) take_from(found->second, from, to, missing, moves);
        if (missing.empty()) break;
      }
      ensure(missing.empty(), "no rank has all of parameter ", block.parameter, " that rank ", to, " wants");
    }
  }
  std::stable_sort(moves.begin(), moves.end(), [](const WeightMove& a, const WeightMove& b) { return order_of(a) < order_of(b); });
  return moves;
}

std::vector<std::vector<WeightMove>> reshard_rounds(const std::vector<WeightMove>& moves, int num_ranks, int64_t most) {
  std::vector<std::vector<WeightMove>> rounds(1);
  std::vector<int64_t> sent(static_cast<size_t>(num_ranks)), received(static_cast<size_t>(num_ranks));
  for (WeightMove move : moves) {
    if (move.from == move.to) {
      rounds.back().push_back(move);
      continue;
    }
    const int64_t width = move.block.columns.end - move.block.columns.begin, end = move.block.rows.end;
    while (move.block.rows.begin < end) {
      int64_t &out = sent[static_cast<size_t>(move.from)], &in = received[static_cast<size_t>(move.to)];
      const int64_t room = (most - std::max(out, in)) / width;
      if (room <= 0 && std::max(out, in) > 0) {
        rounds.emplace_back();
        std::fill(sent.begin(), sent.end(), 0);
        std::fill(received.begin(), received.end(), 0);
        continue;
      }
      move.block.rows.end = std::min(end, move.block.rows.begin + std::max<int64_t>(room, 1));
      rounds.back().push_back(move);
      out += move.block.size();
      in += move.block.size();
      move.block.rows.begin = move.block.rows.end;
    }
  }
  return rounds;
}

ReshardTraffic reshard_traffic(const std::vector<WeightMove>& moves, int rank) {
  ReshardTraffic traffic;
  for (const WeightMove& move : moves) {
    const bool sends = move.from == rank, receives = move.to == rank;
    if (sends && receives) traffic.copied += move.block.size();
    if (sends && !receives) traffic.sent += move.block.size();
    if (receives && !sends) traffic.received += move.block.size();
  }
  return traffic;
}

Reshard::Reshard(Group ranks, const std::vector<WeightBlock>& have, const std::vector<WeightBlock>& want) : ranks_(std::move(ranks)) {
  const std::vector<WeightMove> moves = plan_reshard(gather(ranks_, have), gather(ranks_, want));
  traffic_ = reshard_traffic(moves, ranks_.rank());
  // Ranks that have no part in a round still make its call.
  for (const std::vector<WeightMove>& round : reshard_rounds(moves, ranks_.size(), kRoundElements)) {
    rounds_.emplace_back();
    for (const WeightMove& move : round)
      if (move.from == ranks_.rank() || move.to == ranks_.rank()) rounds_.back().push_back(move);
  }
}

void Reshard::run(const View& have, const View& want, const at::TensorOptions& options) const {
  const c10::OptionalDeviceGuard guard(options.device());
  const int own = ranks_.rank();
  for (const std::vector<WeightMove>& round : rounds_) {
    std::vector<int64_t> sent(static_cast<size_t>(ranks_.size())), received(static_cast<size_t>(ranks_.size()));
    for (const WeightMove& move : round) {
      if (move.from == own && move.to == own) {
        want(move.block).copy_(have(move.block));
      } else if (move.from == own) {
        sent[static_cast<size_t>(move.to)] += move.block.size();
      } else {
        received[static_cast<size_t>(move.from)] += move.block.size();
      }
    }
    if (ranks_.size() == 1) continue;
    const auto rows_of = [&](const std::vector<int64_t>& sizes) {
      std::vector<Tensor> rows;
      for (const int64_t size : sizes) rows.push_back(at::empty({size}, options));
      return rows;
    };
    const std::vector<Tensor> out = rows_of(sent), in = rows_of(received);
    // Moves have one order on all ranks, so that both ends find a block at the same place.
    const auto place = [](const std::vector<Tensor>& rows, int rank, std::vector<int64_t>& done, const WeightBlock& block) {
      int64_t& begin = done[static_cast<size_t>(rank)];
      const Tensor row = rows[static_cast<size_t>(rank)].narrow(0, begin, block.size());
      begin += block.size();
      return row.view({block.rows.end - block.rows.begin, block.columns.end - block.columns.begin});
    };
    std::vector<int64_t> done(sent.size());
    for (const WeightMove& move : round)
      if (move.from == own && move.to != own) place(out, move.to, done, move.block).copy_(have(move.block));
    ranks_.transport(options.device().is_cuda()).exchange(out, in);
    std::fill(done.begin(), done.end(), 0);
    for (const WeightMove& move : round)
      if (move.to == own && move.from != own) want(move.block).copy_(place(in, move.from, done, move.block));
  }
}

}  // namespace kedge
