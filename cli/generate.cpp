#include <unistd.h>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/stop.h"

#include "cli/commands.h"
#include "cli/generate_chat.h"
#include "cli/generate_lines.h"
#include "cli/generation.h"

namespace kedge::cli {
namespace {

void check_together(const GenerateOptions& options) {
  check(!options.chat || (!options.rows.text && options.rows.input == "-"),
        "--chat: reads messages from standard input; it cannot be combined with --text or --input");
  check(!options.chat || options.samples == 1, "--chat: an answer is one sample, not ", options.samples);
  check(!options.chat || !options.json, "--chat: prints text; it cannot be combined with --json");
  check(!options.system || options.chat, "--system: requires --chat; a line's \"messages\" may begin with a system message");
  check(!options.stream || options.chat || (options.rows.text && options.samples == 1), "--stream: requires one --text and one sample");
  check(!options.stream || !options.json, "--stream prints text and --json a line: give one of them");
  check(options.min_new_tokens <= options.max_new_tokens, "--min-new-tokens: ", options.min_new_tokens, " is more than --max-new-tokens ",
        options.max_new_tokens);
}

bool streams(const GenerateOptions& options) {
  return options.stream || (options.rows.text && options.samples == 1 && !options.json && ::isatty(STDOUT_FILENO) == 1);
}

int stream_text(Generation& generation, const std::string& text) {
  TokenIds prompt = generation.reader().from_text(text, "--text");
  const StreamedResponse response = stream_response(generation, generation.request(std::move(prompt), 0, "--text"));
  check(response.completion.finish != Finish::failed, response.completion.error);
  RowProgress progress;
  progress.add(1, static_cast<int64_t>(response.completion.tokens.size()), response.seconds);
  log_info(progress.summary());
  return response.signal ? exit_code_of(*response.signal) : kExitOk;
}

}  // namespace

std::string generate_flags() { return options_help<GenerateOptions>(); }

int run_generate(const Arguments& arguments) {
  const auto options = parse_options<GenerateOptions>(arguments);
  check_together(options);
  std::optional<JsonLines> input;
  if (!options.chat && !options.rows.text) input.emplace(options.rows.input);
  Generation generation(options);
  if (options.chat) return run_chat(generation, options);
  if (streams(options)) return stream_text(generation, *options.rows.text);
  LineGenerator generator(generation, options);
  if (options.rows.text) generator.add(Json(Json::Object{{"prompt", *options.rows.text}}), "--text");
  const auto signal = generator.run([&](const StopQuestion& stop) { return input ? input->next(stop) : std::nullopt; });
  log_info(generator.summary(), generator.num_failed() == 0 ? "" : str(", ", generator.num_failed(), " with an error"));
  if (signal) {
    log_warn("stopped by ", name_of_signal(*signal), ": incomplete completions are left out");
    return exit_code_of(*signal);
  }
  return generator.num_failed() == 0 ? kExitOk : kExitUsage;
}

}  // namespace kedge::cli
