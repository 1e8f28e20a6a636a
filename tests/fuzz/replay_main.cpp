// Runs a fuzz target over its seeds and over mutations of them, the same ones every time: what every test run repeats of fuzzing. It finds less than
// libFuzzer does, which looks at coverage and has sanitizers (tests/fuzz/run).
//
//   fuzz_NAME FOLDER [MUTATIONS]
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kMutations = 3000;
constexpr size_t kLongest = 4096;  // beyond that mutations only repeat themselves

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& seeds) : seeds_(seeds) {}

  std::string next() {
    std::string text = seeds_[below(seeds_.size())];
    const size_t count = 1 + below(4);
    for (size_t i = 0; i < count; ++i) mutate(text);
    if (text.size() > kLongest && text.size() > 2 * seeds_[0].size()) text.resize(kLongest);
    return text;
  }

 private:
  size_t below(size_t count) { return static_cast<size_t>(generator_() % count); }

  void mutate(std::string& text) {
    static const std::string kTelling = std::string("\0\xFF\x7F\x80\"\\{}[]:,\n\r 019-eE.%&=$#<>", 28);
    const size_t at = text.empty() ? 0 : below(text.size());
    const size_t length = text.empty() ? 0 : 1 + below(std::min<size_t>(text.size() - at, 64));
    switch (below(7)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << below(8)));
        return;
      case 1:
        if (!text.empty()) text[at] = kTelling[below(kTelling.size())];
        return;
      case 2:
        text.insert(at, 1, kTelling[below(kTelling.size())]);
        return;
      case 3:
        text.erase(at, length);
        return;
      case 4:
        text.insert(at, text.substr(at, length));
        return;
      case 5: {
        const std::string& other = seeds_[below(seeds_.size())];
        if (!other.empty()) text.insert(at, other.substr(below(other.size()), 1 + below(64)));
        return;
      }
      default:
        text.resize(at);
    }
  }

  const std::vector<std::string>& seeds_;
  std::mt19937_64 generator_{20240229};
};

void run(const std::string& text) { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size()); }

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: fuzz_NAME FOLDER [MUTATIONS]\n";
    return 2;
  }
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(arguments[1]))
    for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds = {""};
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  for (const std::string& seed : seeds) run(seed);
  Mutator mutator(seeds);
  const int num_mutations = count > 2 ? std::atoi(arguments[2]) : kMutations;
  for (int i = 0; i < num_mutations; ++i) run(mutator.next());
  std::cout << seeds.size() << " seeds and " << num_mutations << " mutations\n";
}
