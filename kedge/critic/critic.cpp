#include "kedge/critic/critic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/net/request_error.h"
#include "kedge/train/checkpoint/state_parts.h"

namespace kedge {
namespace {

constexpr size_t kNumRemembered = 64;
constexpr const char *kTrain = "train", *kSave = "save", *kRestore = "restore";
constexpr const char *kActorStep = "actor_step", *kTrainCalls = "train_calls";  // counters of a checkpoint
constexpr const char *kOwner = "owner", *kEpoch = "epoch";                      // of its record, and of a journal's remark
constexpr const char* kLastLoss = "last_loss";                                  // of its record
constexpr size_t kNumKept = 3;

std::optional<int64_t> label_of(const Checkpoint& checkpoint) {
  const auto found = checkpoint.meta.counters.find(kActorStep);
  return found == checkpoint.meta.counters.end() ? std::nullopt : std::optional(found->second);
}

// The newest with that label, or null.
const Checkpoint* find_label(const std::vector<Checkpoint>& saved, int64_t label) {
  const auto found = std::find_if(saved.rbegin(), saved.rend(), [&](const Checkpoint& one) { return label_of(one) == label; });
  return found == saved.rend() ? nullptr : &*found;
}

// Of the newest update that it holds; none at the beginning, and in checkpoints from before it was kept.
std::optional<double> loss_of(const Checkpoint* checkpoint) {
  const Json* loss = checkpoint == nullptr ? nullptr : checkpoint->meta.record.find(kLastLoss);
  return loss == nullptr || loss->is_null() ? std::nullopt : std::optional(loss->as_number(kLastLoss));
}

// "3, 5 and 0, the start": what can be restored.
std::string labels_text(const std::vector<Checkpoint>& checkpoints) {
  std::string text;
  for (const Checkpoint& one : checkpoints)
    if (const auto label = label_of(one); label && *label != 0) text += (text.empty() ? "" : ", ") + std::to_string(*label);
  return text.empty() ? "only 0, the start" : text + " and 0, the start";
}

Json remark_of(Json done, const std::string& owner, int64_t epoch) {
  done.set(kOwner, owner);
  done.set(kEpoch, epoch);
  return done;
}

int64_t num_told(CallHistory& history) {
  int64_t count = 0;
  history.tell({.load = [](const Checkpoint*) {}, .remark = [](const Json&) {}, .call = [&](std::string_view) { ++count; }});
  return count;
}

}  // namespace

Critic::Critic(CriticParts parts) : parts_(std::move(parts)) {
  if (parts_.group.rank() == 0) history_.emplace(parts_.folder, "megatron_gpt-{step}", kNumKept);
  if (history_ && (is_of_ranks() || parts_.ranks != nullptr)) remove_parts(parts_.folder);
  if (journals()) {
    recover();
    return;
  }
  start();
  is_usable_ = true;
}

void Critic::check_usable() const {
  if (!is_usable_) throw Error("the critic could not be restored to the state in its folder after an error; restart it");
}

void Critic::check_caller(const CriticCaller& caller) const {
  const bool takes_over = caller.takes_over && !caller.run.empty();
  if (!owner_.empty() && caller.run != owner_ && !takes_over)
    throw RequestError(409, str("this critic, in ", parts_.folder.string(), ", belongs to run ", owner_, ", but the call comes from ",
                                caller.run.empty() ? "a caller that gives no run" : "run " + caller.run,
                                ". Use a separate critic for each run; to take this one over, set remote_critic_rm.critic.take_over=true"));
  check_epoch(caller.epoch);
}

void Critic::check_epoch(std::optional<int64_t> epoch) const {
  if (epoch && *epoch != epoch_)
    throw RequestError(409, str("the call comes from an actor that was replaced: its epoch is ", *epoch, ", but the critic is at epoch ",
                                epoch_, " since another actor restored it"));
}

Tensor Critic::values(std::span<const TokenIds> rows) const {
  check_usable();
  return parts_.ranks == nullptr ? model_->values(rows) : parts_.ranks->values(*model_, rows);
}

Tensor Critic::rewards(std::span<const TokenIds> rows) {
  check_usable();
  return parts_.ranks == nullptr ? model_->rewards(rows) : parts_.ranks->rewards(*model_, rows);
}

void Critic::start() {
  model_.reset();  // its memory first
  std::unique_ptr<CriticModel> model;
  std::string print;
  const auto begin = [&] {
    model = parts_.start();
    print = start_print(model->model());
  };
  if (parts_.ranks == nullptr) {
    begin();
  } else {
    parts_.ranks->start(begin);  // on all ranks, or there is none
  }
  model_ = std::move(model);
  if (!start_print_.empty()) check_start(print);
  start_print_ = print;
}

// The same calls on another initial model give another critic, unnoticed.
void Critic::check_start(const std::string& print) const {
  check(print == start_print_, "pretrained_checkpoint.restore_from_path: not the model that the critic in ", parts_.folder.string(),
        " started from: its weights, its config.json or the seed of new weights differ. Use the original model, or start from scratch in "
        "another "
        "exp_manager.explicit_log_dir");
}

void Critic::recover() {
  is_usable_ = false;
  int64_t num_calls = 0, num_begun = 0;
  bool has_changed = false;
  try {
    history_->tell({.load = [&](const Checkpoint* checkpoint) { load(checkpoint); },
                    .remark =
                        [&](const Json& remark) {
                          remember_json(remark);
                          read_owner(remark);
                        },
                    .call =
                        [&](std::string_view bytes) {
                          const TrainCall call = read_train_call(bytes);
                          check_start(call.start);
                          has_changed = has_changed || call.settings != model_->settings();
                          ++num_begun;
                          static_cast<void>(apply(call.batch, call.key));
                          ++num_calls;
                        }});
  } catch (const std::exception& error) {
    // If the process was killed before the rollback, the newest call failed then as now. Memory may suffice at the next start.
    if (num_begun == num_calls || num_begun < num_told(*history_) || is_out_of_memory(error)) throw;
    log_warn("the newest training call fails and is rolled back: ", error.what());
    history_->take_back();
    return recover();
  }
  is_usable_ = true;
  calls_since_save_ = num_calls;
  if (has_changed)
    log_warn(parts_.folder.string(),
             ": training settings have changed since the calls after the checkpoint; they were replayed with the current settings, so "
             "the weights are not the same as before");
  if (num_calls > 0) log_info("replayed ", num_calls, " training calls that came after the checkpoint; step ", model_->step());
}

void Critic::load(const Checkpoint* checkpoint) {
  train_calls_ = epoch_ = 0;
  last_loss_ = loss_of(checkpoint);
  owner_.clear();
  remembered_.clear();
  SinkPositions positions;
  if (checkpoint == nullptr) {
    start();
  } else {
    if (!model_) start();
    const std::string where = checkpoint->folder.string() + "/meta.json";
    check_start(checkpoint->meta.record.at("start", where).as_text(where));
    load_state(checkpoint->folder / "state");
    train_calls_ = checkpoint->meta.counters.at(kTrainCalls);
    read_owner(checkpoint->meta.record);
    for (const Json& done : checkpoint->meta.record.at("calls", where).as_array(where)) remember_json(done);
    for (const auto& [name, position] : checkpoint->meta.record.at("positions", where).as_object(where))
      positions[name] = position.as_integer(where);
  }
  try {
    parts_.log.resume(model_->step(), positions);
  } catch (const UsageError& error) {
    log_warn("the critic continues, but its metrics may be duplicated or missing: ", error.what());  // weights do not depend on a log
  }
}

void Critic::load_state(const Path& state) {
  if (parts_.ranks != nullptr) return parts_.ranks->load(*model_, state);
  model_->load(StateFiles(state));
}

// Folders from before there were owners have none.
void Critic::read_owner(const Json& json) {
  if (const Json* owner = json.find(kOwner)) owner_ = owner->as_text(kOwner);
  if (const Json* epoch = json.find(kEpoch)) epoch_ = epoch->as_integer(kEpoch);
}

const CriticResult* Critic::find(std::string_view call, const std::string& key) const {
  if (key.empty()) return nullptr;
  for (const Remembered& done : remembered_)
    if (done.call == call && done.key == key) return &done.result;
  return nullptr;
}

CriticResult Critic::remember(Remembered done) {
  const CriticResult result = done.result;
  if (done.key.empty() || find(done.call, done.key) != nullptr) return result;
  remembered_.push_back(std::move(done));
  if (remembered_.size() > kNumRemembered) remembered_.pop_front();
  return result;
}

Json Critic::to_json(const Remembered& done) {
  Json json;
  json.set("call", done.call);
  json.set("key", done.key);
  json.set("loss", done.result.loss ? Json(*done.result.loss) : Json());
  json.set("train_calls", done.result.train_calls);
  json.set("given_epoch", done.result.epoch);
  return json;
}

void Critic::remember_json(const Json& done) {
  const std::string where = "a remembered call";
  const Json &loss = done.at("loss", where), *epoch = done.find("given_epoch");
  remember({done.at("call", where).as_text(where),
            done.at("key", where).as_text(where),
            {loss.is_null() ? std::nullopt : std::optional(loss.as_number(where)), done.at("train_calls", where).as_integer(where),
             epoch == nullptr ? 0 : epoch->as_integer(where)}});
}

CriticResult Critic::apply(const CriticBatch& batch, const std::string& key) {
  const int64_t before = model_->step();
  const std::vector<Metrics> updates = parts_.ranks == nullptr ? model_->train(batch) : parts_.ranks->train(*model_, batch);
  for (size_t i = 0; i < updates.size(); ++i) parts_.log.write(before + static_cast<int64_t>(i), updates[i]);
  ++train_calls_;
  last_loss_ = updates.back().find("train/loss").value();
  return remember({kTrain, key, {last_loss_, train_calls_}});
}

// Again at every doubling.
void Critic::warn_of_journal() {
  const int64_t times = ++calls_since_save_ / parts_.warn_after_calls;
  if (calls_since_save_ % parts_.warn_after_calls == 0 && (times & (times - 1)) == 0)
    log_warn(calls_since_save_, " training calls without a critic_save: ", (parts_.folder / "journals").string(),
             " grows with every call, and a restart replays all of them");
}

CriticResult Critic::train(const CriticBatch& batch, const std::string& key, std::optional<int64_t> after, const CriticCaller& caller) {
  check_usable();
  check_caller(caller);
  if (const CriticResult* known = find(kTrain, key)) return *known;
  if (after && *after != train_calls_)
    throw RequestError(409, str("the call expects a critic after ", *after, " training calls, but this one has had ", train_calls_));
  if (!journals()) return apply(batch, key);
  history_->append(to_bytes({key, model_->settings(), start_print_, batch}));
  try {
    const CriticResult result = apply(batch, key);
    warn_of_journal();
    return result;
  } catch (...) {
    is_usable_ = false;
    history_->take_back();
    recover();
    throw;
  }
}

CheckpointMeta Critic::meta(std::optional<int64_t> actor_step, const Remembered& save, const std::string& owner) {
  CheckpointMeta meta;
  meta.counters = {{"step", model_->step()}, {kTrainCalls, train_calls_}};
  if (actor_step) meta.counters[kActorStep] = *actor_step;
  Json calls{Json::Array{}}, positions{Json::Object{}};
  for (const Remembered& done : remembered_) calls.push_back(to_json(done));
  calls.push_back(to_json(save));
  for (const auto& [name, position] : parts_.log.positions()) positions.append(name, Json(position));
  meta.record.set("start", start_print_);
  meta.record.set(kOwner, owner);
  meta.record.set(kEpoch, epoch_);
  if (last_loss_) meta.record.set(kLastLoss, *last_loss_);
  meta.record.set("calls", std::move(calls));
  meta.record.set("positions", std::move(positions));
  return meta;
}

// Has the newest checkpoint this label, and was nothing trained since? A second one would only push out an older one. Rank 0 decides.
bool Critic::is_saved(int64_t actor_step) const {
  std::array<double, 1> answer = {0};
  if (history_) {
    const std::vector<Checkpoint> saved = history_->checkpoints();
    const bool is_newest = !saved.empty() && label_of(saved.back()) == actor_step;
    answer[0] = is_newest && saved.back().meta.counters.at(kTrainCalls) == train_calls_ ? 1 : 0;
  }
  parts_.group.all_reduce(std::span<double>(answer), Reduce::max);
  return answer[0] != 0;
}

CriticResult Critic::save(std::optional<int64_t> actor_step, const std::string& key, const CriticCaller& caller,
                          const std::vector<int64_t>& resumable_steps) {
  check_usable();
  check_caller(caller);
  if (const CriticResult* known = find(kSave, key)) return *known;
  const Remembered done{kSave, key, {{}, train_calls_}};
  if (actor_step && is_saved(*actor_step)) return remember(done);
  const std::string owner = caller.run.empty() ? owner_ : caller.run;
  write_save(meta(actor_step, done, owner), remark_of(to_json(done), owner, epoch_), resumable_steps);
  owner_ = owner;
  calls_since_save_ = 0;
  return remember(done);
}

// Directly from the tensors: nothing is trained meanwhile. What goes wrong on another rank is rank 0's Error.
void Critic::write_save(const CheckpointMeta& meta, const Json& remark, const std::vector<int64_t>& resumable_steps) {
  if (!history_) return write_critic_part(*model_, parts_.group, parts_.folder);
  const std::vector<Checkpoint> saved = history_->checkpoints();
  std::vector<Checkpoint> needed;
  for (const int64_t step : resumable_steps)
    if (const Checkpoint* one = find_label(saved, step)) needed.push_back(*one);
  const auto save = [&] {
    StateSnapshot state(false);
    const FolderWriter write_model = model_->save(state);
    const Group& group = parts_.ranks == nullptr ? parts_.group : parts_.ranks->group();
    const std::vector<int> others = ranks_with_parts(group, true);
    const Path stage = parts_stage(parts_.folder, model_->step());
    const auto write_own = [&](const Path& to) { write_part_of(0, state, write_model, to); };
    history_->save(
        meta, remark, [&](const Path& folder) { write_together(stage, others, folder, write_own); }, needed);
  };
  if (parts_.ranks == nullptr) return save();
  try {
    parts_.ranks->save(save);
  } catch (...) {
    remove_parts(parts_.folder);  // no rank writes there any more
    throw;
  }
}

// Before anything is changed: a rejected call leaves the critic unchanged.
void Critic::check_sound(const Checkpoint& checkpoint, int64_t actor_step) {
  try {
    verify_checkpoint(checkpoint);
  } catch (const UsageError& error) {
    throw RequestError(409, str("the checkpoint of actor_step ", actor_step, " is damaged: ", error.what()));
  }
}

// The save with that label, the same on all ranks; none: the start.
std::optional<Checkpoint> Critic::find_save(int64_t actor_step) const {
  std::string folder;
  std::optional<Checkpoint> found;
  if (history_) {
    const std::vector<Checkpoint> saved = history_->checkpoints();
    if (const Checkpoint* checkpoint = find_label(saved, actor_step)) {
      found = *checkpoint;
    } else if (actor_step != 0) {
      throw RequestError(404, str("no checkpoint of actor_step ", actor_step, "; there are ", labels_text(saved)));
    }
    if (found) check_sound(*found, actor_step);
    if (found) folder = found->folder.string();
  }
  parts_.group.broadcast(folder, 0);
  if (!history_ && !folder.empty()) found = read_checkpoint(folder);
  return found;
}

CriticResult Critic::restore(int64_t actor_step, const std::string& key, const CriticCaller& caller) {
  check_usable();
  check_caller(caller);
  if (const CriticResult* known = find(kRestore, key)) return *known;
  const std::optional<Checkpoint> found = find_save(actor_step);
  const Checkpoint* checkpoint = found ? &*found : nullptr;
  const int64_t calls = checkpoint == nullptr ? 0 : checkpoint->meta.counters.at(kTrainCalls);
  const std::string owner = caller.run.empty() ? owner_ : caller.run;
  const Remembered done{kRestore, key, {loss_of(checkpoint), calls, epoch_ + 1}};
  if (!owner_.empty() && owner != owner_) log_warn("the run ", owner, " takes over the critic of the run ", owner_);
  try {
    // On disk first: load() truncates the log, which a restart at the old state would still need.
    if (history_) history_->go_back(checkpoint, remark_of(to_json(done), owner, done.result.epoch));
    load(checkpoint);
  } catch (...) {
    if (journals()) recover();
    throw;
  }
  owner_ = owner;
  epoch_ = done.result.epoch;
  calls_since_save_ = 0;
  log_info("restored to actor_step ", actor_step, ": step ", model_->step(), ", ", train_calls_, " training calls");
  return remember(done);
}

}  // namespace kedge
