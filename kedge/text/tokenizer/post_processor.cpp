#include "kedge/text/tokenizer/post_processor.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {
namespace {

TokenId id_of(const Json& json, const std::string& where) {
  const int64_t id = json.as_integer(where);
  check(id >= 0 && id <= Vocab::kMaxId, where, ": ", id, " is not a token id");
  return static_cast<TokenId>(id);
}

// ["[CLS]", 101]
TokenId id_of_pair(const Json& json, const std::string& where) {
  const Json::Array& pair = json.as_array(where);
  check(pair.size() == 2, where, ": expected a token and its id");
  return id_of(pair[1], where + "[1]");
}

}  // namespace

PostProcessor::PostProcessor(const Json* json, const std::string& where) {
  if (json != nullptr && !json->is_null()) add(*json, where);
}

PostProcessor::PostProcessor(TokenIds before, TokenIds behind) {
  templates_.push_back({{false, std::move(before)}, {true, {}}, {false, std::move(behind)}});
}

void PostProcessor::add(const Json& json, const std::string& where) {
  const std::string& type = json.at("type", where).as_text(where + ".type");
  if (type == "Sequence") {
    const Json::Array& parts = json.at("processors", where).as_array(where + ".processors");
    for (size_t i = 0; i < parts.size(); ++i) add(parts[i], str(where, ".processors[", i, "]"));
  } else if (type == "TemplateProcessing") {
    add_template(json, where);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const TokenId first = id_of_pair(json.at("cls", where), where + ".cls");
    const TokenId last = id_of_pair(json.at("sep", where), where + ".sep");
    templates_.push_back({{false, {first}}, {true, {}}, {false, {last}}});
  } else {
    check(type == "ByteLevel", where, ": the post-processor type \"", type, "\" is not supported");  // ByteLevel only moves offsets
  }
}

void PostProcessor::add_template(const Json& json, const std::string& where) {
  const Json& specials = json.at("special_tokens", where);
  Template made;
  const Json::Array& parts = json.at("single", where).as_array(where + ".single");
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string here = str(where, ".single[", i, "]");
    if (const Json* sequence = parts[i].find("Sequence")) {
      const std::string& name = sequence->at("id", here).as_text(here + ".Sequence.id");
      check(name == "A", here, ".Sequence.id: a template for one text cannot hold \"", name, "\"");
      made.push_back({true, {}});
      continue;
    }
    const std::string& token = parts[i].at("SpecialToken", here).at("id", here).as_text(here + ".SpecialToken.id");
    const std::string there = str(where, ".special_tokens.", token);
    const Json& ids = specials.at(token, where + ".special_tokens").at("ids", there);
    Part part;
    for (const Json& id : ids.as_array(there + ".ids")) part.ids.push_back(id_of(id, there + ".ids"));
    made.push_back(std::move(part));
  }
  const auto num_texts = std::count_if(made.begin(), made.end(), [](const Part& part) { return part.is_text; });
  check(num_texts == 1, where, ".single: expected the text once, found it ", num_texts, " times");
  templates_.push_back(std::move(made));
}

TokenIds PostProcessor::apply(const TokenIds& ids) const {
  TokenIds result = ids;
  for (const Template& made : templates_) {
    TokenIds next;
    for (const Part& part : made) {
      const TokenIds& added = part.is_text ? result : part.ids;
      next.insert(next.end(), added.begin(), added.end());
    }
    result = std::move(next);
  }
  return result;
}

}  // namespace kedge
