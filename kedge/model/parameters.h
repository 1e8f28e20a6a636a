#pragma once
// A model's parameters in flat buffers: the number type the network computes with, fp32 master weights and gradients. Several ranks may
// hold them together (dist/shard_layout.h); then what a rank does not own exists only while it is used.
// Views of a slice see every update: their storage never changes, only its memory comes and goes where weights or gradients are sharded.
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "kedge/core/side_stream.h"
#include "kedge/core/tensor.h"
#include "kedge/dist/shard_exchange.h"
#include "kedge/dist/tensor_ranks.h"
#include "kedge/model/spec/parameter_layout.h"
#include "kedge/model/spec/tensor_split.h"

namespace kedge {

struct StorageOptions {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  bool trainable = false;       // with gradients, and fp32 master weights if dtype is another
  ShardOptions shards = {};     // the ranks that hold the parameters together
  TensorRanks tensor = {};      // those that compute with them together, each with its own rows or columns of the matrices
  bool comes_and_goes = false;  // without memory but between take_values() and drop_values(); not to train
  int64_t kept_logits = 0;      // bytes that a pass keeps for its backward, if that is more than it keeps anyway (model/logprob_head.h)
  bool divides_tokens = false;  // in passes: each tensor rank keeps its own tokens where no product needs all (model/token_slices.h)
};

// How many elements a flat buffer of such parameters has, with the gaps between the slices.
[[nodiscard]] int64_t flat_size(const std::vector<ParameterSpec>& specs);
// Where each of them begins in it: first those that decay.
[[nodiscard]] std::vector<int64_t> flat_begins(const std::vector<ParameterSpec>& specs);
// Its buckets, cut over `shard_ranks` of `num_ranks`: the matrices of a layer, those before and those after the layers, and all that does
// not decay. One rank alone has two.
[[nodiscard]] ShardLayout shard_layout(const std::vector<ParameterSpec>& specs, int shard_ranks, int num_ranks);

// Elements of the complete model's flat buffer, from `begin` on.
struct FlatRow {
  int64_t begin = 0;
  Tensor values;
};

class Parameters {
 public:
  // `parts`: of every tensor rank, what it has of each parameter; may be empty for one rank.
  Parameters(const std::vector<ParameterSpec>& whole, const StorageOptions& options, std::vector<std::vector<ParameterPart>> parts = {});

  [[nodiscard]] const StorageOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<ParameterSpec>& specs() const { return specs_; }              // of this rank
  [[nodiscard]] const std::vector<ParameterSpec>& whole_specs() const { return whole_specs_; }  // of the complete model
  // What this rank has of a parameter.
  [[nodiscard]] const ParameterPart& part(int parameter) const { return part(parameter, options_.tensor.rank()); }
  [[nodiscard]] std::vector<ParameterPart> parts() const;  // of each; empty: everything
  [[nodiscard]] bool is_split() const { return options_.tensor.is_split(); }
  [[nodiscard]] int64_t num_elements() const { return num_elements_; }  // of the complete model, without the gaps between the slices
  [[nodiscard]] const ShardLayout& layout() const { return exchange_.layout(); }
  [[nodiscard]] int64_t size() const { return layout().size(); }

  // A parameter's slice in its own shape.
  [[nodiscard]] const Tensor& value(int parameter) const { return values_[static_cast<size_t>(parameter)]; }
  [[nodiscard]] const Tensor& master(int parameter) const;  // not if masters are sharded
  // Undefined if nothing is trained.
  [[nodiscard]] const Tensor& gradient(int parameter) const { return gradients_[static_cast<size_t>(parameter)]; }

  // The complete buffers, where they are not sharded. Gaps between slices are zero and stay zero.
  [[nodiscard]] const Tensor& flat() const;
  [[nodiscard]] const Tensor& flat_master() const;  // flat() itself if that is fp32 or nothing is trained
  [[nodiscard]] const Tensor& flat_gradient() const;
  // The first elements are those that decay.
  [[nodiscard]] int64_t num_decaying() const { return num_decaying_; }

