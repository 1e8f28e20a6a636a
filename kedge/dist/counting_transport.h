#pragma once
// A transport that counts what is sent, over another one or, to plan a job that is not there, over none.
#include <memory>

#include "kedge/dist/transport.h"

namespace kedge {

class CountingTransport final : public Transport {
 public:
  explicit CountingTransport(std::shared_ptr<Transport> inner);
  // Rank `rank` of `size` that are not there: nothing is moved or written, and tensors may be on the meta device.
  CountingTransport(int rank, int size);

  // Of all calls since the last reset. A sum counts as what each rank must send at least: one part to every other.
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }
  void reset_traffic() { traffic_ = {}; }

  [[nodiscard]] std::string_view name() const override { return "counting"; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void exchange(std::span<const Tensor> to, std::span<const Tensor> from) override;
  void all_gather(const Tensor& mine, const Tensor& all) override;
  void fast_reduce_scatter(const Tensor& parts, const Tensor& own) override;
  void check() override;

 private:
  void count(int64_t bytes_sent);

  const std::shared_ptr<Transport> inner_;  // may be null
  const int rank_, size_;
  Traffic traffic_;
};

}  // namespace kedge
