#include "cli/device_flags.h"

#include <ATen/Parallel.h>

#include "kedge/core/device.h"

namespace kedge::cli {

StorageOptions DeviceFlags::storage() const {
  if (threads > 0) at::set_num_threads(static_cast<int>(threads));
  return {dtype_of(dtype), parse_device(device, "--device"), false};
}

}  // namespace kedge::cli
