#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>

#include <ATen/Parallel.h>

#include "kedge/algo/online/algorithm.h"
#include "kedge/algo/online/eval_numbers.h"
#include "kedge/algo/online/generation.h"
#include "kedge/algo/online/online_trainer.h"
#include "kedge/algo/online/rollout_metrics.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/inspect/eval_policies.h"
#include "kedge/model/kernels/shared_prompts.h"
#include "kedge/reward/reward_set.h"
#include "kedge/reward/reward_sources.h"
#include "kedge/run/device_setup.h"
#include "kedge/text/chat/chat_template.h"
#include "kedge/text/chat/model_chat.h"

#include "cli/commands.h"
#include "cli/counted_rewards.h"
#include "cli/eval_options.h"
#include "cli/text/eval_table.h"
#include "cli/text/json_lines.h"

namespace kedge::cli {
namespace {

namespace fs = std::filesystem;

// Rewards by validation that the run logged, by step.
std::map<int64_t, double> logged_rewards(const RunOnDisk& run) {
  std::map<int64_t, double> rewards;
  const Path file = run.folder / "metrics.jsonl";
  if (!is_file(file)) return rewards;
  for_each_json_line(file.string(), [&](const Json& line, const std::string& where) {
    const Json* step = line.find("step");
    for (const char* name : {"val_rollouts/rewards", "val_rollouts/global_rewards"})
      if (const Json* reward = line.find(name); reward != nullptr && reward->is_number() && step != nullptr)
        rewards[step->as_integer(where)] = reward->as_number(where);
  });
  return rewards;
}

// Every answer of a policy as a line.
std::string answer_lines(const EvalTarget& target, const RolloutRows& rows, const RolloutRows& baseline) {
  const std::vector<std::optional<double>> partners = partner_rewards(rows, baseline);
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    const RolloutRow& row = rows[i];
    const Rollout& rollout = *row.rollout;
    Json line(Json::Object{{"policy", target.name}, {"step", target.step ? Json(*target.step) : Json()}});
    line.append("prompt_id", rollout.prompt_id);
    line.append("sample", rollout.sample);
    line.append("prompt", rollout.prompt);
    line.append("response", rollout.response);
    line.append("reward", row.reward.failed() ? Json() : Json(row.reward.value));
    if (row.reward.failed()) line.append("error", row.reward.error);
    Json parts{Json::Object{}};
    for (const auto& [name, value] : row.reward.parts) parts.append(name, Json(value));
    line.append("parts", std::move(parts));
    line.append("win", partners[i] ? Json(win_of(row.reward.value, *partners[i])) : Json());
    if (!row.reference.empty()) line.append("kl", Json(row.kl_mean));
    line.append("length", rollout.response_length());
    line.append("finished", rollout.finished);
    text += line.dump() + "\n";
  }
  return text;
}

// One evaluation from its settings to its numbers.
class Evaluation {
 public:
  Evaluation(const EvalOptions& options, const Words& words)
      : options_(options),
        words_(words),
        ks_(pass_ks(options)),
        found_(find_policies(options, words)),
        settings_(settle(options, words, found_)),
        storage_(storage_of(options, settings_.compute)),
        network_(load_model_config(settings_.start)),
        tokenizer_(load_tokenizer(settings_.start)),
        lengths_(online_lengths(settings_.online, network_.max_positions)),
        responses_(*tokenizer_, settings_.online.rollouts.val_sampling_params->end_strings) {
    check(!responses_.end_ids().empty(), settings_.start.string(), ": its tokenizer has no end-of-text token, so no answer could end");
    check_widths(settings_.online.widths, lengths_.context);
    find_starts();
    check_tokenizers();
    open_prompts();
  }

