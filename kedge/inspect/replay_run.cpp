#include "kedge/inspect/replay_run.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include <ATen/Parallel.h>

#include "kedge/config/yaml.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/model/files/model_files.h"
#include "kedge/reward/reward_sources.h"
#include "kedge/run/device_setup.h"
#include "kedge/text/chat/chat_template.h"
#include "kedge/train/checkpoint/run_record.h"

namespace kedge {
namespace {

// Several ranks sum in another order than one. The difference is tiny at first, and grows with every update.
constexpr double kLooseTolerance = 1e-3;

std::string where_of(const RunOnDisk& run) { return (run.folder / "run.json").string(); }
const Json& last_start(const RunOnDisk& run) { return run.starts.as_array(where_of(run)).back(); }

// What a checkpoint says of the run that saved it.
const Json& identity_of(const Checkpoint& checkpoint) {
  const std::string where = (checkpoint.folder / "meta.json").string();
  return checkpoint.meta.record.at("identity", where);
}

// Without keys that only set a run's folder and length.
std::string settings_text(const Json& identity) {
  Json::Object kept;
  for (const auto& [key, value] : identity.as_object("settings"))
    if (key != "exp_manager" && key != "network" && key != "tokenizer" && key != "ranks") kept.emplace_back(key, value);
  return Json(kept).dump_compact();
}

// The same as a configuration to load; without keys that a checkpoint adds.
ConfigText config_of(const Checkpoint& checkpoint) {
  Json::Object kept;
  for (const auto& [key, value] : identity_of(checkpoint).as_object("settings"))
    if (key != "network" && key != "tokenizer" && key != "ranks") kept.emplace_back(key, value);
  return {(checkpoint.folder / "meta.json").string(), Json(kept).dump()};
}

const SettingsPart& part_of(const std::vector<SettingsPart>& parts, int64_t step) {
  const SettingsPart* found = &parts.front();
  for (const SettingsPart& part : parts)
    if (part.from <= step) found = &part;
  return *found;
}

// Loads the settings under which the step was done. A replay has one rank, which needs no queue.
OnlineJob& load_job(OnlineJob& job, const RunOnDisk& run, int64_t step) {
  const std::vector<std::string> overrides = {"trainer.devices=null", "trainer.num_nodes=null", "model.tensor_model_parallel_size=1",
                                              "model.generation.tensor_parallel_size=null",
                                              str("trainer.", run.algorithm, ".batch_iterator.use_flask=false")};
  const std::vector<SettingsPart> parts = settings_parts(run, job);
  const SettingsPart& part = part_of(parts, step);
  if (part.keeper) {
    static_cast<void>(load_section(job.section(), config_of(*part.keeper), overrides));
    take_older_values(job.section(), identity_of(*part.keeper));
  } else {
    load_config(job.section(), run.config, overrides);
    take_older_values(job.section(), to_json(parse_yaml(read_text(run.config), run.config.string())));
  }
  return job;
}

// Is the source's reward taken from the record?
bool is_recorded(RewardKind kind, const ReplayChoice& choice) {
  const bool is_server = kind == RewardKind::server || kind == RewardKind::http;
  return kind == RewardKind::critic || kind == RewardKind::custom || (is_server && !choice.servers);
}

// The checkpoint of another run that this one started from.
std::optional<Path> parent_of(const RunOnDisk& run) {
  std::optional<Path> parent;
  const std::string where = where_of(run);
  for (const Json& start : run.starts.as_array(where)) {
    const Json* found = start.find("parent");
    if (found != nullptr && !found->is_null()) parent = run.started_in / found->as_text(where);
  }
  return parent;
}

std::string label_of(const std::string& key) {
  constexpr std::string_view kSources = "reward.sources.", kWatch = "reward.watch.";
  return key.starts_with(kSources) ? key.substr(kSources.size()) : "watch/" + key.substr(kWatch.size());
}

}  // namespace

Path records_of(const RunOnDisk& run) { return run.folder / "rollouts"; }

ReplayRange range_of(const RunOnDisk& run) {
  ReplayRange range{.recorded = recorded_steps(records_of(run))};
  check(!range.recorded.empty() || !run.checkpoints.empty(), run.folder.string(), ": holds neither records (rollouts/step-N.jsonl) nor ",
        "checkpoints, so no step of it can be replayed");
  if (!range.recorded.empty()) range.first = range.recorded.front(), range.last = range.recorded.back();
  if (const auto parent = parent_of(run); parent && is_file(*parent / "meta.json")) range.first = read_checkpoint(*parent).step();
  if (!run.checkpoints.empty()) range.last = std::max(range.last, run.checkpoints.back().step() - 1);
  return range;
}

std::optional<std::string> known_weights(const RunOnDisk& run, int64_t step) {
  const auto header_of = [&](int64_t of) -> std::optional<RecordHeader> {
    const Path file = record_path(records_of(run), of);
    if (!is_file(file)) return std::nullopt;
    return parse_record_header(read_text(file), file.string());
  };
  if (const auto next = header_of(step); next && !next->weights_before.empty()) return next->weights_before;
  if (const auto before = header_of(step - 1); before && !before->weights_after.empty()) return before->weights_after;
  for (const Checkpoint& checkpoint : run.checkpoints)
    if (checkpoint.step() == step) return saved_weights_hash(checkpoint.folder / "state");
  return std::nullopt;
}

std::vector<std::string> changed_inputs(const RunOnDisk& run) {
  std::vector<std::string> changed;
  const std::string where = where_of(run);
  for (const char* kind : {"model", "data"})
    for (const Json& entry : last_start(run).at(kind, where).as_array(where)) {
      const std::string name = entry.at("file", where).as_text(where);
      const Path file = run.started_in / name;
      if (!is_file(file)) {
        changed.push_back(name + " no longer exists");
      } else if (file_hash(file) != entry.at("hash", where).as_text(where)) {
        changed.push_back(name + " has changed since the run was started");
      }
    }
  return changed;
}

void enter_start_folder(const RunOnDisk& run) {
  std::error_code error;
  std::filesystem::current_path(run.started_in, error);
  if (error)
    log_warn("the folder the run was started in, ", run.started_in.string(), ", cannot be entered (", error.message(),
             "): relative paths in its settings are resolved from the current folder");
}

std::vector<SettingsPart> settings_parts(const RunOnDisk& run, OnlineJob& job) {
  std::vector<SettingsPart> parts;
  std::string before;
  int64_t from = 0;
  for (const Checkpoint& checkpoint : run.checkpoints) {
    std::string settings = settings_text(identity_of(checkpoint));
    if (parts.empty() || settings != before) parts.push_back({from, checkpoint});
    before = std::move(settings);
    from = checkpoint.step();
  }
  // Steps after the newest checkpoint were done with the settings of the last start.
  load_config(job.section(), run.config, {});
  if (parts.empty() || settings_text(to_json(section_node(job.section()))) != before) parts.push_back({from});
  return parts;
}

ReplayRun::ReplayRun(OnlineJob& job, const RunOnDisk& run, const ReplayChoice& choice, int64_t step)
    : job_(job),
      run_(run),
      choice_(choice),
      setup_(load_job(job, run, step), {.has_critic = false}),
      critic_([this](const Rollout& rollout) { return store_->find(rollout); }),
      collector_(critic_) {
  check(setup_.mesh.world.size() == 1, "a replay runs on one rank, but ", setup_.mesh.world.size(), " were started");
  const std::string where = where_of(run);
  setup_.settings.identity += files_fingerprint(setup_);
  // What a CPU computes may depend on the number of threads.
  if (setup_.mesh.device.is_cpu()) at::set_num_threads(static_cast<int>(last_start(run).at("threads", where).as_integer(where)));
  choose_tolerance();
  tell_of_rewards();
  store_.emplace(records_of(run), setup_.network.vocab_size, tolerance_);
  rewards_ = std::make_unique<RewardSet>(setup_.settings.reward, reward_maker());
  model_ = load_model(setup_.folder, {.storage = setup_.storage, .head = HeadKind::language});
  add_trained_adapters(*model_, setup_.settings.model);
  if (job_.has_critic()) notes_.emplace_back("the critic's values are taken from the record; no critic is queried");
  const std::optional<Checkpoint> checkpoint = find_checkpoint(step);
  trainer_ = job_.make_trainer({.model = *model_,
                                .tokenizer = *setup_.tokenizer,
                                .rewards = *rewards_,
                                .values = job_.has_critic() ? &collector_ : nullptr,
                                .prompts = setup_.prompts,
                                .validation = setup_.validation,
                                .group = setup_.mesh.world,
                                .store = &*store_,
                                .position = checkpoint ? std::optional(position_of(*checkpoint)) : std::nullopt},
                               setup_.settings);
  start_ = "the starting model";
  if (checkpoint) {
    next_ = restore(*trainer_, *checkpoint);
    start_ = str("the checkpoint of step ", next_);
  }
  check(next_ <= step, run_.folder.string(), ": starts at step ", next_, "; there is no step ", step, " in it");
}

ReplayRun::~ReplayRun() = default;

void ReplayRun::choose_tolerance() {
  const std::string where = where_of(run_), here = name_of(setup_.mesh.device);
  std::string why;
  if (setup_.mesh.device.is_cuda() && !job_.compute().deterministic)
    why = "on a GPU results are not bit-identical without trainer.deterministic=true";
  // Which steps a start made is not known, so one of them is enough.
  for (const Json& start : run_.starts.as_array(where)) {
    const int64_t num_ranks = start.at("ranks", where).as_integer(where);
    const std::string& device = start.at("device", where).as_text(where);
    if (device != here) why = str("the run computed on ", device, ", this is ", here);
    if (num_ranks > 1) why = str("the run had ", num_ranks, " ranks, which sum in another order than one rank");
  }
  if (why.empty()) return;
  tolerance_ = kLooseTolerance;
  notes_.push_back(str(why, ": values are compared with a tolerance of ", kLooseTolerance, ", and the hashes of weights are not compared"));
}

void ReplayRun::tell_of_rewards() {
  std::string servers, critics, programs;
  const auto add = [&](const std::map<std::string, RewardSourceConfig>& sources) {
    for (const auto& [name, source] : sources) {
      if (!is_recorded(source.kind, choice_)) continue;
      std::string& names = source.kind == RewardKind::critic ? critics : source.kind == RewardKind::custom ? programs : servers;
      names += (names.empty() ? "" : ", ") + name;
    }
  };
  add(setup_.settings.reward.sources);
  add(setup_.settings.reward.watch);
  if (!servers.empty()) notes_.push_back(str("rewards of servers (", servers, ") are taken from the record; --servers queries them again"));
  if (!programs.empty()) notes_.push_back(str("rewards of the run's program (", programs, ") are taken from the record"));
  if (!critics.empty()) notes_.push_back(str("rewards of the critic (", critics, ") are taken from the record"));
}

RewardSourceMaker ReplayRun::reward_maker() {
  const std::optional<ChatTemplate> chat = ChatTemplate::find(setup_.folder);
  const RewardSourceMaker make = model_sources({.tokenizer_fingerprint = setup_.tokenizer->fingerprint(),
                                                .chat_template_fingerprint = chat ? chat->fingerprint() : "",
                                                .device = setup_.mesh.device,
                                                .dtype = setup_.storage.dtype});
  return [this, make](const std::string& key, const RewardSourceConfig& config) -> std::unique_ptr<RewardSource> {
    if (!is_recorded(config.kind, choice_)) return make(key, config);
    return std::make_unique<RecordedReward>([this](const Rollout& rollout) { return store_->find(rollout); }, key, label_of(key));
  };
}

std::optional<Checkpoint> ReplayRun::find_checkpoint(int64_t step) {
  for (auto checkpoint = run_.checkpoints.rbegin(); checkpoint != run_.checkpoints.rend(); ++checkpoint) {
    if (checkpoint->step() > step) continue;
    const std::vector<std::string> damage = find_damage(*checkpoint);
    if (damage.empty()) return *checkpoint;
    notes_.push_back(str("skipped the checkpoint of step ", checkpoint->step(), ": ", damage.front()));
    log_warn(checkpoint->folder.string(), ": ", damage.front());
  }
  if (const auto parent = parent_of(run_)) return open_checkpoint(*parent, "the checkpoint the run was forked from");
  if (const auto& other = job_.config().exp_manager.resume_from_checkpoint)
    return open_checkpoint(*other, "exp_manager.resume_from_checkpoint");
  return std::nullopt;
}

void ReplayRun::add_logprobs(RolloutRows& rows) {
  std::vector<int64_t> places(rows.size()), lengths;
  std::iota(places.begin(), places.end(), 0);
  for (const RolloutRow& row : rows) lengths.push_back(row.rollout->length());
  trainer_->policy().logprobs(plan_passes(places, lengths, setup_.settings.rollouts.tokens_per_pass), rows);
}

StepComparison ReplayRun::play(bool closely) {
  if (closely) {
    ReplayHelpers helpers{.rewards = rewards_.get(), .draws = choice_.regenerate};
    // On a CPU generation and training are bit-identical, in any passes. Elsewhere those of training itself are compared.
    if (setup_.mesh.device.is_cpu()) helpers.add_logprobs = [this](RolloutRows& rows) { add_logprobs(rows); };
    store_->look_closely(std::move(helpers));
  }
  static_cast<void>(trainer_->train_step());
  StepComparison comparison = store_->comparison();
  next_ += 1;
  if (!comparison.quantities.empty() || !is_exact()) return comparison;
  if (const auto known = known_weights(run_, next_)) {
    QuantityCheck weights{std::string(kWeightsAfter), 0};
    weights.words(*known, store_->weights_after(), {});
    weights.give(comparison);
  }
  return comparison;
}

}  // namespace kedge
