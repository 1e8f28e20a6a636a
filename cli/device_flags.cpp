#include "cli/device_flags.h"

#include <ATen/Parallel.h>

#include "kedge/core/device.h"

namespace kedge::cli {

StorageOptions DeviceFlags::storage() const {
  if (threads > 0) at::set_num_threads(static_cast<int>(threads));
  const at::Device used = parse_device(device, "--device");
  use_device(used);
  return {dtype_of(dtype), used, false};
}

}  // namespace kedge::cli
