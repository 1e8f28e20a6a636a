#pragma once
// Shared parts of kedge generate: the flags, and a model folder with an engine that takes prompts.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/engine/engine.h"
#include "kedge/text/tokenizer/response_text.h"

#include "cli/model_rows.h"

namespace kedge::cli {

struct GenerateOptions {
  ModelRowFlags rows;
  bool chat = false;
  std::optional<std::string> system;
  int64_t samples = 1;
  int64_t max_new_tokens = 256, min_new_tokens = 0;
  std::vector<std::string> end_strings;
  SamplingConfig sampling;
  bool stream = false, json = false, unordered = false;
  EngineConfig engine;

  void fields(auto&& field) {
    rows.fields(field);
    field("chat", chat, "chat: send every line of standard input to the model with the folder's chat template");
    field("system", system, "system prompt of a chat");
    field("samples", samples, "completions per prompt", at_least(1));
    field("max_new_tokens", max_new_tokens, "maximum length of a completion; the model's context also limits it", at_least(1));
    field("min_new_tokens", min_new_tokens, "minimum length of a completion; EOS is masked until then", at_least(0));
    field("end_strings", end_strings, "text that ends a completion, in addition to EOS; repeat the flag for several");
    sampling.fields(field);
    field("stream", stream, "print only the text of a completion as it is generated; the default on a terminal");
    field("json", json, "print JSON lines on a terminal too");
    field("unordered", unordered, "print each completion as soon as it ends, not in the order of the prompts");
    engine.fields([&](const std::string& name, auto& member, auto&&... rest) {
      if (name != "release_in_training") field(name, member, rest...);  // there is no training here
    });
  }
};

// Not thread-safe.
class Generation {
 public:
  // The tokenizer is read before the weights, so that its errors show early.
  explicit Generation(const GenerateOptions& options);

  [[nodiscard]] RowReader& reader() { return reader_; }
  [[nodiscard]] Engine& engine() { return *engine_; }
  // Null if the folder has no tokenizer: then prompts are ids, and completions too.
  [[nodiscard]] const ResponseText* responses() const { return responses_ ? &*responses_ : nullptr; }

  // A folder without one is a UsageError.
  void need_chat_template();

  // A request by the flags. Its samples depend only on the seed, on `index` and on the sample number.
  [[nodiscard]] GenerateRequest request(TokenIds prompt, int64_t index, std::string where) const;

 private:
  const GenerateOptions& options_;
  Path folder_;
  ModelConfig config_;
  RowReader reader_;
  std::optional<ResponseText> responses_;
  std::vector<TokenId> end_ids_;
  bool has_chat_template_ = false;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Engine> engine_;
};

struct StreamedResponse {
  Completion completion;
  std::string text;
  double seconds = 0;
  std::optional<int> signal;  // that ended it early
};
// Prints the text as it is sampled, then a line break. SIGINT, SIGTERM and SIGUSR1 end it at the next token.
[[nodiscard]] StreamedResponse stream_response(Generation& generation, GenerateRequest request);

}  // namespace kedge::cli
