#include "kedge/data/sets/messages.h"

namespace kedge {
namespace {

Json read_message(const Row& row, const Json& value, const std::string& what, const RoleNames& roles) {
  if (!value.is_object()) row.fail_type(what, "a message, {\"role\", \"content\"}", value);
  const bool share_gpt = value.find("role") == nullptr && value.find("from") != nullptr;
  const std::string_view role_key = share_gpt ? "from" : "role";
  const std::string_view content_key = share_gpt ? "value" : "content";
  const Json* role = value.find(role_key);
  const Json* content = value.find(content_key);
  if (role == nullptr) row.fail(RowFault::missing_field, str(what, ": no \"role\" field"));
  if (!role->is_text()) row.fail_type(str(what, ".", role_key), "a string", *role);
  const auto known = roles.find(role->as_text(""));
  const Json renamed = known == roles.end() ? *role : Json(known->second);
  const Json* calls = value.find("tool_calls");
  if (content == nullptr && (calls == nullptr || calls->is_null()))
    row.fail(RowFault::missing_field, str(what, ": no \"", content_key, "\" field"));
  if (content != nullptr && !content->is_text() && renamed != Json("tool")) {
    const bool parts_allowed = !share_gpt && (content->is_null() || content->is_array());
    if (!parts_allowed) row.fail_type(str(what, ".", content_key), "a string", *content);
  }

  Json message;  // in the order of the row, which a template may print
  for (const auto& [key, member] : value.as_object("")) {
    if (key == role_key) {
      message.append("role", renamed);
    } else if (key == content_key) {
      message.append("content", member);
    } else if (key != "content") {
      message.append(key, member);
    }
  }
  return message;
}

}  // namespace

RoleNames default_roles() { return {{"human", "user"}, {"gpt", "assistant"}}; }

Json read_messages(const Row& row, const Json& value, std::string_view what, const RoleNames& roles) {
  if (value.is_object()) return Json::Array{read_message(row, value, std::string(what), roles)};
  if (!value.is_array()) row.fail_type(what, "a list of messages", value);
  Json::Array messages;
  for (const Json& item : value.as_array("")) messages.push_back(read_message(row, item, str(what, "[", messages.size(), "]"), roles));
  if (messages.empty()) row.fail(RowFault::bad_value, str(what, ": a list without messages"));
  return messages;
}

RenderedChat render(const ChatRenderer& chat, const ChatRequest& request, const Row& row) {
  if (!chat) row.fail(RowFault::bad_value, "messages need a chat template, and the model has none");
  try {
    return chat(request);
  } catch (const UsageError& error) {
    row.fail(RowFault::bad_value, error.what());
  }
}

}  // namespace kedge
