#include "kedge/text/tokenizer/tokenizer_files.h"

#include "kedge/core/error.h"
#include "kedge/text/tokenizer/json_tokenizer.h"

namespace kedge {

void TokenizerFiles::write(const Path& folder) const {
  std::filesystem::create_directories(folder);
  write_atomic(folder / "tokenizer.json", tokenizer.dump(1) + "\n");
  write_atomic(folder / "tokenizer_config.json", config.dump(1) + "\n");
}

std::unique_ptr<Tokenizer> TokenizerFiles::load() const {
  auto made = std::make_unique<JsonTokenizer>(tokenizer, "tokenizer");
  const auto id_for = [&](const char* role) {
    const Json* token = config.find(role);
    return token == nullptr ? std::nullopt : made->id_of(token->as_text(role));
  };
  SpecialIds special;
  special.bos = id_for("bos_token");
  special.eos = id_for("eos_token");
  special.pad = id_for("pad_token");
  if (special.eos) special.stop.push_back(*special.eos);
  made->set_special(std::move(special));
  return made;
}

TokenizerFiles make_byte_level_files(ByteLevelParts parts, const TokenRoles& roles) {
  TokenizerFiles files;
  auto next_id = static_cast<int64_t>(parts.vocab.as_object("vocab").size());
  Json::Array added;
  for (const std::string& token : parts.special) {
    const Json* known = parts.vocab.find(token);
    const int64_t id = known != nullptr ? known->as_integer("vocab") : next_id++;
    added.emplace_back(Json::Object{{"id", id},
                                    {"content", token},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", true}});
  }
  const auto byte_level = [](bool use_regex) {
    return Json::Object{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
  };
  files.tokenizer = Json::Object{{"version", "1.0"},
                                 {"truncation", nullptr},
                                 {"padding", nullptr},
                                 {"added_tokens", std::move(added)},
                                 {"normalizer", nullptr},
                                 {"pre_tokenizer", byte_level(parts.split_words)},
                                 {"post_processor", nullptr},
                                 {"decoder", byte_level(true)},
                                 {"model", Json::Object{{"type", "BPE"},
                                                        {"dropout", nullptr},
                                                        {"unk_token", nullptr},
                                                        {"continuing_subword_prefix", nullptr},
                                                        {"end_of_word_suffix", nullptr},
                                                        {"fuse_unk", false},
                                                        {"byte_fallback", false},
                                                        {"ignore_merges", false},
                                                        {"vocab", std::move(parts.vocab)},
                                                        {"merges", std::move(parts.merges)}}}};
  files.config = Json::Object{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  for (const auto& [role, token] : {std::pair{"bos_token", roles.bos}, {"eos_token", roles.eos}, {"pad_token", roles.pad}})
    if (!token.empty()) files.config.set(role, token);
  return files;
}

}  // namespace kedge
