#pragma once
// Low-rank adapters on linear layers: y = W x + scale * B A x. They are added unmerged, so disabling them gives the base network
// bit for bit. On a score model they have their own score head, because that of the base may be new and must be trained too.
#include <map>
#include <optional>
#include <vector>

#include "kedge/model/parameters.h"
#include "kedge/model/spec/lora_config.h"

namespace kedge {

// One adapter's part in a product, ready to use.
struct AdapterView {
  Tensor a, b;  // [rank, in], [rows, rank]
  Tensor a_gradient, b_gradient;
  int64_t row = 0, rows = 0;
  double scale = 1, dropout = 0;
  uint64_t place = 0;  // among the adapters, for dropout's draws
  // The outputs among those of the complete layer: draws are by their places there.
  std::vector<ParameterPart::Rows> outputs = {};
  int64_t num_outputs = 0;
};

// The base model of adapters that tensor ranks hold together; all null for one rank.
struct SplitBase {
  const ModelConfig* config = nullptr;
  const HeadOptions* head = nullptr;
};

class Adapters {
 public:
  // `slices` of the complete model. `head`: the base's score head, whose values the own one starts with; none for a language model.
  Adapters(const LoraConfig& config, std::vector<LinearSlice> slices, const StorageOptions& options, const ScoreView& head = {},
           const SplitBase& base = {});

  // A Xavier-normal, B zero: nothing changes at first. The head stays as it is.
  void initialise(uint64_t seed);

  [[nodiscard]] const LoraConfig& config() const { return config_; }
  [[nodiscard]] const std::vector<LinearSlice>& slices() const { return slices_; }
  [[nodiscard]] Parameters& parameters() { return parameters_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  // Places of slice i's matrices among the parameters.
  [[nodiscard]] static int a_of(size_t i) { return static_cast<int>(2 * i); }
  [[nodiscard]] static int b_of(size_t i) { return static_cast<int>(2 * i + 1); }

  // Places of the score head among them; -1 if there is none.
  [[nodiscard]] int score() const { return score_; }
  [[nodiscard]] int score_bias() const { return score_bias_; }

  // Those on a parameter of the base; none while switched off.
  [[nodiscard]] const std::vector<AdapterView>& on(int base_parameter) const;

  // Of slice i, whether switched on or not.
  [[nodiscard]] const AdapterView& view(size_t i) const;

  [[nodiscard]] bool enabled() const { return enabled_; }
  void set_enabled(bool enabled) { enabled_ = enabled; }

 private:
  LoraConfig config_;
  std::vector<LinearSlice> slices_;
  int score_, score_bias_;
  Parameters parameters_;
  std::map<int, std::vector<AdapterView>> views_;
  bool enabled_ = true;
};

// Disables the adapters for as long as it lives. `adapters` may be null.
class AdaptersOff {
 public:
  explicit AdaptersOff(Adapters* adapters) : adapters_(adapters), was_enabled_(adapters != nullptr && adapters->enabled()) {
    if (adapters_ != nullptr) adapters_->set_enabled(false);
  }
  ~AdaptersOff() {
    if (adapters_ != nullptr) adapters_->set_enabled(was_enabled_);
  }
  AdaptersOff(const AdaptersOff&) = delete;
  AdaptersOff& operator=(const AdaptersOff&) = delete;

 private:
  Adapters* adapters_;
  bool was_enabled_;
};

}  // namespace kedge
