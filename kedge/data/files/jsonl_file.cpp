#include "kedge/data/files/jsonl_file.h"

#include "kedge/core/gzip.h"
#include "kedge/core/utf8.h"

namespace kedge {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

MappedFile map(const Path& path) {
  MappedFile mapped(path);
  return is_gzip(mapped.text()) ? map_unpacked(path) : std::move(mapped);
}

// Json's own error with the line of the file in place of the line of the row.
[[noreturn]] void fail_parse(const JsonlFile& file, int64_t row, std::string_view text, const UsageError& error) {
  const size_t valid = utf8_valid_prefix(text);
  if (valid < text.size()) throw RowError(RowFault::not_utf8, str(file.where(row), ": not UTF-8 at byte ", valid + 1, " of the row"));
  constexpr std::string_view kWhat = "not valid JSON: ";
  std::string_view what = error.what();
  if (const size_t start = what.find(kWhat); start != std::string_view::npos) what.remove_prefix(start + kWhat.size());
  throw RowError(RowFault::not_json, str(file.where(row), ": not valid JSON: ", what));
}

}  // namespace

std::string Row::where() const { return file_->where(index_); }

int64_t Row::line() const { return file_->line(index_); }

const Json& Row::at(std::string_view key) const {
  const Json* value = json_.find(key);
  if (value != nullptr) return *value;
  fail_missing(Json(std::string(key)).dump(), "");
}

const std::string& Row::text(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_text()) fail_type(str("\"", key, "\""), "a string", value);
  return value.as_text("");
}

void Row::fail(RowFault fault, std::string_view what) const { throw RowError(fault, str(where(), ": ", what)); }

void Row::fail_missing(std::string_view what, std::string_view remedy) const {
  std::string others;
  for (const auto& [name, other] : json_.as_object("")) others += str(others.empty() ? "; the row has " : ", ", Json(name).dump());
  fail(RowFault::missing_field, str("no ", what, " field", others, remedy.empty() ? "" : "; ", remedy));
}

void Row::fail_type(std::string_view what, std::string_view wanted, const Json& found) const {
  fail(RowFault::wrong_type, str(what, ": expected ", wanted, ", found ", name_of(found.kind())));
}

JsonlFile::JsonlFile(const Path& path)
    : path_(path), mapped_(map(path)), start_(mapped_.text().starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0) {
  check(!mapped_.text().starts_with("PAR1"), path_.string(),
        ": is a Parquet file; expected JSON Lines. To convert it: python3 -c \"import pandas; "
        "pandas.read_parquet('",
        path_.string(), "').to_json('", path_.stem().string(), ".jsonl', orient='records', lines=True)\"");
  size_t dropped = 0;
  index_ = JsonlIndex::build(mapped_.text().substr(start_), path_.string(), [&](size_t scanned) {
    mapped_.drop_pages(dropped, start_ + scanned);
    dropped = start_ + scanned;
  });
  mapped_.drop_pages(0, mapped_.size());
  check(size() > 0, path_.string(), ": no rows; expected JSON Lines (an object a line) or a JSON list of objects");
}

std::string JsonlFile::bytes(int64_t row) const {
  ensure(row >= 0 && row < size(), path_.string(), ": row ", row, " of ", size());
  const TextSpan span = index_.span(row);
  return mapped_.read(start_ + span.begin, start_ + span.end);
}

Row JsonlFile::row(int64_t row) const {
  const std::string whole = bytes(row);
  const std::string_view text = index_.trim(whole, row);
  if (text.empty()) throw RowError(RowFault::empty_line, str(where(row), ": an empty line"));
  Json json;
  try {
    json = Json::parse(text);
  } catch (const UsageError& error) {
    fail_parse(*this, row, text, error);
  }
  if (!json.is_object()) throw RowError(RowFault::not_an_object, str(where(row), ": expected an object, found ", name_of(json.kind())));
  return {std::move(json), *this, row};
}

std::string JsonlFile::where(int64_t row) const { return str(path_.string(), ":", line(row)); }

int64_t JsonlFile::line(int64_t row) const {
  const int64_t line = index_.line(mapped_.text().substr(start_), row);
  if (index_.layout() == JsonlIndex::Layout::list) mapped_.drop_pages(0, mapped_.size());  // lines were counted in the text
  return line;
}

}  // namespace kedge
