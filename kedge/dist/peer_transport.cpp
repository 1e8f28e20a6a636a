#include "kedge/dist/peer_transport.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include <c10/core/DeviceGuard.h>

#include "kedge/core/cuda_device.h"
#include "kedge/core/cuda_error.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/dist/peer_memory.h"
#include "kedge/dist/rank_places.h"

namespace kedge {
namespace {

constexpr int64_t kAlignment = 256;  // of a part in the staging memory: copies are fastest from there

int64_t rounded_up(int64_t number, int64_t unit) { return (number + unit - 1) / unit * unit; }

int64_t size_in_bytes(const Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

// The bytes of a tensor that pass in one round, of `length` at most.
std::span<std::byte> piece_of(const Tensor& tensor, int64_t round, int64_t length) {
  const int64_t start = std::min(round * length, size_in_bytes(tensor));
  return {static_cast<std::byte*>(tensor.data_ptr()) + start, static_cast<size_t>(std::min(length, size_in_bytes(tensor) - start))};
}

int64_t num_rounds(const Tensor& tensor, int64_t length) { return rounded_up(size_in_bytes(tensor), length) / length; }

// A call takes as many rounds as its longest part needs. In a round every rank copies pieces into one half of its staging memory, all meet,
// and every rank copies what is meant for it out of the others' halves. The next round uses the other halves: when a half is filled again
// all have met once more, and a rank arrives there with its copies done.
class PeerTransport final : public Transport {
 public:
  PeerTransport(const Group& group, at::Device device, int64_t staging_bytes)
      : group_(group), device_(device), half_bytes_(staging_bytes / 2 / kAlignment * kAlignment), staging_(group, device, staging_bytes) {}

  [[nodiscard]] std::string_view name() const override { return "peer"; }
  [[nodiscard]] int rank() const override { return group_.rank(); }
  [[nodiscard]] int size() const override { return group_.size(); }

  void exchange(std::span<const Tensor> to, std::span<const Tensor> from) override {
    const auto self = static_cast<size_t>(rank());
    ensure(to.size() == static_cast<size_t>(size()) && from.size() == to.size() && to[self].numel() == from[self].numel(),
           "exchange needs one part per rank");
    const c10::DeviceGuard guard(device_);
    check_devices(to);
    check_devices(from);
    copy_own(to[self], from[self]);
    if (size() == 1) return synchronize();
    const int64_t slot = half_bytes_ / (size() - 1) / kAlignment * kAlignment;
    int64_t rounds = 1;
    for_others([&](int other) { rounds = std::max(rounds, num_rounds(to[static_cast<size_t>(other)], slot)); });
    for (int64_t round = 0; round < rounds; ++round) {
      for_others([&](int other) {
        const std::span<std::byte> piece = piece_of(to[static_cast<size_t>(other)], round, slot);
        copy(half_of(rank()) + slot_of(other, rank()) * slot, piece.data(), piece.size());
      });
      synchronize();
      // Only the two ranks of a part know how long it is, and all must meet equally often.
      if (round == 0) {
        rounds = most_of_all(rounds);
      } else {
        group_.barrier();
      }
      for_others([&](int other) {
        const std::span<std::byte> piece = piece_of(from[static_cast<size_t>(other)], round, slot);
        copy(piece.data(), half_of(other) + slot_of(rank(), other) * slot, piece.size());
      });
      half_ = 1 - half_;
    }
    synchronize();
  }

  // As an exchange, but what goes to all is staged once.
  void all_gather(const Tensor& mine, const Tensor& all) override {
    ensure(all.numel() == mine.numel() * size(), "all_gather of ", mine.numel(), " elements into ", all.numel());
    if (mine.numel() == 0) return;
    check_devices(std::array{mine, all});
    const c10::DeviceGuard guard(device_);
    const std::vector<Tensor> parts = all.chunk(size());
    copy_own(mine, parts[static_cast<size_t>(rank())]);
    const int64_t rounds = size() == 1 ? 0 : num_rounds(mine, half_bytes_);
    for (int64_t round = 0; round < rounds; ++round) {
      const std::span<std::byte> sent = piece_of(mine, round, half_bytes_);
      copy(half_of(rank()), sent.data(), sent.size());
      synchronize();
      group_.barrier();
      for_others([&](int other) {
        const std::span<std::byte> piece = piece_of(parts[static_cast<size_t>(other)], round, half_bytes_);
        copy(piece.data(), half_of(other), piece.size());
      });
      half_ = 1 - half_;
    }
    synchronize();
  }

 private:
  // Every rank starts with its neighbour, so that no rank's memory is everybody's first.
  template <typename Visit>
  void for_others(Visit&& visit) const {
    for (int step = 1; step < size(); ++step) visit((rank() + step) % size());
  }

  void check_devices(std::span<const Tensor> tensors) const {
    for (const Tensor& tensor : tensors)
      ensure(tensor.device() == device_, "the ranks share the memory of ", name_of(device_), ", found a tensor on ",
             name_of(tensor.device()));
  }

  // Where in the half of `from` its part for `to` is.
  static int64_t slot_of(int to, int from) { return to < from ? to : to - 1; }
  [[nodiscard]] std::byte* half_of(int rank) const { return staging_[rank] + half_ * half_bytes_; }

  [[nodiscard]] cudaStream_t stream() const { return static_cast<cudaStream_t>(current_cuda_stream(device_.index())); }
  void copy(void* to, const void* from, size_t bytes) const {
    if (bytes > 0) must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream()), "cudaMemcpyAsync");
  }
  void copy_own(const Tensor& from, const Tensor& to) const {
    if (to.const_data_ptr() != from.const_data_ptr()) copy(to.data_ptr(), from.const_data_ptr(), from.nbytes());
  }
  void synchronize() const { must(cudaStreamSynchronize(stream()), "cudaStreamSynchronize"); }

  [[nodiscard]] int64_t most_of_all(int64_t number) const {
    for (const std::string& text : group_.all_gather(std::to_string(number))) number = std::max<int64_t>(number, std::stoll(text));
    return number;
  }

  const Group group_;
  const at::Device device_;
  const int64_t half_bytes_;
  const PeerMemory staging_;
  int64_t half_ = 0;
};

}  // namespace

std::shared_ptr<Transport> make_peer_transport(const Group& group, at::Device device, int64_t staging_bytes) {
  check(device.is_cuda(), "ranks read each other's memory on GPUs only, found the device ", name_of(device));
  ensure(staging_bytes >= 2 * kAlignment * group.size(), "staging memory of ", staging_bytes, " bytes for ", group.size(), " ranks");
  check(on_one_machine(gather_places(group, "")), "ranks read each other's GPU memory on one machine only; these are on several");
  return std::make_shared<PeerTransport>(group, device, staging_bytes);
}

}  // namespace kedge