  // What this rank updates and saves: everything, or its part of every bucket. Slices of the flat buffers, in their order.
  struct OwnPart {
    Share range;  // in the flat buffers
    Tensor master, value, gradient;
  };
  [[nodiscard]] const std::vector<OwnPart>& own_parts() const { return own_parts_; }
  // Are the complete model's in one buffer of this rank?
  [[nodiscard]] bool has_whole_masters() const { return flat_master_.defined() && !is_split(); }
  // Does some other rank hold, and save, the same?
  [[nodiscard]] bool is_copy() const;

  // Copies the master weights into the ones the network computes with, on every rank.
  void publish();
  // The second half of it: every rank has the values of its own parts, and all get those they need. Collective.
  void share_values();
  // New master weights of some rows of a parameter of the complete model, unpublished; every rank is given the same.
  void write_rows(int parameter, int64_t row, const Tensor& rows);
  // Every complete parameter's master weights, in an order of its own; where ranks hold them together they are gathered for the time of a
  // call. Collective.
  void visit_masters(const std::function<void(int parameter, const Tensor& master)>& visit) const;

  // What this rank saves of a buffer like the masters or the moments, given as `own`: a tensor for each of own_parts(). Not on ranks that
  // are copies of others. Ranks that split matrices put them together first, and each saves a share of every matrix.
  [[nodiscard]] std::vector<FlatRow> rows_to_save(const std::vector<Tensor>& own) const;
  // The other way round: fills `own`. `read` fills a row, which is of the type `stored`, with what was saved of it.
  using RowReader = std::function<void(const FlatRow& row)>;
  void restore_rows(const std::vector<Tensor>& own, at::ScalarType stored, const RowReader& read) const;
  [[nodiscard]] std::vector<Tensor> own_masters() const;
  [[nodiscard]] int64_t whole_size() const { return whole_size_; }  // of the complete model's flat buffer

  // What is stored of the weights that the network computes with: all of them, or this rank's parts.
  [[nodiscard]] const Tensor& stored_values() const { return cuts_weights_ ? own_values_ : flat_; }
  [[nodiscard]] bool cuts_weights() const { return cuts_weights_; }
  // Memory for weights that come and go, with undefined content; and none.
  void take_values();
  void drop_values();
  // Changes whenever complete weights may have other addresses than before, for those who remember addresses.
  [[nodiscard]] int64_t placement() const { return placement_; }
  // Changes with the weights, whenever new ones are published or shared, for those who remember what they computed from them.
  [[nodiscard]] int64_t version() const { return version_; }

  // Seeded initial values: a parameter's draws depend on the seed and its place alone.
  void initialise(uint64_t seed, double normal_range);
  void initialise(int parameter, uint64_t seed, double normal_range);  // one of them, unpublished

  // Gradients of several ranks. They are summed after every pass, and the buffers are then free for the next one.
  [[nodiscard]] bool reduces_each_pass() const;
  void zero_gradients();
  void finish_gradients();  // the sums over all ranks are in own_parts(). Collective.

  // What a pass through the network uses, in this order; for the decoder. Where weights are sharded, a layer's are gathered while the one
  // before it is computed, and given back after its use; where gradients are, a layer's are summed over the ranks while the next one's are
  // computed, and given back. So two layers have memory at a time.
  void open_layer(size_t layer) const;
  void close_layer(size_t layer) const;
  void end_forward() const;
  void open_head_gradient() const;  // before the head's backward
  void begin_backward() const;      // the head's is done
  void begin_layer_backward(size_t layer) const;
  void end_layer_backward(size_t layer) const;
  void open_embedding_gradient() const;
  void end_backward() const;
  // Ranks make the same number of passes, since these are collective. Takes part in what this rank left out of one.
  void complete_pass() const;

