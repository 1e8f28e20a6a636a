#include "cli/generation.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "kedge/core/error.h"
#include "kedge/core/stop.h"
#include "kedge/core/utf8.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/text/chat/chat_template.h"
#include "kedge/text/tokenizer/special_tokens.h"

#include "cli/text/json_lines.h"

namespace kedge::cli {

Generation::Generation(const GenerateOptions& options)
    : options_(options),
      folder_(find_model_folder(options.rows.model, "--model")),
      config_(load_model_config(folder_)),
      reader_(folder_, config_, {.add_special = options.rows.add_special, .is_prompt = true}) {
  if (options.chat) need_chat_template();
  if (options.chat || has_tokenizer(folder_)) {
    responses_.emplace(reader_.tokenizer(), options.end_strings);
    end_ids_ = responses_->end_ids();
  } else {
    check(options.end_strings.empty(), "--end-strings: ", folder_.string(), " has no tokenizer to read them with");
    for (const int64_t id : SpecialTokenFiles::read(folder_).stop_ids)
      if (id < config_.vocab_size) end_ids_.push_back(static_cast<TokenId>(id));  // small copies of a family keep its large id
  }
  model_ = load_for_reading(options.rows, folder_, HeadKind::language);
  engine_ = std::make_unique<Engine>(*model_, options.engine);
}

void Generation::need_chat_template() {
  if (!has_chat_template_) static_cast<void>(ChatTemplate::load(folder_));
  has_chat_template_ = true;
}

GenerateRequest Generation::request(TokenIds prompt, int64_t index, std::string where) const {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.num_samples = options_.samples;
  request.max_new = options_.max_new_tokens;
  request.min_new = options_.min_new_tokens;
  request.sampling = options_.sampling;
  request.key.seed = static_cast<uint64_t>(options_.rows.device.seed);
  request.key.prompt = static_cast<uint64_t>(index);
  request.end_ids = end_ids_;
  request.num_eos = responses_ ? responses_->num_eos() : end_ids_.size();
  if (responses_) {
    request.ends = responses_->ends();
    request.vocab_size = std::min<int64_t>(responses_->vocab_size(), config_.vocab_size);
  }
  request.where = std::move(where);
  return request;
}

StreamedResponse stream_response(Generation& generation, GenerateRequest request) {
  StreamedResponse streamed;
  const auto begin = std::chrono::steady_clock::now();
  const StopSignals stop;
  ResponseStream stream(*generation.responses(), request.prompt);
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;  // which a model must not steer
  const auto show = [&](const std::string& text) {
    print_text(is_terminal ? utf8_without_controls(text) : text);
    streamed.text += text;
  };
  request.ends = [&stop, by_text = std::move(request.ends)](std::span<const TokenId> response) {
    return stop.received().has_value() || (by_text && by_text(response));
  };
  const EngineEvents events = {.token = [&](int64_t, int64_t, TokenId token) { show(stream.feed(token)); },
                               .end = [&](Completion completion) { streamed.completion = std::move(completion); }};
  static_cast<void>(generation.engine().submit(std::move(request)));
  while (generation.engine().step(events)) continue;
  show(stream.flush());
  print_text("\n");
  streamed.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  streamed.signal = stop.received();
  return streamed;
}

}  // namespace kedge::cli
