#include <cmath>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/metrics/progress.h"
#include "kedge/model/files/model_folder.h"

#include "cli/commands.h"
#include "cli/model_rows.h"
#include "cli/text/json_lines.h"

namespace kedge::cli {
namespace {

struct LogprobsOptions {
  BatchedRowFlags rows;
  bool entropy = false;

  void fields(auto&& field) {
    rows.fields(field);
    field("entropy", entropy, "also print the entropy of every prediction, in nats");
  }
};

// Computes batches and prints them.
class Printer {
 public:
  Printer(const Model& model, bool entropy) : model_(model), entropy_(entropy) {}

  void print(const RowBatch& batch) {
    const PackedBatch packed = pack_rows(batch.rows, model_.device());
    const PredictedTokens predicted = predicted_tokens(packed);
    Tensor logprobs, entropies;
    if (predicted.places.size(0) > 0) {
      const TokenLogprobs found = model_logprobs(model_, packed, predicted, {.entropy = entropy_});
      logprobs = found.logprobs.to(at::kCPU);
      if (entropy_) entropies = found.entropy.to(at::kCPU);
    }
    int64_t first = 0;
    for (const TokenIds& row : batch.rows) {
      const auto count = static_cast<int64_t>(row.size()) - 1;
      Json::Array ids;
      for (const TokenId id : row) ids.emplace_back(int64_t{id});
      Json line(Json::Object{{"ids", std::move(ids)}, {"logprobs", numbers(logprobs, first, count)}});
      if (entropy_) line.set("entropy", numbers(entropies, first, count));
      print_json_line(line);
      first += count;
    }
    for (int64_t i = 0; i < first; ++i) sum_ += logprobs.const_data_ptr<float>()[i];
    num_predicted_ += first;
  }

  [[nodiscard]] std::string perplexity() const {
    return num_predicted_ == 0 ? "undefined" : format_number(std::exp(-sum_ / static_cast<double>(num_predicted_)));
  }

 private:
  static Json::Array numbers(const Tensor& values, int64_t first, int64_t count) {
    Json::Array list;
    for (int64_t i = first; i < first + count; ++i) list.push_back(short_number(values.const_data_ptr<float>()[i]));
    return list;
  }

  const Model& model_;
  bool entropy_;
  double sum_ = 0;
  int64_t num_predicted_ = 0;
};

}  // namespace

std::string logprobs_flags() { return options_help<LogprobsOptions>(); }

int run_logprobs(const Arguments& arguments) {
  const auto options = parse_options<LogprobsOptions>(arguments);
  const Path folder = find_model_folder(options.rows.model, "--model");
  const auto model = load_for_reading(options.rows, folder, HeadKind::language);
  RowReader reader(folder, model->config(), {.add_special = options.rows.add_special});
  Printer printer(*model, options.entropy);
  RowBatches batches(options.rows.batch_tokens, [&](const RowBatch& batch) { printer.print(batch); });
  if (options.rows.text) {
    batches.add(reader.from_text(*options.rows.text, "--text"), {});
  } else {
    for_each_json_line(options.rows.input, [&](const Json& line, const std::string& where) {
      const Json* text = line.find("text");
      const Json* ids = line.find("ids");
      check((text != nullptr) != (ids != nullptr), where, ": expected an object with \"text\" or with \"ids\"");
      batches.add(text != nullptr ? reader.from_text(text->as_text(where + ": text"), where) : reader.from_ids(*ids, where + ": ids"), {});
    });
  }
  batches.finish();
  log_info(batches.summary(), ", perplexity ", printer.perplexity());
  return kExitOk;
}

}  // namespace kedge::cli
