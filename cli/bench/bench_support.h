#pragma once
// What the benchmarks have in common: the model, random tokens, and the parts of the line they print.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/model/model.h"
#include "kedge/run/step_time_estimate.h"

#include "cli/arguments.h"
#include "cli/device_flags.h"

namespace kedge::cli {

// One benchmark: with its own options. `run` returns the line to print.
struct BenchCase {
  std::string_view name, summary;
  Json (*run)(const Arguments& arguments);
  std::string (*flags)();
};

[[nodiscard]] Json bench_engine_decode(const Arguments& arguments);
[[nodiscard]] std::string bench_engine_flags();
[[nodiscard]] Json bench_server_reward(const Arguments& arguments);
[[nodiscard]] std::string bench_server_flags();
[[nodiscard]] Json bench_train_step(const Arguments& arguments);
[[nodiscard]] std::string bench_train_flags();

struct BenchFlags {
  std::optional<std::string> model, shape;
  DeviceFlags device;
  int64_t repeats = 3;
  std::optional<int64_t> lora;

  void fields(auto&& field) {
    field("model", model, "a model folder");
    field("shape", shape, "random weights of a named shape instead (kedge init --help lists them)");
    device.fields(field);
    field("repeats", repeats, "timed runs after one warm-up run", at_least(1));
    field("lora", lora, "add adapters of this rank to all linear layers", at_least(1));
  }
};

// Of the adapters that flags ask for.
[[nodiscard]] LoraConfig bench_lora(int64_t rank);
[[nodiscard]] ModelConfig bench_model_config(const BenchFlags& flags);
struct BenchModel {
  bool trainable = false;              // everything, or the adapters if there are any
  HeadKind head = HeadKind::language;  // a missing score head is created with one label
  int64_t kept_logits = 0;             // as in StorageOptions
};
[[nodiscard]] std::unique_ptr<Model> make_bench_model(const BenchFlags& flags, const BenchModel& wanted);

// Model, parameters, device, dtype, adapters, threads; a case adds its own.
[[nodiscard]] Json bench_settings(const BenchFlags& flags, const Model& model);
// The line of a case, to which it adds its results.
[[nodiscard]] Json bench_line(const char* name, Json settings);
// {"median", "min", "max"}
[[nodiscard]] Json spread_of(std::vector<double> values);

}  // namespace kedge::cli
