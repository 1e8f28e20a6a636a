#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/headeronly/version.h>

#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/core/version.h"
#include "kedge/dist/mpi.h"
#include "kedge/model/kernels/cudnn_attention.h"

#include "cli/commands.h"

namespace kedge::cli {
namespace {

struct DoctorOptions {
  bool json = false;

  void fields(auto&& field) { field("json", json, "print one JSON object instead of the table"); }
};

// One check. `missing` names packages to install; `remedy` is what else to do.
struct Finding {
  std::string name, text;
  std::string missing, remedy;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Finding look_at_cuda() {
  const auto& hooks = at::detail::getCUDAHooks();
  if (!hooks.hasCUDA()) {
    const bool has_driver = std::filesystem::exists("/proc/driver/nvidia/version");
    return {"CUDA", "none: this kedge was built without CUDA", "",
            has_driver ? "a NVIDIA driver is present; build with: scripts/build cuda" : ""};
  }
  if (num_cuda_devices() == 0) return {"CUDA", "none: the driver shows no device (nvidia-smi says more)", "", ""};
  std::string text;
  for (int i = 0; i < num_cuda_devices(); ++i) text += str(i > 0 ? ", " : "", describe_cuda_device(i));
  return {"CUDA", text, "", ""};
}

Finding look_at_attention() { return {"attention", "in training " + cuda::describe_cudnn_attention(0), "", ""}; }

Finding look_at_mpi() {
  const std::string version = mpi::library_version();
  if (!mpi::is_built()) return {"MPI", "none: one process only", "libopenmpi-dev openmpi-bin", "then build again"};
  if (version.empty()) return {"MPI", "not installed: one process only", "openmpi-bin", ""};
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0)
    return {"MPI", version + ", but no mpirun to start ranks with", "openmpi-bin", ""};
  return {"MPI", version, "", ""};
}

std::vector<Finding> look_at_everything() {
  const Machine machine = this_machine();
  const char* omp = std::getenv("OMP_NUM_THREADS");
  std::vector<Finding> findings = {
      {"kedge", str(version(), ", commit ", commit(), ", ", build_type()), "", ""},
      {"CPU", str(machine.cpu, ", ", machine.architecture, ", ", machine.num_cores, machine.num_cores == 1 ? " core" : " cores"), "", ""},
      {"features", machine.features.empty() ? "none that matter" : joined(machine.features), "", ""},
      {"threads", str(at::get_num_threads(), omp != nullptr ? str(" (OMP_NUM_THREADS=", omp, ")") : std::string()), "", ""},
      {"memory", str(format_bytes(machine.memory_bytes), ", ", format_bytes(machine.available_bytes), " available"), "", ""},
      {"disk", str(format_bytes(free_disk_bytes(".")), " free here"), "", ""},
      {"torch", TORCH_VERSION, "", ""},
      look_at_cuda(),
      look_at_mpi(),
  };
  if (num_cuda_devices() > 0) findings.push_back(look_at_attention());
  if (at::get_num_threads() > machine.num_cores)
    findings[3].remedy = str("more threads than cores; set OMP_NUM_THREADS=", machine.num_cores);
  return findings;
}

std::string table_of(const std::vector<Finding>& findings) {
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.name.size());
  std::string text, missing, remedies;
  for (const Finding& finding : findings) {
    text += str(finding.name, std::string(width - finding.name.size() + 2, ' '), finding.text, "\n");
    if (!finding.missing.empty()) missing += " " + finding.missing;
    if (!finding.remedy.empty()) remedies += str("- ", finding.name, ": ", finding.remedy, "\n");
  }
  if (!missing.empty()) text += str("\nTo install what is missing:\n  apt-get install", missing, "\n");
  if (!remedies.empty()) text += "\n" + remedies;
  if (missing.empty() && remedies.empty()) text += "\nNothing is missing.\n";
  return text;
}

}  // namespace

std::string doctor_flags() { return options_help<DoctorOptions>(); }

int run_doctor(const Arguments& arguments) {
  const auto options = parse_options<DoctorOptions>(arguments);
  const std::vector<Finding> findings = look_at_everything();
  std::string text;
  if (options.json) {
    Json json;
    for (const Finding& finding : findings) json.set(finding.name, finding.text);
    text = json.dump() + "\n";
  } else {
    text = table_of(findings);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitOk;
}

}  // namespace kedge::cli
