#pragma once
// Lists of messages in the layouts found in data files, brought into one: [{"role", "content", ...}, ...].
#include <map>
#include <string>
#include <string_view>

#include "kedge/data/files/jsonl_file.h"
#include "kedge/text/chat/chat_renderer.h"

namespace kedge {

// What a role is called in the file -> what it is called here.
using RoleNames = std::map<std::string, std::string>;
[[nodiscard]] RoleNames default_roles();  // human: user, gpt: assistant

// `value` is a list of {"role", "content"} or {"from", "value"} objects, or one such object; other members stay, all in their
// order. A content is a string, or, with a role, a list of parts or null; that of role "tool" is anything. It may be missing beside
// "tool_calls". `what` names the field in errors. At least one message.
[[nodiscard]] Json read_messages(const Row& row, const Json& value, std::string_view what, const RoleNames& roles);

// Calls the renderer; without one, and where it fails, a RowError that names the row.
[[nodiscard]] RenderedChat render(const ChatRenderer& chat, const ChatRequest& request, const Row& row);

}  // namespace kedge