 private:
  friend class WholeWeights;
  void allocate();
  void make_slices();
  void list_own_parts();
  [[nodiscard]] std::vector<Tensor> bucket_rows(const Tensor& flat, at::ScalarType dtype, bool come_and_go) const;
  [[nodiscard]] Tensor own_slice(const Tensor& own, const Tensor& flat, size_t bucket) const;
  [[nodiscard]] const ParameterPart& part(int parameter, int tensor_rank) const;
  void write_own_rows(int parameter, int64_t row, const Tensor& rows);
  // The parameters in a bucket, and where they begin in it.
  [[nodiscard]] std::vector<std::pair<int, int64_t>> places_in(size_t bucket) const;
  [[nodiscard]] Tensor whole_bucket(size_t bucket, const Tensor& own) const;
  // A complete parameter from what the tensor ranks have of it. Collective.
  [[nodiscard]] Tensor join(int parameter, const Tensor& own) const;
  void sum_summands(size_t bucket) const;
  [[nodiscard]] bool updates_all() const { return options_.shards.kind == Sharding::none || options_.shards.num_ranks() == 1; }
  [[nodiscard]] bool is_layer(size_t bucket) const;
  [[nodiscard]] bool keeps_value(size_t bucket) const { return !cuts_weights_ || !is_layer(bucket); }
  void gather_value(size_t bucket) const;
  void fetch_layer(size_t layer, std::optional<size_t> next) const;
  void open_gradient(size_t bucket) const;
  void reduce_gradient(size_t bucket) const;
  void start_waiting_sum() const;
  void finish_sum() const;
  void hold_whole() const;
  void let_go() const;

  std::vector<ParameterSpec> whole_specs_;
  std::vector<std::vector<ParameterPart>> parts_;  // by tensor rank and parameter; empty for one rank
  std::vector<ParameterSpec> specs_;
  StorageOptions options_;
  ShardExchange exchange_;
  int64_t whole_size_ = 0, num_elements_ = 0, num_decaying_ = 0;
  bool cuts_weights_ = false, cuts_gradients_ = false;  // are they sharded?
  std::vector<size_t> layer_buckets_;                   // by layer
  Tensor flat_, flat_master_, flat_gradient_;           // undefined where they are sharded
  Tensor own_values_, own_masters_, own_sums_;  // of all own parts, one after the other; undefined where they are slices of the above
  std::vector<Tensor> value_buckets_, gradient_buckets_;
  std::vector<Tensor> values_, masters_, gradients_;
  std::vector<OwnPart> own_parts_;
  mutable int num_holders_ = 0;
  mutable int64_t placement_ = 0;
  int64_t version_ = 0;
  // What a pass has at the side: weights to gather next, and those under way; gradients to sum next, and those under way.
  struct Transfer {
    size_t bucket;
    SideStream::Moment moment;  // before which it must not begin, or its end
  };
  mutable SideStream side_;
  mutable std::optional<Transfer> next_, fetched_, waiting_, summing_;
  mutable int64_t num_forward_ = 0, num_backward_ = 0;  // of the present pass
};

// While it lives, all weights are gathered, and passes need no other rank. For generation, validation and log-probabilities. Its
// construction is collective.
class WholeWeights {
 public:
  explicit WholeWeights(const Parameters& parameters) : parameters_(parameters) { parameters_.hold_whole(); }
  ~WholeWeights() { parameters_.let_go(); }
  WholeWeights(const WholeWeights&) = delete;
  WholeWeights& operator=(const WholeWeights&) = delete;

 private:
  const Parameters& parameters_;
};

// A score head ready to use: weight [labels, hidden], bias [labels] or undefined, and fp32 gradients if they are trained. The weight is
// undefined if there is no such head.
struct ScoreView {
  Tensor weight, bias, weight_gradient, bias_gradient;

  static ScoreView of(const Parameters& parameters, int weight, int bias);  // by their places
};

}  // namespace kedge
