#include "kedge/model/kernels/cudnn_attention.h"

#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cudnn/Handle.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/stopwatch.h"
#include "kedge/model/kernels/cuda_row_places_launch.h"

// LibTorch brings the library; its functions are looked up there.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace kedge::cuda {
namespace {

namespace fe = cudnn_frontend;

// cuDNN 9.6 is the first that takes the sums of packed rows.
constexpr size_t kOldestCudnn = 90600;

// KEDGE_NO_CUDNN=1 leaves attention to flash attention: for comparisons, and should the library misbehave.
std::string why_no_cudnn() {
  const char* without = std::getenv("KEDGE_NO_CUDNN");
  if (without != nullptr && *without == '1') return "KEDGE_NO_CUDNN=1";
  fe::cudnn_dlhandle = dlopen("libcudnn.so.9", RTLD_LAZY);
  if (fe::cudnn_dlhandle == nullptr) return "libcudnn.so.9 is not found";
  if (fe::detail::get_backend_version() < kOldestCudnn) return "cuDNN is older than 9.6";
  return {};
}
const std::string& reason_against_cudnn() {
  static const std::string reason = why_no_cudnn();
  return reason;
}

bool is_new_enough(int device) { return at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device))->major >= 9; }

// The names of tensors in a graph.
enum Uid : int64_t { kQ = 1, kK, kV, kOut, kLogSum, kDout, kDq, kDk, kDv, kLengthsQ, kLengthsK, kFirstPlaces };

// The parts of a batch whose places differ, in the order of their names from kFirstPlaces on.
enum Places : int { kInQ, kInK, kHeads, kSums, kKvHeads, kNumPlaces };

// 1, 2, 3, 4, 6, 8, 12, ...: few plans for many shapes.
int64_t rounded(int64_t value) {
  const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, value))));
  return power >= 4 && power / 4 * 3 >= value ? power / 4 * 3 : power;
}

// What a plan is made for. `tokens` bound the workspace only.
struct PlanShape {
  bool backward = false, causal = true;
  int64_t room = 0, longest_q = 0, longest_k = 0, tokens_q = 0, tokens_k = 0;
  int64_t heads = 0, kv_heads = 0, dim = 0, stride_q = 0, stride_k = 0;

  auto operator<=>(const PlanShape&) const = default;
};

struct Plan {
  std::unique_ptr<fe::graph::Graph> graph;  // null where cuDNN does not support the shape
  int64_t workspace = 0;
};

using TensorNode = std::shared_ptr<fe::graph::Tensor_attributes>;

class PlanMaker {
 public:
  explicit PlanMaker(const PlanShape& shape) : s_(shape), graph_(std::make_unique<fe::graph::Graph>()) {
    graph_->set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    for (int i = 0; i < kNumPlaces; ++i) places_[static_cast<size_t>(i)] = integers(kFirstPlaces + i, s_.room + 1);
    lengths_q_ = integers(kLengthsQ, s_.room), lengths_k_ = integers(kLengthsK, s_.room);
  }

  Plan make(float scale) {
    s_.backward ? add_backward(scale) : add_forward(scale);
    Plan plan;
    auto status = graph_->build(at::native::getCudnnHandle(), {fe::HeurMode_t::A});
    if (status.is_good()) status = graph_->get_workspace_size(plan.workspace);
    if (status.is_bad()) {
      log_warn("cuDNN does not support attention of ", s_.room, " rows of up to ", s_.longest_q, " tokens, ", s_.heads, " heads of ",
               s_.dim, "; flash attention is used: ", status.get_message());
      return plan;
    }
    plan.graph = std::move(graph_);
    return plan;
  }

 private:
  TensorNode integers(int64_t uid, int64_t count) {
    return graph_->tensor(fe::graph::Tensor_attributes()
                              .set_uid(uid)
                              .set_dim({count, 1, 1, 1})
                              .set_stride({1, 1, 1, 1})
                              .set_data_type(fe::DataType_t::INT32));
  }
  [[nodiscard]] const TensorNode& places(Places which) const { return places_[static_cast<size_t>(which)]; }

  // Tokens of packed rows, `stride` numbers from one to the next.
  void describe(fe::graph::Tensor_attributes& tensor, int64_t uid, int64_t heads, int64_t longest, int64_t stride, Places where) const {
    tensor.set_uid(uid)
        .set_dim({s_.room, heads, longest, s_.dim})
        .set_stride({longest * stride, s_.dim, stride, 1})
        .set_ragged_offset(places(where));
  }
  void describe_sums(fe::graph::Tensor_attributes& tensor) const {
    tensor.set_uid(kLogSum)
        .set_dim({s_.room, s_.heads, s_.longest_q, 1})
        .set_stride({s_.longest_q * s_.heads, 1, s_.heads, 1})
        .set_ragged_offset(places(kSums))
        .set_data_type(fe::DataType_t::FLOAT);
  }
  TensorNode input(int64_t uid, int64_t heads, int64_t longest, int64_t stride, Places where) {
    fe::graph::Tensor_attributes tensor;
    describe(tensor, uid, heads, longest, stride, where);
    return graph_->tensor(tensor);
  }
  [[nodiscard]] TensorNode queries() { return input(kQ, s_.heads, s_.longest_q, s_.stride_q, kInQ); }
  [[nodiscard]] TensorNode keys(Uid uid) { return input(uid, s_.kv_heads, s_.longest_k, s_.stride_k, kInK); }
  [[nodiscard]] TensorNode outputs(Uid uid) { return input(uid, s_.heads, s_.longest_q, s_.heads * s_.dim, kHeads); }

