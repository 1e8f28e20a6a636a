#pragma once
// What the policy that a run starts from says of responses: the reference of DPO and KTO. Computed once for every row, before the weights
// change, and kept in memory or on disk; or, with a frozen copy of the weights, again for every batch.
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/algo/supervised/reference_cache.h"
#include "kedge/algo/supervised/response_logprobs.h"
#include "kedge/config/config_schema.h"
#include "kedge/core/stop.h"
#include "kedge/dist/group.h"
#include "kedge/train/reference_policy.h"

namespace kedge {

enum class ReferenceKeeping { memory, disk, none };
constexpr auto enum_names(ReferenceKeeping) {
  return std::array<EnumName<ReferenceKeeping>, 3>{
      {{"memory", ReferenceKeeping::memory}, {"disk", ReferenceKeeping::disk}, {"none", ReferenceKeeping::none}}};
}

struct ReferenceOptions {
  ReferenceKeeping keeping = ReferenceKeeping::memory;
  Path folder = {};                              // of `disk`
  std::string weights;                           // names the weights at the start; equal names, equal values
  ReferenceKind copy = ReferenceKind::resident;  // of `none`; a policy with adapters always goes without them
  StopQuestion stop = {};
};

// Rows that go through the network together, made when they are needed. The order and what is in a pass are the same on every rank.
struct ReferencePasses {
  int64_t count = 0;
  std::function<std::vector<ResponseRow>(int64_t pass)> rows;
};

// Not thread-safe; every rank makes the same calls. Made while the policy has the weights of the reference. It must outlive it.
class ReferenceLogprobs {
 public:
  ReferenceLogprobs(Model& policy, Group group, ReferenceOptions options);

  [[nodiscard]] bool keeps() const { return options_.keeping != ReferenceKeeping::none; }
  // Before the weights change: computes what is not known of these passes. The ranks divide them, and all know all of it afterwards.
  // Interrupted if a signal was received.
  void compute_all(const ReferencePasses& passes);
  // Without keeping: of this rank's own passes, in place of those before.
  void compute_batch(std::span<const std::vector<ResponseRow>> own);

  // fp32 [rows] on the policy's device, in the order of the rows. Must have been computed.
  [[nodiscard]] Tensor of(std::span<const ResponseRow> rows) const;
  [[nodiscard]] int64_t num_computed() const { return num_computed_; }  // rows, by all ranks

 private:
  [[nodiscard]] std::vector<KeptLogprob> unknown_of(const std::vector<ResponseRow>& rows, const Model& reference);
  void exchange(std::vector<KeptLogprob> own);

  Model& policy_;
  Group group_;
  ReferenceOptions options_;
  std::optional<ReferencePolicy> copy_;    // of `none`
  std::optional<ReferenceFolder> folder_;  // rank 0's
  ReferenceCache cache_;
  int64_t num_computed_ = 0;
};

}  // namespace kedge
