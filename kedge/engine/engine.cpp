#include "kedge/engine/engine.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "kedge/core/cuda_device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/core/memory_budget.h"
#include "kedge/engine/kv_memory.h"
#include "kedge/engine/runner.h"
#include "kedge/engine/token_sampler.h"

namespace kedge {

// A request with its running samples.
struct Engine::Open {
  int64_t number = 0;
  GenerateRequest request;
  std::vector<Completion> samples;
  int64_t num_left = 0;
  int64_t max_tokens = 0;  // of a response

  [[nodiscard]] bool is_penalised() const { return request.sampling.repetition_penalty != 1; }
};

// A step whose draws have not been taken.
struct Engine::Launched {
  std::vector<SequenceId> draws;               // for which sequences; some may have ended meanwhile
  std::vector<std::optional<Drawn>> by_ranks;  // if the vocabulary is split: what was sampled
};

// What holds memory.
struct Engine::Parts {
  Parts(const Model& model, const EngineConfig& config, int64_t num_blocks, int64_t max_length)
      : blocks(num_blocks, kPagedBlock),
        scheduler(config.scheduler, blocks, model.device().is_cuda()),
        memory(model.own_shape(), model.parameters().options(), num_blocks),
        runner(model, memory, {config.use_graphs && model.parameters().options().tensor.is_recordable(), max_length}) {}

  struct Place {
    Open* open = nullptr;
    int64_t sample = 0;
  };

