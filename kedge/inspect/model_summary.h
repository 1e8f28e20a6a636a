#pragma once
// What kind of network is in a model or adapter folder, in a few numbers. Reads only the names of weights.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/core/files.h"
#include "kedge/core/json.h"

namespace kedge {

struct NetworkFacts {
  std::string family = {};  // "llama"; empty if an adapter's base was not found
  int64_t num_parameters = 0, num_layers = 0, hidden_size = 0;
  int64_t num_labels = 0;  // of a score head; 0: a language model
  std::string dtype = {};
  // Of adapters; rank 0: the folder holds a complete network.
  int64_t rank = 0, num_adapter_parameters = 0;
  std::string base = {};  // as the adapter's config names it
};

[[nodiscard]] bool is_adapter_folder(const Path& folder);

// The network below an adapter: the folder its config names, where relative paths begin at `started_in`, or a name in the Hugging Face
// cache. UsageError, opened by `where`, if it is not found.
[[nodiscard]] Path find_adapter_base(const Path& adapter, const Path& started_in, const std::string& where);

// UsageError for other folders. An adapter's base that is not found is left out.
[[nodiscard]] NetworkFacts read_network_facts(const Path& folder, const Path& started_in);

// "llama, 656,000 parameters, 2 layers of 128": one line.
[[nodiscard]] std::string network_text(const NetworkFacts& facts);
[[nodiscard]] Json network_json(const NetworkFacts& facts);

// 1,234,567.
[[nodiscard]] std::string with_commas(int64_t number);

}  // namespace kedge
