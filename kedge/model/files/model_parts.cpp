#include "kedge/model/files/model_parts.h"

#include <algorithm>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/model/files/save_plan.h"
#include "kedge/model/files/tensor_bytes.h"

namespace kedge {
namespace {

std::string_view bytes_of_row(const Tensor& row) { return {static_cast<const char*>(row.const_data_ptr()), row.nbytes()}; }

// A tensor in its file.
struct Target {
  SharedFile& file;
  uint64_t begin;  // of its bytes
  WeightType type;
  int64_t rows, columns;  // of the parameter
};

void write_plain(const Target& target, int64_t first, const Tensor& values) {
  uint64_t at = target.begin + static_cast<uint64_t>(first) * bytes_of(target.type);
  write_tensor(values, target.type, [&](std::string_view bytes) {
    target.file.write_at(at, bytes);
    at += bytes.size();
  });
}

// Rows of the parameter are columns of the file: neighbours in one of them are far apart in the other. Complete rows are written together.
void write_transposed(const Target& target, int64_t first, const Tensor& values) {
  const Tensor converted = values.to(at::kCPU, scalar_type(target.type)).contiguous();
  const int64_t count = converted.numel();
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / target.columns, column = (first + done) % target.columns;
    const bool is_partial = column != 0 || count - done < target.columns;
    const int64_t rows = is_partial ? 1 : (count - done) / target.columns;
    const int64_t columns = is_partial ? std::min(target.columns - column, count - done) : target.columns;
    const Tensor turned = converted.narrow(0, done, rows * columns).view({rows, columns}).t().contiguous();
    for (int64_t i = 0; i < columns; ++i) {
      const auto place = static_cast<uint64_t>((column + i) * target.rows + row);
      target.file.write_at(target.begin + place * bytes_of(target.type), bytes_of_row(turned[i]));
    }
    done += rows * columns;
  }
}

}  // namespace

ModelParts::ModelParts(const Model& model, std::vector<FlatRow> rows, bool is_first)
    : config_(model.config()), head_(model.head()), places_(model.places()), rows_(std::move(rows)), is_first_(is_first) {}

void ModelParts::save(const Path& folder, const SaveOptions& options) const {
  const NoGrad no_grad;
  make_folder(folder);
  const SavePlan plan = plan_save(config_, places_, options);
  const std::vector<int64_t> begins = flat_begins(places_.specs);
  for (const SavedFile& planned : plan.files) {
    const Path path = folder / planned.name;
    std::vector<TensorEntry> entries = planned.entries;
    const std::string preamble = safetensors_preamble(entries, weights_metadata(), path.string());
    SharedFile file(path);
    if (is_first_) file.write_at(0, preamble);
    for (size_t i = 0; i < entries.size(); ++i) {
      const WeightSlice& slice = planned.slices[i];
      const ParameterSpec& spec = places_.specs[static_cast<size_t>(slice.parameter)];
      const Target target{file, preamble.size() + entries[i].begin, plan.type, slice.rows, spec.size() / spec.shape[0]};
      const int64_t begin = begins[static_cast<size_t>(slice.parameter)] + slice.row * target.columns;
      for (const FlatRow& row : rows_) {
        const int64_t first = std::max(begin, row.begin),
                      last = std::min(begin + slice.rows * target.columns, row.begin + row.values.numel());
        if (first >= last) continue;
        const Tensor values = row.values.narrow(0, first - row.begin, last - first);
        slice.transposed ? write_transposed(target, first - begin, values) : write_plain(target, first - begin, values);
        if (slice.parameter == places_.score_bias && values.count_nonzero().item<int64_t>() > 0) warn_of_score_bias(folder);
      }
    }
    file.sync();
  }
  if (!is_first_) return;
  if (plan.index) write_atomic(folder / kIndexFile, *plan.index);
  finish_model_folder({config_, head_, places_, plan.type}, folder, options);
}

}  // namespace kedge
