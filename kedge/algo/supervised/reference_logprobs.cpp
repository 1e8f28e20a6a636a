#include "kedge/algo/supervised/reference_logprobs.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

constexpr int64_t kFirstRound = 8, kLargestRound = 128;  // passes of a rank between two exchanges
constexpr std::chrono::seconds kTellEvery{20};

std::string key_of(const ResponseRow& row) { return response_key(row.ids, row.num_prompt_tokens); }

// Ranks may be told to stop at different moments, and must leave together.
void stop_if_any(const Group& group, const TensorRanks& tensor, const std::optional<int>& signal) {
  std::array<double, 1> any = {static_cast<double>(signal.value_or(0))};
  group.all_reduce(std::span<double>(any), Reduce::max);
  if (tensor.is_split()) tensor.group().all_reduce(std::span<double>(any), Reduce::max);
  const int received = static_cast<int>(any[0]);
  if (received != 0) throw Interrupted(received, name_of_signal(received) + " while the reference's log-probabilities were computed");
}

}  // namespace

ReferenceLogprobs::ReferenceLogprobs(Model& policy, Group group, ReferenceOptions options)
    : policy_(policy), group_(std::move(group)), options_(std::move(options)) {
  if (!keeps()) copy_.emplace(policy, policy.adapters() != nullptr ? ReferenceKind::adapters_off : options_.copy);
  if (options_.keeping != ReferenceKeeping::disk) return;
  std::string known;
  const TensorRanks& tensor = policy_.parameters().options().tensor;
  if (group_.rank() == 0 && tensor.rank() == 0) {
    folder_.emplace(options_.folder, options_.weights);
    known = logprobs_text(folder_->read());
  }
  group_.broadcast(known, 0);
  if (tensor.is_split()) tensor.group().broadcast(known, 0);
  const auto values = read_logprobs(known);
  ensure(values.has_value(), "reference log-probabilities were damaged between ranks");
  cache_.add(*values);
}

void ReferenceLogprobs::compute_all(const ReferencePasses& passes) {
  ensure(keeps(), "log-probabilities of all rows, which are not kept");
  const NoGrad no_grad;
  const AdaptersOff off(policy_.adapters());
  const WholeWeights whole(policy_.parameters());
  const auto begin = std::chrono::steady_clock::now();
  auto told = begin;
  const TensorRanks& tensor = policy_.parameters().options().tensor;
  const bool tells = group_.rank() == 0 && tensor.rank() == 0;
  const int64_t size = group_.size(), before = num_computed_;
  int64_t round = kFirstRound;
  for (int64_t done = 0; done < passes.count; done += round * size, round = std::min(2 * round, kLargestRound)) {
    std::vector<KeptLogprob> own;
    std::optional<int> signal;
    // Ranks that compute together make the same passes.
    for (int64_t i = done + group_.rank(); i < std::min(passes.count, done + round * size) && (!signal || tensor.is_split()); i += size) {
      const std::vector<KeptLogprob> found = unknown_of(passes.rows(i), policy_);
      own.insert(own.end(), found.begin(), found.end());
      if (options_.stop && !signal) signal = options_.stop();
    }
    exchange(std::move(own));
    stop_if_any(group_, tensor, signal);
    const auto now = std::chrono::steady_clock::now();
    if (!tells || now - told < kTellEvery) continue;
    told = now;
    log_info("reference log-probabilities: ", std::min(passes.count, done + round * size), " of ", passes.count, " passes");
  }
  if (tells && num_computed_ > before)
    log_info("reference log-probabilities of ", num_computed_ - before, num_computed_ - before == 1 ? " row" : " rows", " in ",
             std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count(), " ms");
}

void ReferenceLogprobs::compute_batch(std::span<const std::vector<ResponseRow>> own) {
  ensure(copy_.has_value(), "log-probabilities of a batch without a copy of the reference");
  cache_.clear();
  copy_->with([&](const Model& reference) {
    for (const std::vector<ResponseRow>& rows : own) cache_.add(unknown_of(rows, reference));
  });
}

// All rows of a pass if one of them is unknown: what goes through the network together does not depend on what a killed run left.
std::vector<KeptLogprob> ReferenceLogprobs::unknown_of(const std::vector<ResponseRow>& rows, const Model& reference) {
  std::vector<KeptLogprob> values;
  bool knows_all = true;
  for (const ResponseRow& row : rows) {
    values.push_back({key_of(row), 0});
    knows_all = knows_all && cache_.find(values.back().key);
  }
  if (knows_all) return {};
  const Tensor sums = response_logprobs(reference, rows).to(at::kCPU).contiguous();
  for (size_t i = 0; i < values.size(); ++i) values[i].logprob = sums.const_data_ptr<float>()[i];
  return values;
}

void ReferenceLogprobs::exchange(std::vector<KeptLogprob> own) {
  std::vector<KeptLogprob> all;
  if (group_.size() == 1) {
    all = std::move(own);
  } else {
    for (const std::string& text : group_.all_gather(logprobs_text(own))) {
      const auto values = read_logprobs(text);
      ensure(values.has_value(), "reference log-probabilities were damaged between ranks");
      all.insert(all.end(), values->begin(), values->end());
    }
  }
  cache_.add(all);
  num_computed_ += std::ssize(all);
  if (folder_) folder_->write(all);
}

Tensor ReferenceLogprobs::of(std::span<const ResponseRow> rows) const {
  std::vector<float> values;
  for (const ResponseRow& row : rows) {
    const std::optional<float> value = cache_.find(key_of(row));
    ensure(value.has_value(), "the reference log-probability of a row was not computed");
    values.push_back(*value);
  }
  return at::tensor(values).to(policy_.device());
}

}  // namespace kedge
