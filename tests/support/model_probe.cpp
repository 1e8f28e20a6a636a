// Shows a Python test what our network computes: loads a folder, runs rows of ids, and writes logits, log-probabilities, entropies, scores
// and every weight's gradient (under its Hugging Face name) as a safetensors file.
//
//   model_probe FOLDER ROWS.json OUT.safetensors [--score] [--checkpoint] [--dtype NAME] [--device NAME] [--adapter FOLDER] [--save FOLDER]
//               [--greedy N]
//
// --greedy N writes only what follows each row: N times the likeliest next id, the whole row computed again for every one.
//
// The loss behind the gradients: sum over predicted tokens i of (1 + i % 3) * logprob_i + 0.1 * entropy_i, in row order; with --score the
// sum of all scores at the rows' ends, label j weighted 1 + j.
#include <iostream>

#include "kedge/core/autograd.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/files.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/files/peft_files.h"
#include "kedge/model/files/tensor_bytes.h"
#include "kedge/model/score_head.h"

#include "tests/support/model_logits.h"

namespace {

using namespace kedge;

struct Options {
  std::string folder, rows, out, adapter, save, dtype = "fp32", device = "cpu";
  bool score = false, checkpoint = false;
  int64_t greedy = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  options.folder = argv[1], options.rows = argv[2], options.out = argv[3];
  for (int i = 4; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--score") options.score = true;
    if (flag == "--checkpoint") options.checkpoint = true;
    if (flag == "--dtype") options.dtype = argv[++i];
    if (flag == "--device") options.device = argv[++i];
    if (flag == "--adapter") options.adapter = argv[++i];
    if (flag == "--save") options.save = argv[++i];
    if (flag == "--greedy") options.greedy = std::stoll(argv[++i]);
  }
  return options;
}

std::vector<std::vector<int32_t>> read_rows(const std::string& path) {
  std::vector<std::vector<int32_t>> rows;
  const Json json = Json::parse(read_text(path), path);
  for (const Json& row : json.as_array(path)) {
    rows.emplace_back();
    for (const Json& id : row.as_array(path)) rows.back().push_back(static_cast<int32_t>(id.as_integer(path)));
  }
  return rows;
}

class Results {
 public:
  void add(const std::string& name, const Tensor& tensor) {
    tensors_.emplace_back(name, tensor.detach().to(at::kCPU, at::kFloat).contiguous());
  }
  void write(const Path& file) const {
    std::vector<TensorEntry> entries;
    for (const auto& [name, tensor] : tensors_) entries.push_back({name, WeightType::f32, tensor.sizes().vec()});
    SafetensorsWriter writer(file, std::move(entries));
    for (const auto& [name, tensor] : tensors_) write_tensor(tensor, WeightType::f32, [&](std::string_view bytes) { writer.write(bytes); });
    writer.finish();
  }

 private:
  std::vector<std::pair<std::string, Tensor>> tensors_;
};

Tensor loss_of_tokens(const Model& model, const PackedBatch& batch, const PassOptions& pass, Results& results) {
  const PredictedTokens predicted = predicted_tokens(batch);
  const TokenLogprobs found = model_logprobs(model, batch, predicted, {.entropy = true}, pass);
  results.add("logprobs", found.logprobs);
  results.add("entropy", found.entropy);
  std::vector<float> weights;
  for (int64_t i = 0; i < found.logprobs.size(0); ++i) weights.push_back(static_cast<float>(1 + i % 3));
  return (found.logprobs * at::tensor(weights).to(found.logprobs.device())).sum() + 0.1 * found.entropy.sum();
}

Tensor loss_of_scores(const Model& model, const PackedBatch& batch, const PassOptions& pass, Results& results) {
  const Tensor scores = row_scores(model, batch, Pooling::last, pass);
  results.add("scores", scores);
  results.add("token_scores", token_scores(model, batch, pass));
  std::vector<float> weights;
  for (int64_t j = 0; j < scores.size(1); ++j) weights.push_back(static_cast<float>(1 + j));
  return (scores * at::tensor(weights).to(scores.device())).sum();
}

void add_gradients(Model& model, Results& results) {
  if (const Adapters* adapters = model.adapters()) {
    const Parameters& parameters = adapters->parameters();
    for (size_t i = 0; i < parameters.specs().size(); ++i)
      results.add("grad." + parameters.specs()[i].name, parameters.gradient(static_cast<int>(i)));
    return;
  }
  for (const WeightSlice& slice : parameter_layout(model.config(), model.places())) {
    const Tensor rows = model.parameters().gradient(slice.parameter).narrow(0, slice.row, slice.rows);
    results.add("grad." + slice.name, slice.transposed ? rows.t() : rows);
  }
}

Tensor continuation(const Model& model, std::vector<int32_t> row, int64_t length) {
  std::vector<float> ids;
  for (int64_t i = 0; i < length; ++i) {
    const Tensor logits = kedge::testing::model_logits(model, pack_rows(std::vector<std::vector<int32_t>>{row}, model.device()));
    row.push_back(logits[-1].argmax().item<int32_t>());
    ids.push_back(static_cast<float>(row.back()));
  }
  return at::tensor(ids);
}

void run(const Options& options) {
  LoadOptions load;
  load.storage = {parse_dtype(options.dtype, "--dtype"), parse_device(options.device, "--device"), options.adapter.empty()};
  load.head = options.score ? HeadKind::score : HeadKind::language;
  if (!options.adapter.empty() && options.score) start_head_of_adapter(load, options.adapter);
  const auto model = load_model(options.folder, load);
  if (!options.adapter.empty()) load_adapter(*model, options.adapter, true);
  const auto rows = read_rows(options.rows);
  Results results;
  if (options.greedy > 0) {
    for (size_t i = 0; i < rows.size(); ++i) results.add(str("greedy.", i), continuation(*model, rows[i], options.greedy));
    results.write(options.out);
    return;
  }
  const PackedBatch batch = pack_rows(rows, model->device());
  if (!options.score) results.add("logits", kedge::testing::model_logits(*model, batch));
  const PassOptions pass{.checkpoint = options.checkpoint, .dropout_seed = {}};
  backward(options.score ? loss_of_scores(*model, batch, pass, results) : loss_of_tokens(*model, batch, pass, results));
  add_gradients(*model, results);
  results.write(options.out);
  if (!options.save.empty()) {
    if (model->adapters() != nullptr)
      save_adapter(*model, options.save, {});
    else
      save_model(*model, options.save);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const UsageError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
