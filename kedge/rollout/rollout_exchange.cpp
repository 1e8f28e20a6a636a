#include "kedge/rollout/rollout_exchange.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// Both directions through one list of members, so that what is read is what was written.
class Writer {
 public:
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void operator()(const T& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    (*this)(values.size());
    if constexpr (std::is_trivially_copyable_v<T>) {
      bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    } else {
      for (const T& value : values) (*this)(value);
    }
  }
  void operator()(const std::string& text) {
    (*this)(text.size());
    bytes_ += text;
  }
  void operator()(const std::pair<std::string, double>& part) {
    (*this)(part.first);
    (*this)(part.second);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void operator()(T& value) { take(&value, sizeof value); }
  template <typename T>
  void operator()(std::vector<T>& values) {
    values.resize(count());
    if constexpr (std::is_trivially_copyable_v<T>) {
      take(values.data(), values.size() * sizeof(T));
    } else {
      for (T& value : values) (*this)(value);
    }
  }
  void operator()(std::string& text) {
    text.resize(count());
    take(text.data(), text.size());
  }
  void operator()(std::pair<std::string, double>& part) {
    (*this)(part.first);
    (*this)(part.second);
  }
  [[nodiscard]] bool at_end() const { return bytes_.empty(); }

 private:
  size_t count() {
    size_t count = 0;
    take(&count, sizeof count);
    ensure(count <= bytes_.size(), "ranks that disagree on what they exchange");
    return count;
  }
  void take(void* to, size_t size) {
    ensure(size <= bytes_.size(), "ranks that disagree on what they exchange");
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }

  std::string_view bytes_;
};

void rollout_members(auto& rollout, auto&& member) {
  member(rollout.prompt_id);
  member(rollout.sample);
  member(rollout.ids);
  member(rollout.prompt_length);
  member(rollout.finished);
  member(rollout.logprobs);
  member(rollout.prompt);
  member(rollout.response);
}

void reward_members(auto& row, auto&& member) {
  member(row.reward.value);
  member(row.reward.error);
  member(row.reward.parts);
}

void logprob_members(auto& row, auto&& member) {
  member(row.logprobs);
  member(row.reference);
  member(row.entropy);
}

template <typename Members>
void exchange(const Group& group, std::span<const int64_t> own, RolloutRows& rows, Members members) {
  if (group.size() == 1) return;
  Writer writer;
  for (const int64_t place : own) {
    writer(place);
    members(rows[static_cast<size_t>(place)], writer);
  }
  const std::vector<std::string> all = group.all_gather(writer.bytes());
  for (const std::string& bytes : all)
    for (Reader reader(bytes); !reader.at_end();) {
      int64_t place = 0;
      reader(place);
      members(rows.at(static_cast<size_t>(place)), reader);
    }
}

bool comes_before(const RolloutRow& a, const RolloutRow& b) {
  return std::tie(a.slot, a.rollout->sample) < std::tie(b.slot, b.rollout->sample);
}

}  // namespace

RolloutRows exchange_rollouts(const Group& group, RolloutRows own) {
  if (group.size() > 1) {
    Writer writer;
    for (const RolloutRow& row : own) {
      writer(row.slot);
      rollout_members(*row.rollout, writer);
    }
    const std::vector<std::string> all = group.all_gather(writer.bytes());
    for (int rank = 0; rank < group.size(); ++rank) {
      if (rank == group.rank()) continue;
      for (Reader reader(all[static_cast<size_t>(rank)]); !reader.at_end();) {
        RolloutRow row;
        reader(row.slot);
        const auto rollout = std::make_shared<Rollout>();
        rollout_members(*rollout, reader);
        row.rollout = rollout;
        own.push_back(std::move(row));
      }
    }
  }
  std::sort(own.begin(), own.end(), comes_before);
  return own;
}

void check_all_answered(const RolloutRows& rows, int64_t num_slots, int64_t num_samples) {
  for (int64_t i = 0; i < num_slots * num_samples; ++i)
    if (i >= std::ssize(rows) || rows[static_cast<size_t>(i)].slot != i / num_samples)
      throw Error(str("prompt ", i / num_samples, " of ", num_slots, " in this step has fewer than ", num_samples,
                      " answers: no rank was given it by the work queue"));
  if (std::ssize(rows) != num_slots * num_samples)
    throw Error(str(rows.size(), " answers to ", num_slots, " prompts, ", num_samples, " each: two ranks answered the same one"));
}

void exchange_rewards(const Group& group, std::span<const int64_t> own, RolloutRows& rows) {
  exchange(group, own, rows, [](auto& row, auto&& member) { reward_members(row, member); });
}

void exchange_logprobs(const Group& group, std::span<const int64_t> own, RolloutRows& rows) {
  exchange(group, own, rows, [](auto& row, auto&& member) { logprob_members(row, member); });
}

void exchange_values(const Group& group, std::span<const int64_t> own, RolloutRows& rows) {
  exchange(group, own, rows, [](auto& row, auto&& member) { member(row.values); });
}

}  // namespace kedge
