#include "cli/generate_chat.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/stop.h"

namespace kedge::cli {
namespace {

constexpr std::string_view kChatHelp =
    "/reset clears the conversation, /quit, /exit or Ctrl-D ends, Ctrl-C ends an answer, /help shows this";

Json chat_message(const char* role, const std::string& text) { return Json::Object{{"role", role}, {"content", text}}; }

class Chat {
 public:
  Chat(Generation& generation, const GenerateOptions& options) : generation_(generation), options_(options) { reset(); }

  void reset() {
    messages_ = Json(Json::Array{});
    if (options_.system) messages_.push_back(chat_message("system", *options_.system));
  }

  // The signal that ended the answer early, if any. A message that cannot be answered is an error and is dropped.
  std::optional<int> say(const std::string& text) {
    const std::string where = str("what was said ", ++num_said_ == 1 ? "first" : str("as number ", num_said_));
    Json messages = messages_;
    messages.push_back(chat_message("user", text));
    TokenIds prompt = generation_.reader().from_messages(messages, Json(Json::Object{}), where);
    StreamedResponse answer = stream_response(generation_, generation_.request(std::move(prompt), num_said_ - 1, where));
    check(answer.completion.finish != Finish::failed, answer.completion.error);
    messages.push_back(chat_message("assistant", answer.text));
    messages_ = std::move(messages);
    return answer.signal;
  }

 private:
  Generation& generation_;
  const GenerateOptions& options_;
  Json messages_;
  int64_t num_said_ = 0;
};

}  // namespace

int run_chat(Generation& generation, const GenerateOptions& options) {
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1;
  if (is_terminal) log_info(kChatHelp);
  Chat chat(generation, options);
  int exit_code = kExitOk;
  std::string line;
  while (true) {
    if (is_terminal) std::fputs("> ", stderr);
    if (!std::getline(std::cin, line)) break;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line == "/quit" || line == "/exit") break;
    if (line == "/help") {
      log_info(kChatHelp);
      continue;
    }
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    if (line == "/reset") {
      chat.reset();
      continue;
    }
    try {
      const std::optional<int> signal = chat.say(line);
      if (signal && !(is_terminal && *signal == SIGINT)) return exit_code_of(*signal);
    } catch (const UsageError& error) {
      log_error(error.what(), "; /reset clears the conversation");
      exit_code = kExitUsage;
    }
  }
  if (is_terminal) std::fputs("\n", stderr);
  return is_terminal ? kExitOk : exit_code;
}

}  // namespace kedge::cli
