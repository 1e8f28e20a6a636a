#pragma once
// Parses `model.data.data_prefix` and `splits_string`: which files make which split, with which weights, and where a file is
// cut. Opens no files.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"

namespace kedge {

struct WeightedFile {
  double weight = 1;
  Path path;
  friend bool operator==(const WeightedFile&, const WeightedFile&) = default;
};

// A path, [path], or [weight, path, weight, path, ...]. `key` opens errors.
[[nodiscard]] std::vector<WeightedFile> parse_files(const Json& value, std::string_view key);

struct DataPrefix {
  std::map<std::string, std::vector<WeightedFile>> files;  // by split: train, validation, validation_..., test
  std::vector<WeightedFile> cut_files;                     // the other form: these, each cut by `shares`
  std::array<double, 3> shares = {1, 0, 0};                // of train, validation, test; they sum to 1
};

// Either {train: [f], validation: [f], test: [f]}, or a list of files with a splits string such as "98,1,1" or "80/10/10".
[[nodiscard]] DataPrefix parse_data_prefix(const Json& prefix, const std::optional<std::string>& splits_string, std::string_view key);

// Shares of a splits string, scaled to sum to 1.
[[nodiscard]] std::array<double, 3> parse_splits(std::string_view splits_string, std::string_view key);

// The borders of train, validation and test among `size` examples: [b0, b1) is train, and so on.
[[nodiscard]] std::array<int64_t, 4> split_borders(const std::array<double, 3>& shares, int64_t size);

}  // namespace kedge
