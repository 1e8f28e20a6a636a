#include "kedge/dist/nccl_transport.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>

#include <c10/core/DeviceGuard.h>

#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/dist/nccl.h"

namespace kedge {
namespace {

constexpr const char* kHostId = "NCCL_HOSTID";

// How NCCL adds elements of a type, if it can.
std::optional<nccl::DataType> summable_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return nccl::DataType::float32;
    case at::kBFloat16:
      return nccl::DataType::bfloat16;
    case at::kHalf:
      return nccl::DataType::float16;
    case at::kDouble:
      return nccl::DataType::float64;
    case at::kLong:
      return nccl::DataType::int64;
    case at::kInt:
      return nccl::DataType::int32;
    case at::kChar:
      return nccl::DataType::int8;
    case at::kByte:
      return nccl::DataType::uint8;
    default:
      return std::nullopt;
  }
}

// Rank 0's id, which NCCL's own meeting begins with.
nccl::UniqueId shared_id(const nccl::Functions& functions, const Group& group) {
  nccl::UniqueId id{};
  if (group.rank() == 0) nccl::check_status(functions, functions.unique_id(&id), "ncclGetUniqueId");
  std::string text(id.bytes.begin(), id.bytes.end());
  group.broadcast(text, 0);
  ensure(text.size() == id.bytes.size(), "an NCCL id of ", text.size(), " bytes");
  std::ranges::copy(text, id.bytes.begin());
  return id;
}

class NcclTransport final : public Transport {
 public:
  [[nodiscard]] bool is_recordable() const override { return true; }

  NcclTransport(const nccl::Functions& functions, const Group& group, at::Device device)
      : nccl_(functions), device_(device), rank_(group.rank()), size_(group.size()) {
    const nccl::UniqueId id = shared_id(nccl_, group);
    const c10::DeviceGuard guard(device_);
    nccl::check_status(nccl_, nccl_.init_rank(&communicator_, size_, id, rank_), "ncclCommInitRank");
  }

  ~NcclTransport() override {
    const c10::DeviceGuard guard(device_);
    if (failed_ || std::uncaught_exceptions() > 0) {
      nccl_.abort(communicator_);
    } else {
      nccl_.destroy(communicator_);
    }
  }

  [[nodiscard]] std::string_view name() const override { return "nccl"; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  void exchange(std::span<const Tensor> to, std::span<const Tensor> from) override {
    const auto self = static_cast<size_t>(rank_);
    ensure(to.size() == static_cast<size_t>(size_) && from.size() == to.size() && to[self].numel() == from[self].numel(),
           "exchange needs one part per rank");
    const c10::DeviceGuard guard(device_);
    if (to[self].const_data_ptr() != from[self].const_data_ptr()) from[self].copy_(to[self]);
    must(nccl_.group_start(), "ncclGroupStart");
    // The group must end whatever happens in it.
    nccl::Status send = nccl::Status::success, receive = nccl::Status::success;
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      send = worse(send, send_part(to[static_cast<size_t>(other)], other));
      receive = worse(receive, receive_part(from[static_cast<size_t>(other)], other));
    }
    const nccl::Status end = nccl_.group_end();
    must(send, "ncclSend");
    must(receive, "ncclRecv");
    must(end, "ncclGroupEnd");
  }

  void all_gather(const Tensor& mine, const Tensor& all) override {
    ensure(all.numel() == mine.numel() * size_, "all_gather of ", mine.numel(), " elements into ", all.numel());
    if (mine.numel() == 0) return;
    const c10::DeviceGuard guard(device_);
    must(nccl_.all_gather(data_of(mine), data_of(all), mine.nbytes(), nccl::DataType::uint8, communicator_, stream()), "ncclAllGather");
  }

  void fast_reduce_scatter(const Tensor& parts, const Tensor& own) override {
    ensure(parts.numel() == own.numel() * size_, "fast_reduce_scatter of ", parts.numel(), " elements into ", own.numel());
    const std::optional<nccl::DataType> type = summable_type(own.scalar_type());
    if (!type) return Transport::fast_reduce_scatter(parts, own);
    if (own.numel() == 0) return;
    const c10::DeviceGuard guard(device_);
    must(nccl_.reduce_scatter(data_of(parts), data_of(own), static_cast<size_t>(own.numel()), *type, nccl::Reduction::sum, communicator_,
                              stream()),
         "ncclReduceScatter");
  }

  void check() override {
    nccl::Status error = nccl::Status::success;
    must(nccl_.async_error(communicator_, &error), "ncclCommGetAsyncError");
    if (error != nccl::Status::in_progress) must(error, "a transfer between GPUs failed (NCCL)");
  }

 private:
  static nccl::Status worse(nccl::Status first, nccl::Status second) { return first == nccl::Status::success ? second : first; }

  // Only moved, so a type NCCL does not know is as good as any other.
  [[nodiscard]] nccl::Status send_part(const Tensor& part, int to) const {
    if (part.numel() == 0) return nccl::Status::success;
    return nccl_.send(data_of(part), part.nbytes(), nccl::DataType::uint8, to, communicator_, stream());
  }
  [[nodiscard]] nccl::Status receive_part(const Tensor& part, int from) const {
    if (part.numel() == 0) return nccl::Status::success;
    return nccl_.receive(data_of(part), part.nbytes(), nccl::DataType::uint8, from, communicator_, stream());
  }

  [[nodiscard]] void* data_of(const Tensor& tensor) const {
    ensure(tensor.device() == device_, "NCCL connects ", name_of(device_), ", found a tensor on ", name_of(tensor.device()));
    return tensor.data_ptr();
  }

  [[nodiscard]] nccl::Stream stream() const { return current_cuda_stream(device_.index()); }

  void must(nccl::Status status, const char* call) {
    if (status != nccl::Status::success) failed_ = true;
    nccl::check_status(nccl_, status, call, communicator_);
  }

  const nccl::Functions nccl_;
  const at::Device device_;
  const int rank_, size_;
  nccl::Communicator* communicator_ = nullptr;
  bool failed_ = false;
};

}  // namespace

std::vector<NcclSetting> nccl_settings(std::span<const RankPlace> places, int rank) {
  std::vector<NcclSetting> settings{{"NCCL_NVLS_ENABLE", "0"}};
  // Not the rank's number: a process can be in several groups, and NCCL reads the variable once.
  if (shares_gpu(places, rank)) settings.push_back({kHostId, str(places[static_cast<size_t>(rank)].machine, "/", ::getpid())});
  if (!some_share_gpus(places) || !on_one_machine(places)) return settings;
  settings.push_back({"NCCL_SOCKET_IFNAME", "lo"});
  settings.push_back({"NCCL_IB_DISABLE", "1"});
  return settings;
}

std::shared_ptr<Transport> make_nccl_transport(const Group& group, at::Device device) {
  check(device.is_cuda(), "NCCL connects GPUs, found the device ", name_of(device));
  const nccl::Functions functions = nccl::load();
  const std::vector<RankPlace> places = gather_places(group, cuda_bus_id(device.index()));
  const bool is_first = std::getenv(kHostId) == nullptr;
  for (const NcclSetting& setting : nccl_settings(places, group.rank()))
    static_cast<void>(::setenv(setting.name.c_str(), setting.value.c_str(), 0));
  if (is_first && group.rank() == 0 && some_share_gpus(places))
    log_warn("ranks share a GPU: what they send to each other goes through sockets (", kHostId, " is set), which is slow");
  return std::make_shared<NcclTransport>(functions, group, device);
}

}  // namespace kedge
