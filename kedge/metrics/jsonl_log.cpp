#include "kedge/metrics/jsonl_log.h"

#include <string_view>

#include "kedge/core/log.h"

namespace kedge {
JsonlLog::JsonlLog(const Path& path) : file_(path) {
  const auto end_of_last_line = static_cast<int64_t>(MappedFile(path).text().rfind('\n') + 1);  // npos + 1 is 0
  if (end_of_last_line == file_.size()) return;
  log_warn(path.string(), ": the last line was cut short; dropping its ", file_.size() - end_of_last_line, " bytes");
  file_.cut_back(end_of_last_line);
}

void JsonlLog::append(const Json& value) { file_.append(value.dump() + '\n'); }

void JsonlLog::cut_back(int64_t offset) {
  const auto where = [&] { return str(path().string(), ": cannot be truncated to byte ", offset); };
  check(offset >= 0 && offset <= this->offset(), where(), ": it has ", this->offset(), " bytes; was it changed since the checkpoint?");
  check(starts_a_line(path(), offset), where(), ": no line ends there; was it changed since the checkpoint?");
  file_.cut_back(offset);
}

bool starts_a_line(const Path& path, int64_t offset) {
  const MappedFile file(path);
  if (offset < 0 || offset > static_cast<int64_t>(file.size())) return false;
  return offset == 0 || file.text()[static_cast<size_t>(offset) - 1] == '\n';
}

std::vector<JsonlLine> read_jsonl(const Path& path) {
  const MappedFile file(path);
  std::vector<JsonlLine> lines;
  size_t start = 0;
  for (size_t end = 0; (end = file.text().find('\n', start)) != std::string_view::npos; start = end + 1) {
    const auto number = static_cast<int64_t>(lines.size()) + 1;
    lines.push_back({number, static_cast<int64_t>(start), Json::parse(file.text().substr(start, end - start), path.string(), number)});
  }
  return lines;
}

}  // namespace kedge