  void add_forward(float scale) {
    auto options = fe::graph::SDPA_attributes()
                       .set_name("attention")
                       .set_generate_stats(true)
                       .set_attn_scale(scale)
                       .set_padding_mask(true)
                       .set_seq_len_q(lengths_q_)
                       .set_seq_len_kv(lengths_k_);
    if (s_.causal) options.set_causal_mask(true);
    const auto [out, sums] = graph_->sdpa(queries(), keys(kK), keys(kV), options);
    describe(out->set_output(true), kOut, s_.heads, s_.longest_q, s_.heads * s_.dim, kHeads);
    describe_sums(sums->set_output(true));
  }

  void add_backward(float scale) {
    auto options = fe::graph::SDPA_backward_attributes()
                       .set_name("attention_backward")
                       .set_attn_scale(scale)
                       .set_padding_mask(true)
                       .set_seq_len_q(lengths_q_)
                       .set_seq_len_kv(lengths_k_)
                       .set_max_total_seq_len_q(s_.tokens_q)
                       .set_max_total_seq_len_kv(s_.tokens_k);
    if (s_.causal) options.set_causal_mask(true);
    fe::graph::Tensor_attributes sums;
    describe_sums(sums);
    const auto [dq, dk, dv] =
        graph_->sdpa_backward(queries(), keys(kK), keys(kV), outputs(kOut), outputs(kDout), graph_->tensor(sums), options);
    describe(dq->set_output(true), kDq, s_.heads, s_.longest_q, s_.stride_q, kInQ);  // cuDNN puts it where it found the queries
    describe(dk->set_output(true), kDk, s_.kv_heads, s_.longest_k, s_.kv_heads * s_.dim, kKvHeads);
    describe(dv->set_output(true), kDv, s_.kv_heads, s_.longest_k, s_.kv_heads * s_.dim, kKvHeads);
  }

  const PlanShape& s_;
  std::unique_ptr<fe::graph::Graph> graph_;
  std::array<TensorNode, kNumPlaces> places_;
  TensorNode lengths_q_, lengths_k_;
};

// Plans are of the library, like its handles: made once for a device and a shape, whichever model they are for.
class Plans {
 public:
  const Plan& find(const PlanShape& shape, float scale) {
    const auto [place, is_new] = plans_.try_emplace({c10::cuda::current_device(), shape});
    if (is_new) {
      const Stopwatch watch;
      place->second = PlanMaker(shape).make(scale);
      log_debug("plan ", plans_.size(), " of cuDNN's attention, ", shape.backward ? "backward" : "forward", ", for ", shape.room,
                " rows of up to ", shape.longest_q, " tokens: ", watch.seconds(), " s");
    }
    return place->second;
  }
  std::mutex mutex;

 private:
  std::map<std::pair<c10::DeviceIndex, PlanShape>, Plan> plans_;
};
Plans& plans() {
  static Plans all;
  return all;
}

PlanShape plan_shape(const HeadTensors& in, const KernelRows& rows, bool backward) {
  constexpr int64_t kTile = 128;
  const auto length = [](int64_t longest) { return rounded((longest + kTile - 1) / kTile) * kTile; };
  return {.backward = backward,
          .causal = rows.causal,
          .room = std::max<int64_t>(8, rounded(rows.offsets_q.numel() - 1)),
          .longest_q = length(rows.longest_q),
          .longest_k = length(rows.longest_k),
          .tokens_q = backward ? length(in.q.size(0)) : 0,
          .tokens_k = backward ? length(in.k.size(0)) : 0,
          .heads = in.q.size(1),
          .kv_heads = in.k.size(1),
          .dim = in.q.size(2),
          .stride_q = in.q.stride(0),
          .stride_k = in.k.stride(0)};
}

