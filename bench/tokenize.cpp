// How fast text becomes ids, on one thread. Prints one JSON line.
//
//   bench_tokenize json|model PATH whole|paragraphs REPEATS TEXT_FILE ...
#include <algorithm>
#include <charconv>
#include <chrono>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/text/tokenizer/json_tokenizer.h"
#include "kedge/text/tokenizer/sentencepiece.h"

namespace kedge {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<std::string> cut_into_paragraphs(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find("\n\n", start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 2;
  }
  return parts;
}

std::unique_ptr<Tokenizer> load(const std::string& kind, const std::string& path) {
  if (kind == "json") return std::make_unique<JsonTokenizer>(Json::parse(read_text(path), path), path);
  return std::make_unique<SentencePieceTokenizer>(read_text(path), path);
}

void run(const std::vector<std::string>& arguments) {
  check(arguments.size() >= 5, "usage: bench_tokenize json|model PATH whole|paragraphs REPEATS TEXT_FILE ...");
  const auto load_start = Clock::now();
  const auto tokenizer = load(arguments[0], arguments[1]);
  const double load_s = seconds_since(load_start);
  std::vector<std::string> texts;
  for (size_t i = 4; i < arguments.size(); ++i) {
    const std::string text = read_text(arguments[i]);
    const auto parts = arguments[2] == "whole" ? std::vector{text} : cut_into_paragraphs(text);
    texts.insert(texts.end(), parts.begin(), parts.end());
  }
  int repeats = 0;
  std::from_chars(arguments[3].data(), arguments[3].data() + arguments[3].size(), repeats);
  size_t num_tokens = 0;
  std::vector<double> times;
  for (int i = 0; i <= repeats; ++i) {  // the first one warms up
    num_tokens = 0;
    const auto start = Clock::now();
    for (const std::string& text : texts) num_tokens += tokenizer->encode(text).size();
    if (i > 0) times.push_back(seconds_since(start));
  }
  std::sort(times.begin(), times.end());
  const size_t bytes =
      std::accumulate(texts.begin(), texts.end(), size_t{0}, [](size_t sum, const std::string& text) { return sum + text.size(); });
  const double median = times.at(times.size() / 2);
  std::cout << Json(Json::Object{{"case", "tokenize"},
                                 {"tokenizer", arguments[1]},
                                 {"texts", static_cast<int64_t>(texts.size())},
                                 {"bytes", static_cast<int64_t>(bytes)},
                                 {"tokens", static_cast<int64_t>(num_tokens)},
                                 {"load_s", load_s},
                                 {"median_s", median},
                                 {"min_s", times.front()},
                                 {"max_s", times.back()},
                                 {"mb_per_s", static_cast<double>(bytes) / median / 1e6}})
                   .dump()
            << '\n';
}

}  // namespace
}  // namespace kedge

int main(int argc, char** argv) {
  try {
    kedge::run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
