#pragma once
// A model folder's own chat template for data sets: messages to text, with the assistant's texts marked.
#include "kedge/core/files.h"
#include "kedge/text/chat/chat_renderer.h"

namespace kedge {

// The folder is read when the first conversation is rendered, so one without a chat template serves data that needs none; then it
// is a UsageError. "tools" and "documents" of a row go to the template. Safe to use from several threads.
[[nodiscard]] ChatRenderer chat_of_model(const Path& folder);

}  // namespace kedge
