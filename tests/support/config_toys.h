#pragma once
// A small configuration with one field of every kind, and shorthands to load it.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config.h"
#include "kedge/config/yaml.h"

namespace kedge::testing {

enum class Mode { min, max };
constexpr auto enum_names(Mode) { return std::array<EnumName<Mode>, 2>{{{"min", Mode::min}, {"max", Mode::max}}}; }

struct ToyOptim {
  double lr = 1e-3;
  std::vector<double> betas = {0.9, 0.98};
  std::optional<double> clip = 1.0;

  void fields(auto&& field) {
    field("lr", lr, "learning rate", above(0), below(1));
    field("betas", betas, "decay of the moments", at_least(0), below(1));
    field("clip", clip, "largest gradient norm", above(0));
    field.ignored("bucket_cap_mb", "there are no buckets here");
    field.refused("fused", "only the fused form exists", {"true"});
    field.refused("other", "there is no other", {"null"});
  }
};

struct ToySource {
  std::string name;
  double weight = 1;

  void fields(auto&& field) {
    field("name", name, "which reward", required());
    field("weight", weight, "its share");
  }
};

struct ToyLogs {
  std::string folder = "runs";
  int64_t every = 10;
  int64_t keep = 0;

  void fields(auto&& field) {
    field("folder", folder, "where logs go");
    field("every", every, "steps between lines", at_least(1), unit("steps"));
    field("keep", keep, "lines to keep", follows("${.every}"));
  }
};

struct ToyConfig {
  std::string model;
  int64_t max_steps = 100;
  int64_t val_interval = 10;
  int64_t save_interval = 0;
  bool shuffle = true;
  Mode mode = Mode::max;
  ByteSize memory{1 << 20};
  std::optional<std::string> resume;
  std::vector<std::string> end_strings = {"<|endoftext|>"};
  std::map<std::string, int64_t> limits;
  Json data_prefix;
  ToyOptim optim;
  std::optional<ToyLogs> logs;
  std::vector<ToySource> sources;

  void fields(auto&& field) {
    field("model", model, "folder of the model", required());
    field("max_steps", max_steps, "cap on steps; -1: none", at_least(-1), unit("steps"));
    field("val_interval", val_interval, "validate every n steps");
    field("save_interval", save_interval, "save every n steps", follows("${.val_interval}"));
    field("shuffle", shuffle, "random order");
    field("mode", mode, "which end is better");
    field("memory", memory, "for the cache", at_least(1024));
    field("resume", resume, "a checkpoint");
    field("end_strings", end_strings, "stop here");
    field("limits", limits, "per name");
    field("data_prefix", data_prefix, "files");
    field("optim", optim, "the optimizer");
    field("logs", logs, "what is logged; null: nothing");
    field("sources", sources, "rewards");
    field.alias("lr", "optim.lr");
    field.alias("optimizer", "optim");
  }
};

struct ToyLoad {
  ToyConfig config;
  std::vector<std::string> warnings;
};

// Loads `yaml` as the file x.yaml would be, then the overrides.
inline ToyLoad load_toy(const std::string& yaml, std::vector<std::string> overrides = {}, bool with_model = true) {
  ToyLoad result;
  if (with_model) overrides.insert(overrides.begin(), "model=m");
  result.warnings = load_section(describe(result.config), ConfigText{"x.yaml", yaml}, overrides);
  return result;
}

}  // namespace kedge::testing
