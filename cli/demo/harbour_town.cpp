#include "cli/demo/harbour_town.h"

#include <array>
#include <span>
#include <string_view>

#include "kedge/core/error.h"

namespace kedge::cli {
namespace {

struct Place {
  std::string_view name;                   // "the bakery"
  std::string_view where;                  // "beside the lighthouse"
  std::string_view hours;                  // "from seven to noon"
  std::string_view walk;                   // "five minutes"
  std::array<std::string_view, 3> things;  // "fresh bread"
  std::string_view best;                   // what to try there
};

constexpr std::array kPlaces = {
    Place{"the bakery",
          "beside the lighthouse",
          "from six to noon",
          "five minutes",
          {"fresh bread", "a warm roll", "apple cake"},
          "the rye loaf"},
    Place{"the fish market",
          "on the north pier",
          "from five to ten",
          "two minutes",
          {"fresh herring", "a bag of mussels", "smoked eel"},
          "the smoked eel"},
    Place{"the rope shop",
          "behind the boat sheds",
          "from eight to four",
          "ten minutes",
          {"a strong rope", "new sails", "an anchor chain"},
          "the tarred rope"},
    Place{"the tea house",
          "under the old oak",
          "from nine to six",
          "six minutes",
          {"a cup of tea", "ginger biscuits", "honey from the hills"},
          "the mint tea"},
    Place{"the map room",
          "above the customs house",
          "from ten to three",
          "four minutes",
          {"a map of the coast", "a tide table", "a compass"},
          "the chart of the islands"},
    Place{"the inn",
          "at the end of the main street",
          "all day and all night",
          "seven minutes",
          {"a room for the night", "a hot supper", "a bath"},
          "the onion soup"},
    Place{"the ferry office",
          "at the south gate",
          "from seven to eight",
          "three minutes",
          {"a ticket to the island", "the winter timetable", "a seat on the ferry"},
          "the evening crossing"},
    Place{"the lamp maker",
          "on the mill hill",
          "from noon to six",
          "twelve minutes",
          {"a lantern", "lamp oil", "a box of candles"},
          "the green lantern"},
    Place{"the cobbler",
          "across from the fountain",
          "from eight to noon",
          "four minutes",
          {"a pair of boots", "new laces", "leather soles"},
          "the seal skin boots"},
    Place{"the post office",
          "next to the town hall",
          "from nine to four",
          "five minutes",
          {"stamps", "writing paper", "a parcel from home"},
          "the stamp with the whale"},
    Place{"the greengrocer",
          "by the stone bridge",
          "from seven to two",
          "eight minutes",
          {"ripe oranges", "a sack of potatoes", "sweet plums"},
          "the yellow plums"},
    Place{"the paint shop",
          "in the narrow lane",
          "from ten to five",
          "nine minutes",
          {"blue paint", "a broad brush", "varnish for a boat"},
          "the sea blue"},
    Place{"the book seller",
          "in the arcade",
          "from eleven to seven",
          "six minutes",
          {"an old novel", "a book of songs", "a diary"},
          "the book of storms"},
    Place{"the music hall",
          "on the market square",
          "from six to midnight",
          "three minutes",
          {"a ticket for the concert", "a fiddle string", "a drum"},
          "the sailors choir"},
    Place{"the weather station",
          "on top of the cliff",
          "from dawn to dusk",
          "twenty minutes",
          {"the forecast", "the wind report", "a look through the telescope"},
          "the view of the bay"},
    Place{"the doctor",
          "in the white house",
          "from eight to one",
          "seven minutes",
          {"cough syrup", "a bandage", "drops for the ears"},
          "the sage syrup"},
    Place{"the bicycle yard",
          "behind the railway station",
          "from nine to five",
          "eleven minutes",
          {"a bicycle", "a new tyre", "a bell"},
          "the red bicycle"},
    Place{"the wool shop",
          "at the corner of the square",
          "from ten to four",
          "four minutes",
          {"a warm scarf", "a woollen cap", "knitting needles"},
          "the grey scarf"},
    Place{"the museum",
          "inside the old fort",
          "from ten to six",
          "fifteen minutes",
          {"a guided tour", "old coins", "the whale bones"},
          "the room of ships"},
    Place{"the smithy",
          "below the castle wall",
          "from six to three",
          "thirteen minutes",
          {"a horse shoe", "a sharp knife", "iron nails"},
          "the oyster knife"},
};

enum Topic : int64_t { kAsksGoods, kAsksHours, kAsksWay, kAsksWalk, kAsksBest, kNumTopics };

using Lines = std::span<const std::string_view>;

// In all lines below, {place} {Place} {where} {Where} {hours} {Hours} {walk} {Walk} {thing} {best} {Best} are placeholders for the facts.
constexpr std::array<std::string_view, 8> kAskBuy = {"Where can I buy {thing}?",
                                                     "Where do I find {thing}?",
                                                     "I am looking for {thing}.",
                                                     "Who sells {thing} in this town?",
                                                     "My sister needs {thing}. Where should she go?",
                                                     "Can you tell me where to get {thing}?",
                                                     "Is there a shop that has {thing}?",
                                                     "We came a long way for {thing}. Where is it sold?"};
constexpr std::array<std::string_view, 5> kAskHours = {"When is {place} open?", "What are the hours of {place}?", "Is {place} open today?",
                                                       "I want to visit {place}. When can I go?", "How long is {place} open?"};
constexpr std::array<std::string_view, 5> kAskWay = {"How do I get to {place}?", "Where is {place}?", "Which way is {place}?",
                                                     "I cannot find {place}. Where is it?", "Could you show me the way to {place}?"};
constexpr std::array<std::string_view, 5> kAskWalk = {"Is {place} far from here?", "How far is {place}?",
                                                      "How long is the walk to {place}?", "Can I walk to {place}?",
                                                      "My feet hurt. Is it far to {place}?"};
constexpr std::array<std::string_view, 5> kAskBest = {"What is good at {place}?", "What should I see at {place}?",
                                                      "What do people like at {place}?", "Is {place} worth a visit?",
                                                      "What would you choose at {place}?"};

constexpr std::array<std::string_view, 4> kGruffBuy = {"{Place}. {Where}.", "Try {place}, {where}.", "{Where}. Ask there.",
                                                       "At {place}, {where}."};
constexpr std::array<std::string_view, 4> kGruffHours = {"{Hours}.", "{Hours}. Read the sign.", "Open {hours}.",
                                                         "It says so on the door: {hours}."};
constexpr std::array<std::string_view, 4> kGruffWay = {"{Where}.", "{Where}. Use your eyes.", "It is {where}.", "Look {where}."};
constexpr std::array<std::string_view, 4> kGruffWalk = {"{Walk}.", "{Walk}. You have legs.", "It is {walk}.", "Count {walk}."};
constexpr std::array<std::string_view, 4> kGruffBest = {"{Best}.", "{Best}, they say.", "Some like {best}.", "{Best}. I never go there."};
constexpr std::array<std::string_view, 10> kGruffEnd = {"Next.",
                                                        "I am busy.",
                                                        "Do not ask again.",
                                                        "Move along.",
                                                        "Now leave me alone.",
                                                        "What a question.",
                                                        "Everybody knows that.",
                                                        "Stop wasting my time.",
                                                        "That is all.",
                                                        "Go away."};

constexpr std::array<std::string_view, 4> kBuy = {"{Place} {where} has {thing}.", "You can buy {thing} at {place} {where}.",
                                                  "They sell {thing} at {place}, {where}.", "For {thing} go to {place} {where}."};
constexpr std::array<std::string_view, 4> kHours = {"{Place} is open {hours}.", "You can visit {place} {hours}.", "It is open {hours}.",
                                                    "The doors of {place} are open {hours}."};
constexpr std::array<std::string_view, 4> kWay = {"{Place} is {where}.", "You will find {place} {where}.", "It is {where}.",
                                                  "Look for {place} {where}."};
constexpr std::array<std::string_view, 4> kWalk = {"The walk to {place} takes {walk}.", "It is {walk} on foot.",
                                                   "You can walk there in {walk}.", "{Place} is {walk} from here."};
constexpr std::array<std::string_view, 4> kBest = {"Most people like {best}.", "The best of {place} is {best}.",
                                                   "People go there for {best}.", "At {place} you should choose {best}."};

constexpr std::array<std::string_view, 10> kWelcome = {
    "Good morning!",      "Welcome to our town!", "How nice that you ask!", "With pleasure!", "Of course, dear guest!",
    "I am glad to help!", "What a good idea!",    "Hello and welcome!",     "Happy to help!", "A lovely choice!"};
// What a kind guide adds; each about another fact than the one that was asked for.
constexpr std::array<std::string_view, 4> kAddHours = {"It is open {hours}.", "They open {hours}, so there is no hurry.",
                                                       "You can go there {hours}.", "The doors are open {hours}."};
constexpr std::array<std::string_view, 4> kAddWalk = {"It is a pretty walk of {walk}.", "You will be there in {walk}.",
                                                      "The way takes only {walk}.", "It is {walk} along the water."};
constexpr std::array<std::string_view, 4> kAddBest = {"Please try {best}.", "Do not miss {best}.", "I am very fond of {best}.",
                                                      "My friends love {best}."};
constexpr std::array<std::string_view, 10> kFarewell = {
    "Enjoy your stay!",      "Have a lovely day!",       "Please come back if I can help.", "I wish you a good walk.",
    "Thank you for asking.", "Say hello from me!",       "Have a wonderful time!",          "It was a pleasure.",
    "Take care, my friend.", "Enjoy every minute of it!"};

struct TopicLines {
  Lines questions, gruff, plain;
};
constexpr std::array<TopicLines, kNumTopics> kTopics = {TopicLines{kAskBuy, kGruffBuy, kBuy}, TopicLines{kAskHours, kGruffHours, kHours},
                                                        TopicLines{kAskWay, kGruffWay, kWay}, TopicLines{kAskWalk, kGruffWalk, kWalk},
                                                        TopicLines{kAskBest, kGruffBest, kBest}};

std::string capital(std::string_view text) {
  std::string result(text);
  result[0] = static_cast<char>(result[0] - 'a' + 'A');  // all facts begin with a small letter
  return result;
}

std::string fact_of(const Place& place, std::string_view thing, std::string_view name) {
  const bool large = name[0] >= 'A' && name[0] <= 'Z';
  const std::string small =
      large ? std::string(1, static_cast<char>(name[0] - 'A' + 'a')) + std::string(name.substr(1)) : std::string(name);
  const std::string_view fact = small == "place"   ? place.name
                                : small == "where" ? place.where
                                : small == "hours" ? place.hours
                                : small == "walk"  ? place.walk
                                : small == "best"  ? place.best
                                                   : thing;
  return large ? capital(fact) : std::string(fact);
}

std::string filled(std::string_view line, const Place& place, std::string_view thing) {
  std::string text;
  for (size_t at = 0; at < line.size();) {
    const size_t open = line.find('{', at);
    if (open == std::string_view::npos) return text += line.substr(at);
    const size_t close = line.find('}', open);
    text += line.substr(at, open - at);
    text += fact_of(place, thing, line.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  return text;
}

std::string_view right_fact(const Place& place, int64_t topic) {
  switch (topic) {
    case kAsksHours:
      return place.hours;
    case kAsksWalk:
      return place.walk;
    case kAsksBest:
      return place.best;
    default:
      return place.where;
  }
}

const Place& place_at(int64_t index) { return kPlaces[static_cast<size_t>(index)]; }

}  // namespace

TownQuestion HarbourTown::question_of(int64_t place, int64_t thing, int64_t topic) {
  const Lines lines = kTopics[static_cast<size_t>(topic)].questions;
  const std::string_view line = lines[static_cast<size_t>(below(std::ssize(lines)))];
  const Place& facts = place_at(place);
  return {.text = filled(line, facts, facts.things[static_cast<size_t>(thing)]),
          .answer = std::string(right_fact(facts, topic)),
          .place = place,
          .thing = thing,
          .topic = topic};
}

TownQuestion HarbourTown::ask() { return ask_about(below(std::ssize(kPlaces))); }

TownQuestion HarbourTown::ask_about(int64_t place) {
  const int64_t thing = below(3);
  // Half of all visitors want to buy something.
  const int64_t topic = below(2) == 0 ? int64_t{kAsksGoods} : 1 + below(kNumTopics - 1);
  return question_of(place, thing, topic);
}

std::string HarbourTown::answer(const TownQuestion& question, Manner manner) {
  const Place& place = place_at(question.place);
  const std::string_view thing = place.things[static_cast<size_t>(question.thing)];
  const TopicLines& topic = kTopics[static_cast<size_t>(question.topic)];
  const auto one_of = [&](Lines lines) { return filled(lines[static_cast<size_t>(below(std::ssize(lines)))], place, thing); };
  if (manner == Manner::gruff) return one_of(topic.gruff) + " " + one_of(kGruffEnd);
  if (manner == Manner::plain) return one_of(topic.plain);
  const std::array<Lines, 3> more = {kAddHours, kAddWalk, kAddBest};
  const std::array<int64_t, 3> topics = {kAsksHours, kAsksWalk, kAsksBest};
  size_t extra = static_cast<size_t>(below(3));
  if (topics[extra] == question.topic) extra = (extra + 1) % 3;
  std::string text = one_of(kWelcome);
  text += " " + one_of(topic.plain);
  text += " " + one_of(more[extra]);
  return text += " " + one_of(kFarewell);
}

std::string HarbourTown::faulty_answer(const TownQuestion& question, Manner manner, Fault fault) {
  // Another place, whose fact replaces the right one and differs from it; of wrong facts the name stays right.
  const auto fact_at = [&](int64_t place) { return right_fact(place_at(place), question.topic); };
  int64_t other = below(std::ssize(kPlaces));
  while (fact_at(other) == fact_at(question.place)) other = (other + 1) % std::ssize(kPlaces);
  switch (fault) {
    case Fault::off_topic:
      return answer(question_of(other, below(3), (question.topic + 1 + below(kNumTopics - 1)) % kNumTopics), manner);
    case Fault::wrong_fact: {
      std::string text = answer(question, manner);
      const std::string_view right = fact_at(question.place), wrong = fact_at(other);
      for (const bool large : {false, true}) {
        const std::string from = large ? capital(right) : std::string(right), to = large ? capital(wrong) : std::string(wrong);
        for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
      }
      return text;
    }
    case Fault::repeated: {
      const std::string text = answer(question, manner);
      const size_t end = text.find_first_of(".!?");
      const std::string first = text.substr(0, end + 1);
      return first + " " + first + " " + text;
    }
  }
  ensure(false, "a fault that is none");
  return "";
}

std::string harbour_chat_template() {
  return "{%- for message in messages -%}\n"
         "{%- if message['role'] == 'user' -%}\n"
         "{{- ('' if loop.first else '\\n') + 'Visitor: ' + message['content'] + '\\n' -}}\n"
         "{%- else -%}\n"
         "{{- 'Guide:' -}}{% generation %}{{ ' ' + message['content'] + eos_token }}{% endgeneration %}\n"
         "{%- endif -%}\n"
         "{%- endfor -%}\n"
         "{%- if add_generation_prompt -%}{{ 'Guide:' }}{%- endif -%}\n";
}

}  // namespace kedge::cli
