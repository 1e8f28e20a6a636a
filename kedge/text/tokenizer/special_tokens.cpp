#include "kedge/text/tokenizer/special_tokens.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr std::array<const char*, 7> kRoles = {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

std::optional<Json> read_json(const Path& file) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  return Json::parse(read_text(file), file.string());
}

// "<s>", or the same with properties.
AddedToken read_token(const Json& json, const std::string& where) {
  AddedToken token;
  if (json.is_text()) {
    token.content = json.as_text(where);
  } else {
    token = AddedToken::from_json(json, where);
  }
  token.special = true;
  return token;
}

std::optional<bool> read_flag(const Json& json, const char* key, const std::string& where) {
  const Json* value = json.find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  return value->as_bool(str(where, ".", key));
}

}  // namespace

SpecialTokenFiles SpecialTokenFiles::read(const Path& folder) {
  SpecialTokenFiles files;
  if (const auto json = read_json(folder / "tokenizer_config.json"))
    files.read_tokenizer_config(*json, (folder / "tokenizer_config.json").string());
  if (files.added.empty()) {  // older folders
    if (const auto json = read_json(folder / "special_tokens_map.json"))
      files.read_named(*json, (folder / "special_tokens_map.json").string());
    if (const auto json = read_json(folder / "added_tokens.json")) files.read_added_tokens(*json, (folder / "added_tokens.json").string());
  }
  for (const char* name : {"generation_config.json", "config.json"})
    if (const auto json = read_json(folder / name)) files.read_ids(*json, (folder / name).string());
  return files;
}

void SpecialTokenFiles::read_named(const Json& json, const std::string& where) {
  for (const char* role : kRoles) {
    const Json* value = json.find(role);
    if (value == nullptr) continue;
    Named& entry = named[role];
    entry.given = true;
    entry.token = value->is_null() ? std::nullopt : std::optional(read_token(*value, str(where, ": ", role)));
  }
  // Tokens under names of the model's own, such as "image_token".
  for (const auto& [key, value] : json.as_object(where)) {
    const bool is_role = std::find(kRoles.begin(), kRoles.end(), key) != kRoles.end();
    if (key.ends_with("_token") && !is_role && (value.is_text() || value.find("content") != nullptr))
      more_special.push_back(read_token(value, str(where, ": ", key)));
  }
  for (const char* key : {"model_specific_special_tokens", "additional_special_tokens", "extra_special_tokens"}) {
    const Json* list = json.find(key);
    if (list == nullptr || list->is_null()) continue;
    const std::string here = str(where, ": ", key);
    if (list->is_object()) {
      for (const auto& [name, value] : list->as_object(here)) more_special.push_back(read_token(value, here + "." + name));
    } else {
      for (const Json& value : list->as_array(here)) more_special.push_back(read_token(value, here));
    }
  }
}

void SpecialTokenFiles::read_tokenizer_config(const Json& json, const std::string& where) {
  static_cast<void>(json.as_object(where));
  read_named(json, where);
  add_bos = read_flag(json, "add_bos_token", where);
  add_eos = read_flag(json, "add_eos_token", where);
  legacy = read_flag(json, "legacy", where);
  add_prefix_space = read_flag(json, "add_prefix_space", where);
  if (const Json* name = json.find("tokenizer_class"); name != nullptr && name->is_text()) tokenizer_class = name->as_text(where);
  const Json* decoder = json.find("added_tokens_decoder");
  if (decoder == nullptr) return;
  const std::string here = where + ": added_tokens_decoder";
  for (const auto& [key, value] : decoder->as_object(here)) {
    int64_t id = -1;
    const auto result = std::from_chars(key.data(), key.data() + key.size(), id);
    check(result.ec == std::errc() && result.ptr == key.data() + key.size(), here, ": \"", key, "\" is not a token id");
    added[id] = AddedToken::from_json(value, str(here, "[", key, "]"));
  }
}

void SpecialTokenFiles::read_added_tokens(const Json& json, const std::string& where) {
  const auto has_role = [&](const std::string& content) {
    const auto same = [&](const auto& entry) { return entry.second.token && entry.second.token->content == content; };
    return std::any_of(named.begin(), named.end(), same) ||
           std::any_of(more_special.begin(), more_special.end(), [&](const AddedToken& token) { return token.content == content; });
  };
  for (const auto& [content, id] : json.as_object(where)) {
    AddedToken token;
    token.content = content;
    token.special = has_role(content);
    token.normalized = !token.special;
    added[id.as_integer(where + ": " + content)] = token;
  }
}

void SpecialTokenFiles::read_ids(const Json& json, const std::string& where) {
  const auto ids = [&](const char* key) {
    std::vector<int64_t> values;
    const Json* value = json.find(key);
    const std::string here = str(where, ": ", key);
    if (value == nullptr || value->is_null()) return values;
    if (!value->is_array()) return std::vector<int64_t>{value->as_integer(here)};
    for (const Json& id : value->as_array(here)) values.push_back(id.as_integer(here));
    return values;
  };
  const auto first = [](std::optional<int64_t>& known, const std::vector<int64_t>& values) {
    if (!known && !values.empty() && values.front() >= 0) known = values.front();
  };
  first(bos_id, ids("bos_token_id"));
  first(pad_id, ids("pad_token_id"));
  const auto eos = ids("eos_token_id");
  first(eos_id, eos);
  if (stop_ids.empty()) stop_ids = eos;
}

std::vector<AddedToken> SpecialTokenFiles::tokens_to_add(const AddedTokens& present) const {
  std::vector<AddedToken> tokens;
  const auto in_list = [&](const std::string& content) {
    return std::find_if(tokens.begin(), tokens.end(), [&](const AddedToken& token) { return token.content == content; });
  };
  for (const auto& [id, token] : added) tokens.push_back(token);
  const auto add_special = [&](const AddedToken& token) {
    if (const auto found = in_list(token.content); found != tokens.end()) {
      found->special = true;
    } else if (const auto id = present.find(token.content)) {
      AddedToken known = present.token(*id);
      known.special = true;
      tokens.push_back(std::move(known));
    } else {
      tokens.push_back(token);
    }
  };
  for (const char* role : kRoles)
    if (const auto found = named.find(role); found != named.end() && found->second.token) add_special(*found->second.token);
  for (const AddedToken& token : more_special) add_special(token);
  return tokens;
}

}  // namespace kedge
