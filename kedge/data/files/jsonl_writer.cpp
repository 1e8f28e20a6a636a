#include "kedge/data/files/jsonl_writer.h"

#include <unistd.h>

#include "kedge/core/error.h"

namespace kedge {

JsonlWriter::JsonlWriter(const Path& path)
    : path_(path), temporary_(str(path.string(), ".tmp-", ::getpid())), out_(temporary_, std::ios::binary | std::ios::trunc) {
  if (!out_) throw Error(str(path_.string(), ": cannot be written"));
}

JsonlWriter::~JsonlWriter() {
  if (committed_) return;
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void JsonlWriter::append(const Json& row) {
  out_ << row.dump() << '\n';
  if (!out_) throw Error(str(path_.string(), ": cannot be written; is the disk full?"));
  ++num_rows_;
}

void JsonlWriter::commit() {
  out_.close();
  if (!out_) throw Error(str(path_.string(), ": cannot be written; is the disk full?"));
  sync_file(temporary_);
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) throw Error(str(path_.string(), ": cannot be renamed into place: ", error.message()));
  committed_ = true;
  sync_folder(path_.parent_path());
}

}  // namespace kedge
