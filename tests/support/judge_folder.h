#pragma once
// The folder of a tiny reward model over bytes, with a tokenizer and a chat template.
#include <memory>
#include <string>

#include "kedge/model/files/model_files.h"
#include "kedge/text/tokenizer/byte_tokenizer.h"

#include "tests/support/temp_folder.h"
#include "tests/support/tiny_training.h"

namespace kedge::testing {

struct JudgeFolder : TempFolder {
  explicit JudgeFolder(int64_t num_labels = 1) {
    save_model(*byte_model({HeadKind::score, num_labels, false}), path());
    byte_tokenizer_files().write(path());
    file("chat_template.jinja", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
  }

  [[nodiscard]] std::unique_ptr<Model> load(bool trainable = false) const { return load(StorageOptions{.trainable = trainable}); }
  [[nodiscard]] std::unique_ptr<Model> load(const StorageOptions& storage) const {
    return load_model(path(), {.storage = storage, .head = HeadKind::score});
  }
};

}  // namespace kedge::testing
