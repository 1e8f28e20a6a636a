#pragma once
#include <string>

#include "kedge/model/model_config.h"
namespace kedge {
[[nodiscard]] ModelConfig shape_config(const std::string& name);
}  // namespace kedge
