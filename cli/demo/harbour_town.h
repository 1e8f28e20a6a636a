#pragma once
// A small harbour town whose visitors ask their way: questions, answers in three manners, and what goes wrong in answers. Everything that
// scripts/quickstart trains on comes from here. The town's facts are fixed, so an answer can be right or wrong; which question is asked,
// how it is worded and in which manner it is answered is sampled. Independent of files and tokens.
#include <cstdint>
#include <string>
#include <vector>

#include "kedge/core/random.h"

namespace kedge::cli {

enum class Manner { gruff, plain, kind };

// Why an answer that sounds good is bad.
enum class Fault { off_topic, wrong_fact, repeated };

struct TownQuestion {
  std::string text;    // "Where can I buy fresh bread?"
  std::string answer;  // what a right answer must mention: "beside the lighthouse"
  int64_t place = 0;   // of which one is asked
  int64_t thing = 0;   // of what it has
  int64_t topic = 0;   // what is asked: where to buy, when, which way, how far, what is good
};

// One visitor's conversation, sampled by position: every call takes the next numbers of the stream.
class HarbourTown {
 public:
  HarbourTown(uint64_t seed, uint64_t visitor) : random_(seed, visitor) {}

  [[nodiscard]] TownQuestion ask();
  [[nodiscard]] TownQuestion ask_about(int64_t place);  // another question about the same place
  [[nodiscard]] std::string answer(const TownQuestion& question, Manner manner);
  [[nodiscard]] std::string faulty_answer(const TownQuestion& question, Manner manner, Fault fault);
  [[nodiscard]] int64_t below(int64_t bound) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(bound), position_++)); }

 private:
  [[nodiscard]] TownQuestion question_of(int64_t place, int64_t thing, int64_t topic);

  Random random_;
  uint64_t position_ = 0;
};

// How a conversation with the town's guide becomes text; for a model folder's chat_template.jinja.
[[nodiscard]] std::string harbour_chat_template();

}  // namespace kedge::cli
