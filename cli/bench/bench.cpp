#include <algorithm>
#include <array>

#include "kedge/config/nearest.h"
#include "kedge/core/error.h"

#include "cli/bench/bench_support.h"
#include "cli/commands.h"
#include "cli/text/json_lines.h"

namespace kedge::cli {
namespace {

constexpr std::array kCases = {
    BenchCase{"engine.decode", "random prompts, sampled at temperature 1 with log-probabilities", bench_engine_decode, bench_engine_flags},
    BenchCase{"server.reward", "a reward model over HTTP against the same model offline, in rows per second", bench_server_reward,
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
  check(!arguments.empty() && arguments[0].rfind("--", 0) != 0, "kedge bench: expected a case first", known);
  const auto chosen = std::find_if(kCases.begin(), kCases.end(), [&](const BenchCase& bench) { return bench.name == arguments[0]; });
  check(chosen != kCases.end(), "kedge bench: no case \"", arguments[0], "\"", nearest_hint(arguments[0], names), known);
  print_json_line(chosen->run(Arguments(arguments.begin() + 1, arguments.end())));
  return kExitOk;
}

}  // namespace kedge::cli
