#include "kedge/data/sets/data_config.h"

#include "kedge/core/error.h"

namespace kedge {

std::map<std::string, Rows> open_data(const DataConfig& config, std::string_view key, int64_t rows_per_example) {
  check(config.data_impl.starts_with("json"), key, ".data_impl: \"", config.data_impl,
        "\" is not supported; expected jsonl: text, an object a line, which needs no preparation");
  return open_splits(parse_data_prefix(config.data_prefix, config.splits_string, str(key, ".data_prefix")), rows_per_example);
}

std::vector<Path> data_files(const DataConfig& config, std::string_view key) {
  const DataPrefix prefix = parse_data_prefix(config.data_prefix, config.splits_string, str(key, ".data_prefix"));
  std::vector<Path> files;
  for (const auto& [split, some] : prefix.files)
    for (const WeightedFile& file : some) files.push_back(file.path);
  for (const WeightedFile& file : prefix.cut_files) files.push_back(file.path);
  return files;
}

void check_bos(bool add_bos, const Tokenizer& tokenizer, const Path& folder, std::string_view key) {
  check(!add_bos || tokenizer.special().bos, key, ".add_bos: the tokenizer of ", folder.string(), " has no BOS token; set it to false");
}

}  // namespace kedge
