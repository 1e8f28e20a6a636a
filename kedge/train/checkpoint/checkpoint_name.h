#pragma once
// The name of a checkpoint by a pattern: "{step}" becomes "step=10", "{val_loss:.3f}" becomes "val_loss=0.612",
// "{epoch:02d}" "epoch=03".
#include <map>
#include <string>
#include <string_view>

namespace kedge {

// A number that is not known (no validation yet) is shown as nan. A pattern that cannot be read, or that would not be a folder's name, is a
// UsageError opened by `where`.
[[nodiscard]] std::string checkpoint_name(std::string_view pattern, const std::map<std::string, double>& numbers, std::string_view where);

}  // namespace kedge