  BlockPool blocks;
  Scheduler scheduler;
  KeyValueMemory memory;
  Runner runner;
  TokenSampler sampler;
  std::optional<Launched> under_way;
  std::unordered_map<SequenceId, Place> places;
  SequenceId next_sequence = 0;
};

namespace {

std::map<double, std::vector<size_t>> by_temperature(const std::vector<Draw>& draws) {
  std::map<double, std::vector<size_t>> places;
  for (size_t i = 0; i < draws.size(); ++i) places[draws[i].from.logprob_temperature].push_back(i);
  return places;
}

}  // namespace

std::string_view name_of(Finish finish) {
  switch (finish) {
    case Finish::end:
      return "end";
    case Finish::length:
      return "length";
    case Finish::failed:
      return "error";
  }
  throw Bug("a finish without a name");
}

Engine::Engine(const Model& model, const EngineConfig& config) : model_(model), config_(config) {
  static_cast<void>(memory_budget(config.memory, 0, "memory"));  // an invalid value is reported at once
  static_cast<void>(model.language_head());
}

Engine::~Engine() = default;

int64_t Engine::max_length() const { return model_.config().max_positions; }

int64_t Engine::memory_bytes() const {
  if (!parts_) return 0;
  return KeyValueMemory::bytes_for(model_.own_shape(), model_.parameters().options().dtype, parts_->blocks.num_blocks());
}

EngineStats Engine::stats() const {
  EngineStats stats = stats_;
  if (parts_) stats.num_preempted += parts_->scheduler.num_preempted();
  return stats;
}

void Engine::take_memory() {
  const StorageOptions& storage = model_.parameters().options();
  const int64_t free_bytes = storage.device.is_cuda() ? free_cuda_bytes() : this_machine().available_bytes;
  const int64_t budget = memory_budget(config_.memory, free_bytes, "memory");
  const int64_t block_bytes = KeyValueMemory::bytes_for(model_.own_shape(), storage.dtype, 1);
  // It includes the unused block. No more is taken than all running sequences can fill.
  int64_t within = budget / block_bytes - 1;
  if (storage.tensor.is_split()) {
    // Ranks that compute together schedule the same sequences, so all take as many blocks as the one with the least memory can.
    std::array<double, 1> least = {-static_cast<double>(within)};
    storage.tensor.group().all_reduce(std::span<double>(least), Reduce::max);
    within = static_cast<int64_t>(-least[0]);
  }
  check(within >= 1, "memory: ", format_bytes(budget), " of ", format_bytes(free_bytes), " free are less than two blocks of ", kPagedBlock,
        " tokens, ", format_bytes(block_bytes), " each");
  const int64_t useful = config_.scheduler.running_on(storage.device.is_cuda()) * ((max_length() + kPagedBlock - 1) / kPagedBlock);
  parts_ = std::make_unique<Parts>(model_, config_, std::min(within, useful), max_length());
}

void Engine::release() {
  ensure(idle(), "an engine gives its memory back while requests are open");
  stats_ = stats();
  parts_.reset();
  // CUDA graphs had their own memory, which training could not use.
  if (model_.device().is_cuda()) give_back_cuda_memory();
}

int64_t Engine::submit(GenerateRequest request) {
  const auto prompt_length = static_cast<int64_t>(request.prompt.size());
  check(prompt_length > 0, request.where, ": the prompt is empty");
  check(request.num_samples > 0, request.where, ": ", request.num_samples, " samples are asked for");
  check(request.max_new > 0, request.where, ": a response of at most ", request.max_new, " tokens is asked for");
  for (const int32_t id : request.prompt)
    check(id >= 0 && id < model_.config().vocab_size, request.where, ": id ", id, " is outside the model's vocabulary of ",
          model_.config().vocab_size);
  check(prompt_length < max_length(), request.where, ": a prompt of ", prompt_length,
        " tokens leaves no room for a response in the model's ", "context of ", max_length());
  if (!parts_) take_memory();
  const int64_t length = std::min(prompt_length + request.max_new, max_length());
  parts_->scheduler.add(parts_->next_sequence, request.num_samples, request.prompt, length, request.where);

  auto open = std::make_unique<Open>();
  open->number = next_request_++;
  open->num_left = request.num_samples;
  open->max_tokens = length - prompt_length;
  for (int64_t sample = 0; sample < request.num_samples; ++sample) {
    parts_->places[parts_->next_sequence++] = {open.get(), sample};
    Completion completion;
    completion.request = open->number;
    completion.sample = sample;
    open->samples.push_back(std::move(completion));
  }
  open->request = std::move(request);
  if (open->is_penalised()) ++num_penalised_;
  const int64_t number = open->number;
  requests_.emplace(number, std::move(open));
  return number;
}

std::vector<Draw> Engine::draws_of(const Step& step) const {
  std::vector<Draw> draws;
  draws.reserve(step.draws.size());
  int64_t logits_row = 0;
  for (const StepRow& row : step.rows) {
    if (row.num_draws == 0) continue;
    for (const SequenceId id : step.draws_of(row)) {
      const auto& [open, sample] = parts_->places.at(id);
      const GenerateRequest& request = open->request;
      const Sequence& sequence = parts_->scheduler.sequence(id);
      SampleKey key = request.key;
      key.sample += static_cast<uint64_t>(sample);
      SamplingRow from;
      if (request.sampling.repetition_penalty != 1) from.used = sequence.tokens;
      if (sequence.num_drawn() < request.min_new)
        from.not_yet = std::span(request.end_ids).first(std::min(request.num_eos, request.end_ids.size()));
      from.vocab_size = request.vocab_size;
      from.logprob_temperature = request.logprob_temperature;
      if (!request.sampling.use_greedy) from.uniform = key.uniform(sequence.num_drawn());
      draws.push_back({logits_row, request.sampling, from});
    }
    ++logits_row;
  }
  return draws;
}

std::vector<std::optional<Drawn>> Engine::draw_by_ranks(const Tensor& logits, const std::vector<Draw>& draws) const {
  const SplitVocabulary vocabulary = model_.language_head().vocabulary;
  auto drawn = parts_->sampler.draw(vocabulary.ranks->gather_columns(logits, model_.config().vocab_size), draws);
  // The log-probabilities of training come from sums by rank; these have the same bits.
  for (const auto& [temperature, places] : by_temperature(draws)) {
    std::vector<int64_t> rows, ids;
    for (const size_t place : places) {
      rows.push_back(draws[place].row);
      ids.push_back(drawn[place] ? drawn[place]->token : 0);
    }
    const Tensor own = logits.index_select(0, at::tensor(rows).to(logits.device()));
    const Tensor logprobs =
        split_logit_stats(own, at::tensor(ids).to(logits.device()), false, temperature, vocabulary).logprob.to(at::kCPU);
    for (size_t i = 0; i < places.size(); ++i)
      if (drawn[places[i]]) drawn[places[i]]->logprob = logprobs.const_data_ptr<float>()[i];
  }
  return drawn;
}

// Whether the sequence continues with the token, or how it ended.
std::optional<Finish> Engine::take(Open& open, int64_t sample, const std::optional<Drawn>& drawn) {
  Completion& completion = open.samples[static_cast<size_t>(sample)];
  const GenerateRequest& request = open.request;
  if (!drawn) {
    completion.error =
        str(request.where, ": after ", completion.tokens.size(), " tokens the logits are not finite, or no token may be sampled from them");
    return Finish::failed;
  }
  completion.tokens.push_back(drawn->token);
  completion.logprobs.push_back(drawn->logprob);
  ++stats_.num_drawn;
  if (std::find(request.end_ids.begin(), request.end_ids.end(), drawn->token) != request.end_ids.end()) return Finish::end;
  if (request.ends && request.ends(completion.tokens)) return Finish::end;
  if (std::ssize(completion.tokens) >= open.max_tokens) return Finish::length;
  return std::nullopt;
}

// Ranks that share a vocabulary sample together, at once. A penalty falls on the newest token too, which must be known.
bool Engine::goes_ahead() const {
  const StorageOptions& storage = model_.parameters().options();
  return (storage.device.is_cuda() ? config_.step_ahead : config_.step_ahead_on_cpu) && !storage.tensor.is_split() && num_penalised_ == 0;
}

// Plans a step and starts it; nothing if there is none. Tokens that are awaited are read where they are sampled.
std::optional<Engine::Launched> Engine::launch() {
  Scheduler& scheduler = parts_->scheduler;
  Step step = scheduler.next();
  if (step.rows.empty()) return std::nullopt;
  parts_->memory.copy(step.copies);
  const Tensor logits = parts_->runner.run(step, scheduler, parts_->sampler.newest());
  scheduler.computed(step);
  ++stats_.num_steps;
  stats_.num_computed += step.num_tokens();
  Launched launched;
  if (!step.draws.empty()) {
    const std::vector<Draw> draws = draws_of(step);
    if (model_.language_head().vocabulary.is_split()) {
      launched.by_ranks = draw_by_ranks(logits, draws);
    } else {
      parts_->sampler.start(logits, draws);
    }
  }
  launched.draws = std::move(step.draws);
  return launched;
}

// Sequences continue with what is being sampled, except those at their limit. Ends that only the tokens tell are learned a step later; what
// was computed past them is dropped. Their blocks may be given away at once, because every step runs after those launched before it.
void Engine::extend(const Launched& launched) {
  Scheduler& scheduler = parts_->scheduler;
  for (size_t i = 0; i < launched.draws.size(); ++i) {
    const SequenceId id = launched.draws[i];
    const Sequence* sequence = scheduler.find(id);
    if (sequence == nullptr) continue;
    if (sequence->length() + 1 < sequence->max_length) {
      scheduler.extend(id, static_cast<int64_t>(i));
    } else {
      scheduler.finish(id);
    }
  }
}

std::vector<std::optional<Drawn>> Engine::results(Launched& launched) {
  if (launched.draws.empty() || !launched.by_ranks.empty()) return std::move(launched.by_ranks);
  return parts_->sampler.take();
}

bool Engine::step(const EngineEvents& events) {
  if (idle()) return false;
  Scheduler& scheduler = parts_->scheduler;
  std::optional<Launched> launched = std::exchange(parts_->under_way, std::nullopt);
  if (!launched) launched = launch();
  ensure(launched.has_value(), "requests are open, but there is nothing to compute for them");
  extend(*launched);
  if (goes_ahead()) parts_->under_way = launch();
  const std::vector<std::optional<Drawn>> drawn = results(*launched);

  // All state is updated before listeners are called, so that they may submit.
  std::vector<Completion> ended;
  std::vector<std::array<int64_t, 3>> tokens;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const SequenceId id = launched->draws[i];
    const auto found = parts_->places.find(id);
    if (found == parts_->places.end()) continue;  // it ended in the step before
    const auto [open, sample] = found->second;
    const std::optional<Finish> finish = take(*open, sample, drawn[i]);
    if (drawn[i] && events.token) tokens.push_back({open->number, sample, drawn[i]->token});
    if (!finish) {
      scheduler.set_drawn(id, drawn[i]->token);
      continue;
    }
    if (scheduler.find(id) != nullptr) scheduler.finish(id);
    parts_->places.erase(found);
    Completion& completion = open->samples[static_cast<size_t>(sample)];
    completion.finish = *finish;
    ended.push_back(std::move(completion));
    if (--open->num_left > 0) continue;
    if (open->is_penalised()) --num_penalised_;
    requests_.erase(open->number);
  }
  // Nothing is under way while the engine is idle: weights and memory are the caller's again.
  if (idle() && parts_->under_way) {
    static_cast<void>(results(*parts_->under_way));
    parts_->under_way.reset();
  }
  for (const auto& [request, sample, token] : tokens) events.token(request, sample, static_cast<int32_t>(token));
  for (Completion& completion : ended) events.end(std::move(completion));
  return true;
}

std::vector<std::vector<Completion>> Engine::generate(std::vector<GenerateRequest> requests) {
  std::vector<std::vector<Completion>> completions;
  std::unordered_map<int64_t, size_t> numbers;  // of a request: its place
  for (GenerateRequest& request : requests) {
    completions.emplace_back(static_cast<size_t>(std::max<int64_t>(1, request.num_samples)));
    try {
      numbers[submit(std::move(request))] = completions.size() - 1;
    } catch (const UsageError& error) {
      for (Completion& completion : completions.back()) completion.finish = Finish::failed, completion.error = error.what();
    }
  }
  const auto keep = [&](Completion completion) {
    auto& samples = completions[numbers.at(completion.request)];
    samples[static_cast<size_t>(completion.sample)] = std::move(completion);
  };
  while (step({{}, keep})) {
  }
  return completions;
}

}  // namespace kedge