  int run() {
    // Commands that give rewards run where the run's did; those that the flags name, here.
    std::optional<InFolder> home;
    const bool own_rewards = options_.reward || !found_.run;
    std::optional<AtomicFile> answers;
    std::optional<AtomicFile> csv;  // opened now: an unwritable path is reported early
    if (options_.answers) answers.emplace(fs::absolute(*options_.answers));
    if (options_.csv) csv.emplace(fs::absolute(*options_.csv));
    if (!own_rewards) home.emplace(settings_.home);
    const std::optional<ChatTemplate> chat = ChatTemplate::find(settings_.start);
    RewardSet rewards(settings_.online.reward, model_sources({.tokenizer_fingerprint = tokenizer_->fingerprint(),
                                                              .chat_template_fingerprint = chat ? chat->fingerprint() : "",
                                                              .device = storage_.device,
                                                              .dtype = storage_.dtype,
                                                              .stop = {}}));
    EvalPolicies policies({.storage = storage_, .starts = starts_, .reference = reference(), .engine_of = [this](const Model& model) {
                             return engine_config(settings_.online, lengths_, model, 1);
                           }});
    const auto num_policies = std::ssize(found_.targets);
    CountedRewards counted(rewards, num_policies, std::ssize(batch_) * options_.samples);
    log_info(num_policies, num_policies == 1 ? " policy" : " policies", " on ", name_of(storage_.device), " in ", name_of(storage_.dtype),
             ": ", about());
    EvalRows rows;
    RolloutRows baseline;
    for (size_t i = 0; i < found_.targets.size();) {
      const EvalTarget target = found_.targets[i];
      if (is_gone(target)) {
        log_warn(target.folder.string(), ": no longer exists; the run has kept other checkpoints since");
        found_.targets.erase(found_.targets.begin() + static_cast<int64_t>(i));
        continue;
      }
      ++i;
      const auto begin = std::chrono::steady_clock::now();
      const std::string name = shown_name(target);
      counted.begin(name);
      policies.load(target);
      RolloutRows answered = answer(policies, counted);
      counted.end();
      if (baseline.empty()) baseline = answered;
      rows.push_back(numbers_of(target, answered, baseline));
      if (answers) answers->append(answer_lines(target, answered, baseline));
      if (options_.json) print_json_line(eval_json(rows.back()));
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      const std::optional<double> reward = rows.back().mean_reward();
      log_info(name, ": reward ", reward ? format_number(*reward) : "none", " (", rows.size(), " of ", num_policies, ", ",
               format_duration(seconds), ")");
    }
    if (answers) answers->commit();
    if (csv) {
      csv->append(eval_csv(rows));
      csv->commit();
    }
    home.reset();
    set_status_line("");
    if (!options_.json) print_text(page_of(rows));
    return kExitOk;
  }

 private:
  // An active run removes checkpoints that are no longer among its best.
  [[nodiscard]] static bool is_gone(const EvalTarget& target) {
    return target.run && target.step.value_or(0) > 0 && !is_folder(target.folder);
  }

  void find_starts() {
    for (const EvalTarget& target : found_.targets) {
      if (!is_of_online_run(target) || starts_.contains(target.run->folder)) continue;
      const bool is_own = target.run == found_.run;
      const PolicySettings other = is_own ? PolicySettings() : settings_of_run(*target.run, {});
      logged_.emplace(target.run->folder, logged_rewards(*target.run));
      starts_.emplace(target.run->folder,
                      RunStart{is_own ? settings_.start : other.start, is_own ? settings_.online.model : other.online.model});
    }
  }

  void check_tokenizers() const {
    std::set<Path> seen = {settings_.start};
    for (const EvalTarget& target : found_.targets) {
      const Path folder = is_of_online_run(target) ? starts_.at(target.run->folder).folder : target.base;
      if (!seen.insert(folder).second) continue;
      check(load_tokenizer(folder)->fingerprint() == tokenizer_->fingerprint(), folder.string(), ": has a different tokenizer from ",
            settings_.start.string(), "; the prompts would be different ones to it");
    }
  }

  void open_prompts() {
    const InFolder in_folder(settings_.home);
    const DataConfig& data = settings_.online.model.data;
    const std::map<std::string, Rows> splits = open_data(data, "model.data");
    const auto found = splits.find("validation");
    const std::string of = found_.run ? found_.run->folder.string() : words_.folders.front();
    check(found != splits.end() && found->second.size() > 0, of, ": has no validation prompts; give --prompts FILE");
    prompts_.emplace(found->second, encoder_of(*tokenizer_, network_.vocab_size), data, lengths_.max_prompt,
                     chat_of_model(settings_.start));
    check(prompts_->size() > 0, found->second.name(), ": holds no prompts");
    const int64_t limit = options_.limit.value_or(settings_.online.rollouts.num_val_samples);
    batch_.resize(static_cast<size_t>(limit == 0 ? prompts_->size() : std::min(limit, prompts_->size())));
    std::iota(batch_.begin(), batch_.end(), 0);
    // The size of the KV cache.
    settings_.online.rollouts.num_rollout_samples = std::ssize(batch_);
    settings_.online.samples_per_prompt = options_.samples;
  }

