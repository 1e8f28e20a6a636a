#pragma once
// Low-rank adapters on linear layers: y = W x + scale * B A x. They are added unmerged, so switching them off gives the base network
// bit for bit.
#include <map>
#include <optional>
#include <vector>

#include "kedge/model/lora_config.h"
#include "kedge/model/parameters.h"

namespace kedge {

// One adapter's part in a product, ready to use.
struct AdapterView {
  Tensor a, b;  // [rank, in], [rows, rank]
  Tensor a_gradient, b_gradient;
  int64_t row = 0, rows = 0;
  double scale = 1, dropout = 0;
  uint64_t place = 0;  // among the adapters, for dropout's draws
};

class Adapters {
 public:
  Adapters(const LoraConfig& config, std::vector<LinearSlice> slices, const StorageOptions& options);

  // A Xavier-normal, B zero: nothing changes at first.
  void initialise(uint64_t seed);

  [[nodiscard]] const LoraConfig& config() const { return config_; }
  [[nodiscard]] const std::vector<LinearSlice>& slices() const { return slices_; }
  [[nodiscard]] Parameters& parameters() { return parameters_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  // Places of slice i's matrices among the parameters.
  [[nodiscard]] static int a_of(size_t i) { return static_cast<int>(2 * i); }
  [[nodiscard]] static int b_of(size_t i) { return static_cast<int>(2 * i + 1); }

  // Those on a parameter of the base; none while switched off.
  [[nodiscard]] const std::vector<AdapterView>& on(int base_parameter) const;

  [[nodiscard]] bool enabled() const { return enabled_; }
  void set_enabled(bool enabled) { enabled_ = enabled; }

 private:
  LoraConfig config_;
  std::vector<LinearSlice> slices_;
  Parameters parameters_;
  std::map<int, std::vector<AdapterView>> views_;
  bool enabled_ = true;
};

// The base network alone, for as long as it lives. `adapters` may be null.
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
