#include "cli/demo/harbour_files.h"

#include <set>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/data/files/jsonl_writer.h"
#include "kedge/text/tokenizer/bpe_trainer.h"

#include "cli/demo/harbour_town.h"

namespace kedge::cli {
namespace {

// Every file has its own visitors.
enum Purpose : uint64_t { kHeldOut, kConversations, kPairs, kPrompts };

Json message(const char* role, const std::string& content) { return Json::Object{{"role", role}, {"content", content}}; }

class HarbourWriter {
 public:
  explicit HarbourWriter(const HarbourFilesConfig& config) : config_(config) {
    for (uint64_t visitor = 0; std::ssize(held_out_) < config.validation; ++visitor) {
      HarbourTown town = town_of(kHeldOut, visitor);
      const TownQuestion question = town.ask();
      if (held_out_texts_.insert(question.text).second) held_out_.push_back(question);
    }
  }

  HarbourFiles write() {
    const Path out = config_.out;
    make_folder(out);
    HarbourFiles files;
    const auto add = [&](const char* name, int64_t num_rows, const char* about, auto&& row_of) {
      JsonlWriter writer(out / name);
      for (int64_t i = 0; i < num_rows; ++i) writer.append(row_of(static_cast<uint64_t>(i)));
      writer.commit();
      files.files.push_back({.path = out / name, .num_rows = num_rows, .about = about});
    };
    const auto num_val = static_cast<uint64_t>(config_.validation);
    const auto val = [&](uint64_t i) -> const TownQuestion* { return &held_out_[i % num_val]; };
    add("sft.jsonl", config_.conversations, "conversations, gruff more often than kind",
        [&](uint64_t i) { return conversation(i, nullptr); });
    add("sft_val.jsonl", config_.validation, "the same, about other questions",
        [&](uint64_t i) { return conversation(static_cast<uint64_t>(config_.conversations) + i, val(i)); });
    add("pairs.jsonl", config_.pairs, "two answers to a question, the better one chosen", [&](uint64_t i) { return pair(i, nullptr); });
    add("pairs_val.jsonl", 4 * config_.validation, "the same, about other questions",
        [&](uint64_t i) { return pair(static_cast<uint64_t>(config_.pairs) + i, val(i)); });
    add("marked.jsonl", config_.pairs, "one answer to a question, marked good or bad", [&](uint64_t i) { return marked(i, nullptr); });
    add("marked_val.jsonl", 4 * config_.validation, "the same, about other questions",
        [&](uint64_t i) { return marked(static_cast<uint64_t>(config_.pairs) + i, val(i)); });
    const std::vector<TownQuestion> prompts = draw_prompts();
    add("prompts.jsonl", config_.prompts, "questions alone", [&](uint64_t i) { return prompt(prompts[i]); });
    add("prompts_val.jsonl", config_.validation, "questions that are in no other training file",
        [&](uint64_t i) { return prompt(held_out_[i]); });
    const TokenizerFiles tokenizer = train_bpe(texts_, {.vocab_size = config_.vocab_size});
    files.tokenizer = out / "tokenizer";
    tokenizer.write(files.tokenizer);
    write_atomic(files.tokenizer / "chat_template.jinja", harbour_chat_template());
    files.vocab_size = tokenizer.load()->vocab_size();
    return files;
  }

 private:
  [[nodiscard]] HarbourTown town_of(Purpose purpose, uint64_t visitor) const {
    return {static_cast<uint64_t>(config_.seed), Random::stream_of({purpose, visitor})};
  }

  // A question that is not kept for validation.
  TownQuestion ask(HarbourTown& town) const {
    TownQuestion question = town.ask();
    while (held_out_texts_.contains(question.text)) question = town.ask();
    return question;
  }

  Json conversation(uint64_t visitor, const TownQuestion* given) {
    HarbourTown town = town_of(kConversations, visitor);
    Json::Array messages;
    const int64_t drawn = town.below(20);
    const Manner manner = drawn < 8 ? Manner::gruff : drawn < 14 ? Manner::plain : Manner::kind;
    const auto exchange = [&](const TownQuestion& question) {
      const std::string answer = town.answer(question, manner);
      messages.push_back(message("user", question.text));
      messages.push_back(message("assistant", answer));
      if (given == nullptr) texts_.push_back("Visitor: " + question.text + "\nGuide: " + answer);
    };
    const TownQuestion first = given != nullptr ? *given : ask(town);
    exchange(first);
    if (given == nullptr && town.below(4) == 0) {  // some stay and ask for more
      const TownQuestion second = town.ask_about(first.place);
      if (!held_out_texts_.contains(second.text)) exchange(second);
    }
    return Json::Object{{"messages", std::move(messages)}};
  }

  // Twelve of twenty pairs differ in manner alone. In the others one answer is wrong, about something else, or says a thing twice; that it
  // may be the kinder one teaches that manners are not all.
  Json pair(uint64_t visitor, const TownQuestion* given) const {
    HarbourTown town = town_of(kPairs, visitor);
    const TownQuestion question = given != nullptr ? *given : ask(town);
    std::string better, worse;
    const int64_t kind = town.below(20);
    if (kind < 12) {
      better = town.answer(question, kind < 10 ? Manner::kind : Manner::plain);
      worse = town.answer(question, kind < 4 || kind >= 10 ? Manner::gruff : Manner::plain);
    } else {
      const Fault fault = kind < 17 ? Fault::wrong_fact : kind < 19 ? Fault::off_topic : Fault::repeated;
      const auto some_manner = [&] { return town.below(2) == 0 ? Manner::kind : Manner::plain; };
      const Manner manner = some_manner();
      better = town.answer(question, manner);
      worse = town.faulty_answer(question, fault == Fault::repeated ? manner : some_manner(), fault);
    }
    return Json::Object{{"prompt", Json::Array{message("user", question.text)}},
                        {"chosen", message("assistant", better)},
                        {"rejected", message("assistant", worse)}};
  }

  // One of the pair's answers, the better one every other time.
  Json marked(uint64_t visitor, const TownQuestion* given) const {
    const Json both = pair(visitor, given);
    const bool is_good = visitor % 2 == 0;
    return Json::Object{{"prompt", *both.find("prompt")}, {"completion", *both.find(is_good ? "chosen" : "rejected")}, {"label", is_good}};
  }

  [[nodiscard]] std::vector<TownQuestion> draw_prompts() const {
    std::vector<TownQuestion> prompts;
    std::set<std::string> texts;
    for (uint64_t visitor = 0; std::ssize(prompts) < config_.prompts; ++visitor) {
      HarbourTown town = town_of(kPrompts, visitor);
      TownQuestion question = ask(town);
      if (texts.insert(question.text).second) prompts.push_back(std::move(question));
    }
    return prompts;
  }

  static Json prompt(const TownQuestion& question) {
    return Json::Object{{"messages", Json::Array{message("user", question.text)}}, {"answer", question.answer}};
  }

  const HarbourFilesConfig& config_;
  std::vector<TownQuestion> held_out_;
  std::set<std::string> held_out_texts_;
  std::vector<std::string> texts_;  // that the tokenizer is trained on
};

}  // namespace

HarbourFiles write_harbour_files(const HarbourFilesConfig& config) { return HarbourWriter(config).write(); }

std::string to_text(const HarbourFiles& files) {
  std::string text;
  for (const HarbourFiles::File& file : files.files) text += str(file.path.string(), ": ", file.num_rows, " rows: ", file.about, "\n");
  return text + str(files.tokenizer.string(), ": ", files.vocab_size, " tokens, learnt from the conversations, with a chat template\n");
}

}  // namespace kedge::cli
