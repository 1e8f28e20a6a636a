#include "kedge/core/gpu_code.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// One of the architectures: "90a-real" is {90, 'a', true, false}.
struct Architecture {
  int number = 0;
  char suffix = '\0';  // a: this very architecture; f: its family
  bool real = true, ptx = true;
};

bool take_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

std::optional<Architecture> parse_architecture(std::string_view text) {
  Architecture parsed;
  if (take_end(text, "-real")) parsed.ptx = false;
  if (take_end(text, "-virtual")) parsed.real = false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed.number);
  if (error != std::errc()) return std::nullopt;
  if (end != text.data() + text.size()) parsed.suffix = *end;
  return parsed;
}

// Instructions run on later cards of the same generation, PTX on all later ones; what is for one architecture alone, on that alone.
bool runs_natively(const Architecture& code, int card) {
  if (!code.real || code.number / 10 != card / 10) return false;
  return code.suffix == 'a' ? code.number == card : code.number <= card;
}
bool compiles(const Architecture& code, int card) {
  if (!code.ptx || code.number > card) return false;
  return code.suffix == '\0' || (code.suffix == 'a' ? code.number == card : code.number / 10 == card / 10);
}

std::string text_of(const Architecture& architecture) {
  std::string name = std::to_string(architecture.number);
  if (architecture.suffix != '\0') name += architecture.suffix;
  return name;
}

}  // namespace

GpuCode gpu_code_for(ComputeCapability card, std::string_view architectures) {
  const int number = card.major * 10 + card.minor;
  if (number < kLeastCapability.major * 10 + kLeastCapability.minor) return {GpuCodeKind::too_old, ""};
  std::optional<Architecture> native, ptx;
  while (!architectures.empty()) {
    const size_t end = std::min(architectures.find_first_of("; "), architectures.size());
    const std::optional<Architecture> code = parse_architecture(architectures.substr(0, end));
    architectures.remove_prefix(std::min(end + 1, architectures.size()));
    if (!code) continue;
    if (runs_natively(*code, number) && (!native || native->number < code->number)) native = code;
    if (compiles(*code, number) && (!ptx || ptx->number < code->number)) ptx = code;
  }
  if (native) return {GpuCodeKind::native, text_of(*native)};
  if (ptx) return {GpuCodeKind::ptx, text_of(*ptx)};
  return {GpuCodeKind::none, ""};
}

std::string describe(const GpuCode& code) {
  switch (code.kind) {
    case GpuCodeKind::native:
      return "kernels compiled for sm_" + code.architecture;
    case GpuCodeKind::ptx:
      return str("kernels compiled by the driver from PTX of compute_", code.architecture);
    case GpuCodeKind::too_old:
      return str("too old: compute capability ", kLeastCapability.major, ".", kLeastCapability.minor, " or newer is required");
    case GpuCodeKind::none:
      break;
  }
  return "this kedge has no kernels for it";
}

void check_gpu(const Gpu& gpu, std::string_view architectures, std::string_view where) {
  const GpuCode code = gpu_code_for(gpu.capability, architectures);
  const std::string card = str(where, " is a ", gpu.name, " of compute capability ", gpu.capability.major, ".", gpu.capability.minor);
  check(code.kind != GpuCodeKind::too_old, card, "; ", kLeastCapability.major, ".", kLeastCapability.minor,
        " or newer is required (A100, RTX 30 and later), whose tensor cores multiply bf16");
  check(code.kind != GpuCodeKind::none, card, ", and this kedge was compiled for ", architectures,
        " alone; build it with KEDGE_CUDA_ARCHITECTURES=", gpu.capability.major, gpu.capability.minor);
}

}  // namespace kedge
