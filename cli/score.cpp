#include <charconv>
#include <cmath>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/metrics/progress.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/reward/reward_scorer.h"

#include "cli/commands.h"
#include "cli/model_rows.h"
#include "cli/text/json_lines.h"

namespace kedge::cli {
namespace {

struct ScoreOptions {
  BatchedRowFlags rows;
  std::optional<Pooling> pooling;
  bool merge = false;
  std::optional<std::string> attribute_weights;
  std::optional<double> reward_mean, reward_std;

  void fields(auto&& field) {
    rows.fields(field);
    field("pooling", pooling, "hidden state that is scored: the last token's, or the mean or maximum of all; by default as trained");
    field("merge", merge, "print the mean of several labels as one reward");
    field("attribute_weights", attribute_weights, "print the weighted sum of the labels: one number per label, separated by commas");
    field("reward_mean", reward_mean, "print (reward - mean) / std, with this mean");
    field("reward_std", reward_std, "print (reward - mean) / std, with this std", above(0));
  }
};

std::vector<double> parse_weights(const std::string& text) {
  std::vector<double> weights;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    double weight = 0;
    const auto [stop, error] = std::from_chars(at, end, weight);
    check(error == std::errc() && std::isfinite(weight) && (stop == end || *stop == ','),
          "--attribute-weights: expected numbers separated by commas, found \"", text, "\"");
    weights.push_back(weight);
    if (stop == end) return weights;
    at = stop + 1;
  }
}

TokenIds read_line(RowReader& reader, const Json& line, const std::string& where) {
  const Json* prompt = line.find("prompt");
  const Json* response = line.find("response");
  if (prompt != nullptr && response != nullptr) {
    const std::string& answer = response->as_text(where + ": response");
    // As reward models are trained: one text.
    if (!prompt->is_array()) return reader.from_text(prompt->as_text(where + ": prompt") + answer, where);
    Json messages = *prompt;
    messages.push_back(Json::Object{{"role", "assistant"}, {"content", answer}});
    return reader.from_messages(messages, line, where + ": prompt");
  }
  if (const Json* messages = line.find("messages")) return reader.from_messages(*messages, line, where + ": messages");
  if (const Json* text = line.find("text")) return reader.from_text(text->as_text(where + ": text"), where);
  if (const Json* ids = line.find("ids")) return reader.from_ids(*ids, where + ": ids");
  throw UsageError(str(where, R"(: expected an object with "prompt" and "response", with "messages", with "text" or with "ids")"));
}

RewardScorerOptions scorer_options(const ScoreOptions& given) {
  RewardScorerOptions options;
  options.pooling = given.pooling;
  options.merge_attributes = given.merge;
  if (given.attribute_weights) options.attribute_weights = parse_weights(*given.attribute_weights);
  options.standardization = {given.reward_mean || given.reward_std, given.reward_mean.value_or(0), given.reward_std.value_or(1)};
  options.weights_key = "--attribute-weights";
  options.standardization_key = given.reward_mean ? "--reward-mean" : "--reward-std";
  return options;
}

// Scores batches and prints their lines.
class Scorer {
 public:
  Scorer(const Model& model, const ScoreOptions& options) : scorer_(model, scorer_options(options)) {}

  void print(RowBatch batch) {
    const Tensor scores = scorer_.score(batch.rows);
    const auto* values = scores.const_data_ptr<float>();
    for (size_t row = 0; row < batch.lines.size(); ++row) {
      Json line = std::move(batch.lines[row]);
      Json::Array rewards;
      for (int64_t label = 0; label < scores.size(1); ++label) rewards.push_back(short_number(*values++));
      if (scorer_.num_rewards() == 1) {
        add(*(values - 1));
        line.set("reward", rewards.front());
      } else {
        line.set("rewards", std::move(rewards));
      }
      print_json_line(line);
    }
  }

  // ", reward 0.5 on average, standard deviation 0.1"; empty where a row has several.
  [[nodiscard]] std::string summary() const {
    if (num_rewards_ == 0) return {};
    const double mean = sum_ / num_rewards_;
    return str(", reward ", format_number(mean), " on average, standard deviation ",
               format_number(std::sqrt(std::max(0.0, squares_ / num_rewards_ - mean * mean))));
  }

 private:
  void add(double reward) {
    num_rewards_ += 1;
    sum_ += reward;
    squares_ += reward * reward;
  }

  RewardScorer scorer_;
  double num_rewards_ = 0, sum_ = 0, squares_ = 0;
};

}  // namespace

std::string score_flags() { return options_help<ScoreOptions>(); }

int run_score(const Arguments& arguments) {
  const auto options = parse_options<ScoreOptions>(arguments);
  const Path folder = find_model_folder(options.rows.model, "--model");
  const auto model = load_for_reading(options.rows, folder, HeadKind::score);
  RowReader reader(folder, model->config(), {.add_special = options.rows.add_special});
  Scorer scorer(*model, options);
  RowBatches batches(options.rows.batch_tokens, [&](RowBatch batch) { scorer.print(std::move(batch)); });
  if (options.rows.text) {
    batches.add(reader.from_text(*options.rows.text, "--text"), Json(Json::Object{{"text", *options.rows.text}}));
  } else {
    for_each_json_line(options.rows.input,
                       [&](const Json& line, const std::string& where) { batches.add(read_line(reader, line, where), line); });
  }
  batches.finish();
  log_info(batches.summary(), scorer.summary());
  return kExitOk;
}

}  // namespace kedge::cli