// Lengths and places of rows on the device.
class RowPlaces {
 public:
  RowPlaces(const KernelRows& rows, const PlanShape& s) : stride_((s.room + 1 + 63) / 64 * 64) {
    buffer_ = at::empty({(2 + kNumPlaces) * stride_}, rows.offsets_q.options());
    RowPlacesLaunch l{.offsets_q = rows.offsets_q.const_data_ptr<int32_t>(),
                      .offsets_k = rows.offsets_k.const_data_ptr<int32_t>(),
                      .rows = static_cast<int>(rows.offsets_q.numel() - 1),
                      .room = static_cast<int>(s.room),
                      .stride = static_cast<int>(stride_),
                      .num_widths = kNumPlaces,
                      .widths = {},
                      .of_keys = {},
                      .out = buffer_.mutable_data_ptr<int32_t>()};
    const auto set = [&](Places which, int64_t width, bool of_keys) {
      l.widths[which] = static_cast<int>(width), l.of_keys[which] = of_keys;
    };
    set(kInQ, s.stride_q, false);
    set(kInK, s.stride_k, true);
    set(kHeads, s.heads * s.dim, false);
    set(kSums, s.heads, false);
    set(kKvHeads, s.kv_heads * s.dim, true);
    launch_row_places(l, c10::cuda::getCurrentCUDAStream().stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

  void add_to(std::unordered_map<int64_t, void*>& pointers) const {
    auto* first = buffer_.mutable_data_ptr<int32_t>();
    pointers[kLengthsQ] = first, pointers[kLengthsK] = first + stride_;
    for (int64_t i = 0; i < kNumPlaces; ++i) pointers[kFirstPlaces + i] = first + (2 + i) * stride_;
  }

 private:
  int64_t stride_;
  Tensor buffer_;
};

// Runs the plan for the batch; false where there is none.
bool run(const HeadTensors& in, const KernelRows& rows, const AttentionShape& shape, bool backward,
         std::unordered_map<int64_t, void*> pointers) {
  const c10::cuda::CUDAGuard guard(in.q.device());
  const PlanShape wanted = plan_shape(in, rows, backward);
  const std::scoped_lock lock(plans().mutex);
  const Plan& plan = plans().find(wanted, static_cast<float>(shape.scale()));
  if (!plan.graph) return false;
  const RowPlaces places(rows, wanted);
  places.add_to(pointers);
  pointers[kQ] = in.q.mutable_data_ptr(), pointers[kK] = in.k.mutable_data_ptr(), pointers[kV] = in.v.mutable_data_ptr();
  const Tensor workspace = at::empty({plan.workspace}, in.q.options().dtype(at::kByte));
  auto status = plan.graph->execute(at::native::getCudnnHandle(), pointers, workspace.mutable_data_ptr());
  if (status.is_bad()) throw Error(str("cuDNN's attention: ", status.get_message()));
  return true;
}

}  // namespace

std::string describe_cudnn_attention(int device) {
  if (!is_new_enough(device)) return "flash attention: cuDNN's is for newer GPUs (sm_90)";
  if (!reason_against_cudnn().empty()) return "flash attention: " + reason_against_cudnn();
  const size_t version = fe::detail::get_backend_version();
  return str("cuDNN ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

bool is_cudnn_suited(const Tensor& qkv, const AttentionShape& shape) {
  if (!qkv.is_cuda() || qkv.scalar_type() != at::kBFloat16) return false;
  if (qkv.numel() >= int64_t{1} << 31U) return false;               // places are 32-bit numbers
  if (shape.head_dim != 64 && shape.head_dim != 128) return false;  // it takes others too, which no test has compared
  return is_new_enough(qkv.get_device()) && reason_against_cudnn().empty();
}

std::optional<Attended> cudnn_attention(const HeadTensors& in, const KernelRows& rows, const AttentionShape& shape) {
  const Tensor out = at::empty({in.q.size(0), shape.num_heads, shape.head_dim}, in.q.options());
  const Tensor sums = at::empty({in.q.size(0), shape.num_heads}, in.q.options().dtype(at::kFloat));
  if (!run(in, rows, shape, false, {{kOut, out.mutable_data_ptr()}, {kLogSum, sums.mutable_data_ptr()}})) return std::nullopt;
  return Attended{out.flatten(1), sums.t(), {}};
}

std::optional<HeadTensors> cudnn_attention_backward(const Tensor& dout, const HeadTensors& in, const Attended& saved,
                                                    const KernelRows& rows, const AttentionShape& shape) {
  // For sums in a fixed order cuDNN needs memory for all scores; flash attention does not.
  if (at::globalContext().deterministicAlgorithms()) return std::nullopt;
  const Tensor all_dout = dout.contiguous(), out = saved.out.contiguous(), sums = saved.log_sum.t().contiguous();
  // With room beside the queries' where there was room beside the queries, for join_heads().
  const Tensor wide = at::empty({in.q.size(0), in.q.stride(0)}, in.q.options());
  const auto like = [](const Tensor& x) { return at::empty(x.sizes(), x.options()); };
  HeadTensors gradients{wide.narrow(1, 0, in.q.size(1) * in.q.size(2)).view(in.q.sizes()), like(in.k), like(in.v)};
  const bool done = run(in, rows, shape, true,
                        {{kOut, out.mutable_data_ptr()},
                         {kDout, all_dout.mutable_data_ptr()},
                         {kLogSum, sums.mutable_data_ptr()},
                         {kDq, gradients.q.mutable_data_ptr()},
                         {kDk, gradients.k.mutable_data_ptr()},
                         {kDv, gradients.v.mutable_data_ptr()}});
  if (!done) return std::nullopt;
  return gradients;
}

}  // namespace kedge::cuda
