#include "kedge/data/sets/packing.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "kedge/core/error.h"
#include "kedge/core/random.h"
#include "kedge/data/files/jsonl_writer.h"

namespace kedge {
namespace {

// The room left in each pack, in a tree of maxima, so that the first pack with enough room is found in a few steps.
class RoomTree {
 public:
  RoomTree(size_t num_packs, int64_t pack_size) : leaves_(std::bit_ceil(std::max<size_t>(num_packs, 1))), room_(2 * leaves_, pack_size) {}

  // The first pack with room for `length`, which it then takes.
  size_t place(int64_t length) {
    size_t node = 1;
    while (node < leaves_) node = 2 * node + (room_[2 * node] >= length ? 0 : 1);
    room_[node] -= length;
    const size_t pack = node - leaves_;
    for (node /= 2; node > 0; node /= 2) room_[node] = std::max(room_[2 * node], room_[2 * node + 1]);
    return pack;
  }

 private:
  size_t leaves_;
  std::vector<int64_t> room_;  // node n has children 2n and 2n + 1
};

int64_t read_integer(const Row& row, const Json& value, std::string_view what) {
  if (!value.is_integer()) row.fail_type(what, "an integer", value);
  return value.as_integer("");
}

const Json::Array& read_list(const Row& row, std::string_view key) {
  const Json& value = row.at(key);
  if (!value.is_array()) row.fail_type(str("\"", key, "\""), "a list of integers", value);
  return value.as_array("");
}

}  // namespace

std::vector<std::vector<int64_t>> assign_packs(std::span<const int64_t> lengths, const PackingConfig& config) {
  std::vector<int64_t> order;
  if (config.method == PackingMethod::first_fit_shuffle) {
    order = permutation(static_cast<int64_t>(lengths.size()), static_cast<uint64_t>(config.seed));
  } else {
    order.resize(lengths.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return lengths[static_cast<size_t>(a)] > lengths[static_cast<size_t>(b)]; });
  }
  std::vector<std::vector<int64_t>> packs;
  RoomTree room(lengths.size(), config.pack_size);
  for (const int64_t example : order) {
    const int64_t length = lengths[static_cast<size_t>(example)];
    check(length <= config.pack_size, "example ", example, " has ", length, " tokens and does not fit into a pack of ", config.pack_size);
    const size_t pack = room.place(length);
    if (pack == packs.size()) packs.emplace_back();
    packs[pack].push_back(example);
  }
  return packs;
}

PackedRow pack_rows(std::span<const MaskedTokens> rows) {
  PackedRow packed;
  for (const MaskedTokens& row : rows) {
    ensure(!row.ids.empty() && row.ids.size() == row.mask.size(), "a packed row of ", row.ids.size(), " tokens, ", row.mask.size(),
           " masks");
    packed.seq_start_id.push_back(static_cast<int64_t>(packed.input_ids.size()));
    packed.input_ids.insert(packed.input_ids.end(), row.ids.begin(), row.ids.end());
    packed.loss_mask.insert(packed.loss_mask.end(), row.mask.begin() + 1, row.mask.end());
    packed.loss_mask.push_back(row.mask.back());  // the last predicts nothing; never read
  }
  return packed;
}

Json to_json(const PackedRow& packed) {
  Json::Array ids, mask, starts;
  for (const TokenId id : packed.input_ids) ids.emplace_back(int64_t{id});
  for (const uint8_t bit : packed.loss_mask) mask.emplace_back(int64_t{bit});
  for (const int64_t start : packed.seq_start_id) starts.emplace_back(start);
  return Json::Object{{"input_ids", std::move(ids)}, {"loss_mask", std::move(mask)}, {"seq_start_id", std::move(starts)}};
}

