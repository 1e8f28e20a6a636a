#include "kedge/model/kernels/shared_prompts.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {
namespace {

using Ids = std::vector<int32_t>;

bool is_shared(const PromptAnswers& group) { return group.answers.size() > 1 && !group.prompt.empty(); }

Ids joined(std::span<const int32_t> prompt, std::span<const int32_t> answer) {
  Ids ids(prompt.begin(), prompt.end());
  ids.insert(ids.end(), answer.begin(), answer.end());
  return ids;
}

// The rows in the order of SharedPrompts, and where answers begin.
struct Arrangement {
  std::vector<Ids> rows;
  std::vector<int64_t> positions;  // by row: of its first token
  std::vector<std::vector<int64_t>> starts;
  int64_t num_tokens = 0;

  // Returns the place of the row's first token.
  int64_t add(Ids row, int64_t position) {
    const int64_t place = num_tokens;
    num_tokens += static_cast<int64_t>(row.size());
    rows.push_back(std::move(row));
    positions.push_back(position);
    return place;
  }
};

Arrangement arranged(std::span<const PromptAnswers> prompts, SharedPrompts& shared) {
  Arrangement all;
  all.starts.resize(prompts.size());
  for (const PromptAnswers& group : prompts) {
    if (!is_shared(group)) continue;
    static_cast<void>(all.add({group.prompt.begin(), group.prompt.end()}, 0));
    shared.num_answers.push_back(std::ssize(group.answers));
    shared.longest_prompt = std::max(shared.longest_prompt, std::ssize(group.prompt));
  }
  shared.prompt_tokens = all.num_tokens;
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (!is_shared(prompts[i])) continue;
    const int64_t begin = all.num_tokens;
    for (const auto& answer : prompts[i].answers)
      all.starts[i].push_back(all.add({answer.begin(), answer.end()}, std::ssize(prompts[i].prompt)));
    shared.longest_answers = std::max(shared.longest_answers, all.num_tokens - begin);
  }
  shared.answer_tokens = all.num_tokens - shared.prompt_tokens;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto& [prompt, answers] = prompts[i];
    if (is_shared(prompts[i])) continue;
    if (answers.empty()) static_cast<void>(all.add({prompt.begin(), prompt.end()}, 0));
    for (const auto& answer : answers) all.starts[i].push_back(all.add(joined(prompt, answer), 0) + std::ssize(prompt));
  }
  return all;
}

}  // namespace

PackedAnswers pack_answers(std::span<const PromptAnswers> prompts, at::Device device) {
  SharedPrompts shared;
  Arrangement all = arranged(prompts, shared);
  PackedBatch batch = pack_rows(all.rows, at::kCPU);
  auto* positions = batch.positions.mutable_data_ptr<int64_t>();
  for (size_t row = 0; row < all.rows.size(); ++row) {
    const int64_t length = batch.lengths[row];
    for (int64_t i = 0; i < length; ++i) *positions++ += all.positions[row];
    batch.max_length = std::max(batch.max_length, all.positions[row] + length);
  }
  batch.shared = std::move(shared);
  if (batch.shares_prompts()) {
    std::vector<int32_t> offsets = {0};
    for (const RowFamily& family : row_families(batch)) {
      if (family.answers.empty()) break;
      const RowSpan& last = family.answers.back();
      offsets.push_back(static_cast<int32_t>(last.start + last.length - batch.shared.prompt_tokens));
    }
    batch.shared.offsets = at::tensor(offsets, at::kInt).to(device);
  }
  batch.ids = batch.ids.to(device);
  batch.positions = batch.positions.to(device);
  batch.offsets = batch.offsets.to(device);
  return {std::move(batch), std::move(all.starts)};
}

bool can_share_prompts(const ModelConfig& model, at::Device device, int64_t longest) {
  if (!model.learned_positions && model.rope.type == RopeType::dynamic && longest > model.rope.max_positions) return false;
  return !device.is_cuda() ||
         std::all_of(model.windows.begin(), model.windows.end(), [&](int64_t window) { return window == 0 || window >= longest; });
}

}  // namespace kedge