  // A single policy has nothing to be compared with.
  [[nodiscard]] bool compares() const { return found_.targets.size() > 1; }
  [[nodiscard]] bool wants_kl() const { return options_.kl && compares(); }
  // What the KL is measured from: the run's start, else the baseline.
  [[nodiscard]] std::optional<EvalTarget> reference() const {
    if (!wants_kl()) return std::nullopt;
    if (found_.run) return EvalTarget{.kind = PolicyKind::start, .folder = found_.run->folder, .run = found_.run, .step = 0};
    return found_.targets.front();
  }

  RolloutRows answer(EvalPolicies& policies, RewardSource& rewards) const {
    const OnlineSettings& online = settings_.online;
    const double temperature = online.rollouts.temperature();
    RolloutMaker maker(policies.engine(), RolloutScorers(rewards), Group::single());
    // Samples as a validation does, so that a run's own prompts get the same answers as then.
    RolloutRows rows = maker.generate({.prompts = *prompts_,
                                       .batch = batch_,
                                       .num_samples = options_.samples,
                                       .max_new = lengths_.val_max_new,
                                       .min_new = online.rollouts.val_length_params->min_length,
                                       .sampling = *online.rollouts.val_sampling_params,
                                       .logprob_temperature = temperature,
                                       .responses = responses_,
                                       .vocab_size = drawable_ids(*tokenizer_, policies.model()),
                                       .seed = static_cast<uint64_t>(online.model.seed),
                                       .purpose = kValidation,
                                       .round = 0});
    if (policies.has_reference()) {
      std::vector<int64_t> places(rows.size()), lengths;
      std::iota(places.begin(), places.end(), 0);
      for (const RolloutRow& row : rows) lengths.push_back(row.rollout->length());
      const bool shares = online.rollouts.share_prompts && options_.samples > 1 &&
                          can_share_prompts(policies.model().config(), policies.model().device(), lengths_.context);
      RowGroups groups = shares ? prompt_groups(rows, true) : RowGroups();
      groups.may_divide = true;
      const std::vector<Pass> passes = plan_passes(places, lengths, online.rollouts.tokens_per_pass, groups);
      if (trusts_engine(online.rollouts.logprobs, policies.model().device(), false)) {
        for (RolloutRow& row : rows) row.logprobs = row.rollout->logprobs;
      } else {
        add_policy_logprobs(policies.model(), passes, rows, temperature);
      }
      policies.with_reference([&](const Model& reference) { add_reference_logprobs(reference, passes, rows, temperature); });
    }
    maker.take_rewards(rows);
    add_kl(rows, online.kl_estimator);
    return rows;
  }

  [[nodiscard]] EvalRow numbers_of(const EvalTarget& target, const RolloutRows& rows, const RolloutRows& baseline) const {
    EvalRow row{.name = target.name, .step = target.step, .answers = answer_metrics(rows), .reward = reward_of_prompts(rows)};
    if (compares()) row.against = compare_answers(rows, baseline);
    for (const int64_t k : ks_)
      if (const auto rate = pass_rate(rows, *options_.pass, k)) row.passes.emplace_back(k, *rate);
    if (wants_kl()) {
      const Metrics kl = kl_metrics(rows);
      row.kl = kl.find("init_policy_kl");
      row.kl_sum = kl.find("init_policy_kl_sum");
    }
    if (target.kind == PolicyKind::checkpoint) {
      const std::map<int64_t, double>& logged = logged_.at(target.run->folder);
      if (const auto found = logged.find(*target.step); found != logged.end()) row.logged = found->second;
    }
    return row;
  }

  // "64 prompts x 1 answer of up to 64 tokens, temperature 1, seed 1"
  [[nodiscard]] std::string about() const {
    const SamplingConfig& sampling = *settings_.online.rollouts.val_sampling_params;
    std::string text = str(batch_.size(), " prompts x ", options_.samples, options_.samples == 1 ? " answer" : " answers", " of up to ",
                           lengths_.val_max_new, " tokens, ");
    if (sampling.use_greedy) return text + "greedy";
    text += str("temperature ", format_number(sampling.temperature));
    if (sampling.top_k > 0) text += str(", top-k ", sampling.top_k);
    if (sampling.top_p > 0 && sampling.top_p < 1) text += str(", top-p ", format_number(sampling.top_p));
    return str(text, ", seed ", settings_.online.model.seed);
  }