PackedRow read_packed_row(const Row& row) {
  PackedRow packed;
  for (const Json& value : read_list(row, "input_ids")) {
    const int64_t id = read_integer(row, value, "\"input_ids\"");
    if (id < 0 || id > std::numeric_limits<TokenId>::max()) row.fail(RowFault::bad_value, str("\"input_ids\": no token has the id ", id));
    packed.input_ids.push_back(static_cast<TokenId>(id));
  }
  for (const Json& value : read_list(row, "loss_mask")) {
    const bool one = value.is_bool() ? value.as_bool("") : read_integer(row, value, "\"loss_mask\"") != 0;
    packed.loss_mask.push_back(one ? 1 : 0);
  }
  for (const Json& value : read_list(row, "seq_start_id")) packed.seq_start_id.push_back(read_integer(row, value, "\"seq_start_id\""));

  const auto& starts = packed.seq_start_id;
  if (packed.loss_mask.size() != packed.input_ids.size())
    row.fail(RowFault::bad_value, str("\"loss_mask\": ", packed.loss_mask.size(), " entries for ", packed.input_ids.size(), " ids"));
  const bool rising = std::adjacent_find(starts.begin(), starts.end(), std::greater_equal<>()) == starts.end();
  if (starts.empty() || starts.front() != 0 || !rising || starts.back() >= static_cast<int64_t>(packed.input_ids.size()))
    row.fail(RowFault::bad_value, "\"seq_start_id\": expected increasing positions in \"input_ids\" that start with 0");
  return packed;
}

PackingReport write_packs(int64_t num_rows, const std::function<MaskedTokens(int64_t)>& get, const PackingConfig& config,
                          const Path& path) {
  std::vector<int64_t> lengths(static_cast<size_t>(num_rows));
  for_each_example(num_rows, [&](int64_t row) { lengths[static_cast<size_t>(row)] = static_cast<int64_t>(get(row).ids.size()) - 1; });
  const auto packs = assign_packs(lengths, config);
  JsonlWriter writer(path);
  for (const std::vector<int64_t>& pack : packs) {
    std::vector<MaskedTokens> rows;
    for (const int64_t row : pack) rows.push_back(get(row));
    writer.append(to_json(pack_rows(rows)));
  }
  writer.commit();
  return {num_rows, static_cast<int64_t>(packs.size())};
}

PackInput collate_packed(const PackedRow& packed) {
  PackInput batch;
  batch.cumulative_lengths.push_back(0);
  const auto& ids = packed.input_ids;
  for (size_t i = 0; i < packed.seq_start_id.size(); ++i) {
    const int64_t begin = packed.seq_start_id[i];
    const int64_t end = i + 1 < packed.seq_start_id.size() ? packed.seq_start_id[i + 1] : static_cast<int64_t>(ids.size());
    if (end - begin < 2) continue;  // one token predicts nothing
    batch.tokens.insert(batch.tokens.end(), ids.begin() + begin, ids.begin() + end - 1);
    batch.labels.insert(batch.labels.end(), ids.begin() + begin + 1, ids.begin() + end);
    batch.loss_mask.insert(batch.loss_mask.end(), packed.loss_mask.begin() + begin, packed.loss_mask.begin() + end - 1);
    for (int64_t position = 0; position < end - begin - 1; ++position) batch.positions.push_back(position);
    batch.cumulative_lengths.push_back(static_cast<int64_t>(batch.tokens.size()));
  }
  return batch;
}

PackedDataset::PackedDataset(Rows rows, int64_t max_seq_length, int64_t max_sequence, int64_t vocab_size) : rows_(std::move(rows)) {
  for_each_example(size(), [&](int64_t number) {
    const Row row = rows_.row(number);
    const PackedRow packed = read_packed_row(row);
    for (const TokenId id : packed.input_ids)
      if (id >= vocab_size)
        row.fail(RowFault::bad_value, str("\"input_ids\": id ", id, " is outside the model's vocabulary of ", vocab_size));
    const auto fed = static_cast<int64_t>(packed.input_ids.size() - packed.seq_start_id.size());
    if (fed > max_seq_length) row.fail(RowFault::bad_value, str("a pack of ", fed, " tokens; max_seq_length is ", max_seq_length));
    for (size_t i = 0; i < packed.seq_start_id.size(); ++i) {
      const int64_t end = i + 1 < packed.seq_start_id.size() ? packed.seq_start_id[i + 1] : static_cast<int64_t>(packed.input_ids.size());
      const int64_t length = end - packed.seq_start_id[i] - 1;
      if (length > max_sequence)
        row.fail(RowFault::bad_value, str("a sequence of ", length, " tokens in a pack; the network takes ", max_sequence));
    }
  });
}

PackInput PackedDataset::get(int64_t index) const {
  ensure(index >= 0 && index < size(), rows_.name(), ": pack ", index, " of ", size());
  return collate_packed(read_packed_row(rows_.row(index)));
}

}  // namespace kedge
