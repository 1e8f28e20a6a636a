#include <algorithm>
#include <array>

#include "kedge/core/error.h"
#include "kedge/core/nearest.h"

#include "cli/bench_support.h"
#include "cli/commands.h"
#include "cli/json_lines.h"

namespace kedge::cli {
namespace {

constexpr std::array kCases = {
    BenchCase{"engine.decode", "prompts of random tokens, drawn from at temperature 1 with log-probabilities", bench_engine_decode,
              bench_engine_flags},
    BenchCase{"server.reward", "a reward model over HTTP on this machine beside the same model alone: rows a second", bench_server_reward,
              bench_server_flags},
    BenchCase{"train.step", "forward, backward and AdamW of the language-model loss on random tokens", bench_train_step, bench_train_flags},
};

}  // namespace

std::string bench_flags() {
  std::string text;
  for (const BenchCase& bench : kCases)
    text += str(text.empty() ? "" : "\n", "kedge bench ", bench.name, ": ", bench.summary, "\n", bench.flags());
  return text;
}

std::vector<std::string> bench_words() {
  std::vector<std::string> names;
  for (const BenchCase& bench : kCases) names.emplace_back(bench.name);
  return names;
}

int run_bench(const Arguments& arguments) {
  const std::vector<std::string> names = bench_words();
  const std::string known = str("; there are ", names[0], ", ", names[1], " and ", names[2]);
  check(!arguments.empty() && arguments[0].rfind("--", 0) != 0, "kedge bench: wants a case first", known);
  const auto chosen = std::find_if(kCases.begin(), kCases.end(), [&](const BenchCase& bench) { return bench.name == arguments[0]; });
  check(chosen != kCases.end(), "kedge bench: no case \"", arguments[0], "\"", nearest_hint(arguments[0], names), known);
  print_json_line(chosen->run(Arguments(arguments.begin() + 1, arguments.end())));
  return kExitOk;
}

}  // namespace kedge::cli