  // Answers are sampled as in the run's validations.
  [[nodiscard]] bool is_as_logged() const {
    const EvalOptions& o = options_;
    return words_.overrides.empty() && !o.prompts && !o.limit && !o.reward && o.samples == 1 && !o.greedy && !o.temperature && !o.top_k &&
           !o.top_p && !o.max_new && !o.seed;
  }
  [[nodiscard]] std::string logged_text(const EvalRows& rows) const {
    double gap = 0;
    int64_t count = 0;
    for (const EvalRow& row : rows)
      if (row.logged && row.mean_reward()) {
        gap = std::max(gap, std::abs(*row.logged - *row.mean_reward()));
        ++count;
      }
    if (count == 0 || !is_as_logged()) return "";
    if (gap == 0) return "The rewards are those that the run logged at these steps.";
    return str("The run logged rewards that differ by up to ", format_number(gap), "; --csv has both.");
  }

  [[nodiscard]] bool is_one_run() const {
    return std::all_of(found_.targets.begin(), found_.targets.end(),
                       [](const EvalTarget& target) { return target.step && target.name == std::to_string(*target.step); });
  }
  [[nodiscard]] std::string shown_name(const EvalTarget& target) const { return is_one_run() ? "step " + target.name : target.name; }

  [[nodiscard]] std::string page_of(const EvalRows& rows) const {
    const PageLook page = look_of_output(false);
    const std::optional<size_t> best = compares() ? best_of(rows) : std::nullopt;
    TableLook look{.page = page, .marked = best, .names = is_one_run() ? kStep : "policy"};
    look.utf8 = is_utf8_locale(std::getenv("LC_ALL"), std::getenv("LC_CTYPE"), std::getenv("LANG"));
    std::vector<std::string> pieces = words_.folders;
    pieces.push_back(about());
    const EvalTable table = eval_table(rows, look);
    std::string text = heading_text("", pieces, page) + "\n" + table.text;
    if (!table.left_out.empty()) text += "\n" + remark_text(left_out_text(table.left_out), page);
    if (const std::string logged = logged_text(rows); !logged.empty()) text += "\n" + remark_text(logged, page);
    return best ? text + "\n" + best_text(rows, *best) : text;
  }
  [[nodiscard]] std::string left_out_text(const std::vector<std::string>& names) const {
    std::string text = "No room for";
    for (const std::string& name : names) text += str(&name == &names.front() ? " " : ", ", name);
    return text + (options_.csv ? "; " + *options_.csv + " has them." : "; --csv FILE has them.");
  }
  [[nodiscard]] std::string best_text(const EvalRows& rows, size_t best) const {
    const EvalRow& row = rows[best];
    const EvalTarget &target = found_.targets[best], &baseline = found_.targets.front();
    const std::string against = is_one_run() && baseline.step == 0 ? "the start" : shown_name(baseline);
    if (best == 0) return str("No policy has a higher reward than ", against, ".\n");
    std::vector<std::string> pieces = {str("Best: ", shown_name(target)), str("reward ", format_number(*row.mean_reward()))};
    if (row.against) pieces.push_back(str(wins_text(*row.against), " against ", against));
    std::string text = heading_text("", pieces, look_of_output(false));
    if (target.run && target.step.value_or(0) > 0) text += str("  kedge export ", shown_run(target), " OUT --step ", *target.step, "\n");
    return text;
  }
  // The shortest path from here.
  [[nodiscard]] static std::string shown_run(const EvalTarget& target) {
    const Path relative = fs::proximate(target.run->folder);
    return relative.string().size() < target.run->folder.string().size() ? relative.string() : target.run->folder.string();
  }

  const EvalOptions& options_;
  const Words& words_;
  std::vector<int64_t> ks_;
  Policies found_;
  PolicySettings settings_;
  StorageOptions storage_;
  ModelConfig network_;
  std::unique_ptr<Tokenizer> tokenizer_;
  OnlineLengths lengths_;
  ResponseText responses_;
  std::map<Path, RunStart> starts_;                   // by the folder of the run, as is the next
  std::map<Path, std::map<int64_t, double>> logged_;  // rewards by step
  std::optional<PromptDataset> prompts_;
  std::vector<int64_t> batch_;
};

}  // namespace

std::string eval_flags() { return options_help<EvalOptions>(kEvalPositionals); }

int run_eval(const Arguments& arguments) {
  const auto options = parse_options<EvalOptions>(arguments, kEvalPositionals);
  const Words words = words_of(options.what);
  return Evaluation(options, words).run();
}

}  // namespace kedge::cli
