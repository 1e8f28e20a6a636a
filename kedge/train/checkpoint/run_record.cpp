#include "kedge/train/checkpoint/run_record.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>

#include "kedge/core/error.h"
#include "kedge/core/fingerprint.h"
#include "kedge/core/identity.h"
#include "kedge/core/machine.h"
#include "kedge/core/version.h"

namespace kedge {
namespace {

constexpr size_t kPiece = size_t{1} << 20U, kNumPieces = 64;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%FT%TZ", &utc)};
}

Json hashes_of(const std::vector<Path>& files) {
  Json json{Json::Array{}};
  for (const Path& file : files) {
    Json entry;
    entry.set("file", file.string());
    entry.set("bytes", static_cast<int64_t>(std::filesystem::file_size(file)));
    entry.set("hash", file_hash(file));
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace

std::string file_hash(const Path& file) {
  const MappedFile mapped(file);
  Fingerprint hash;
  if (mapped.size() <= kPiece * kNumPieces) {
    hash.add(mapped.text());
    return hash.hex();
  }
  hash.add(static_cast<int64_t>(mapped.size()));
  for (size_t piece = 0; piece < kNumPieces; ++piece) {
    const size_t begin = (mapped.size() - kPiece) / (kNumPieces - 1) * piece;
    hash.add(mapped.text().substr(begin, kPiece));
    mapped.drop_pages(begin, begin + kPiece);
  }
  return hash.hex();
}

std::string run_id(const Path& folder) {
  const Path file = folder / "run.json";
  if (is_file(file)) {
    const Json starts = Json::parse(read_text(file), file.string());
    for (const Json& start : starts.as_array(file.string()))
      if (const Json* id = start.find("id"); id != nullptr && id->is_text()) return id->as_text(file.string());
  }
  std::string name = std::filesystem::absolute(folder).lexically_normal().filename().string();
  std::erase_if(name, [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '_' && letter != '-'; });
  return str(name, name.empty() ? "" : "-", random_hex(8));
}

Json run_record(const RunFacts& facts) {
  const Machine machine = this_machine();
  Json json;
  json.set("started", utc_now());
  if (!facts.id.empty()) json.set("id", facts.id);
  Json::Array words;
  for (const std::string& word : facts.command_line) words.emplace_back(word);
  json.set("command_line", std::move(words));
  json.set("folder", std::filesystem::current_path().string());
  json.set("kedge", Json::Object{{"version", version()}, {"commit", commit()}, {"build", build_type()}});
  json.set("torch", facts.torch_version);
  json.set("device", facts.device);
  json.set("ranks", facts.num_ranks);
  json.set("threads", facts.num_threads);
  json.set("host", host_name());
  json.set("machine", Json::Object{{"cpu", machine.cpu},
                                   {"architecture", machine.architecture},
                                   {"cores", int64_t{machine.num_cores}},
                                   {"memory_bytes", machine.memory_bytes}});
  json.set("model", hashes_of(facts.model_files));
  json.set("data", hashes_of(facts.data_files));
  json.set("max_steps", facts.max_steps);
  json.set("trained_parameters", facts.num_trained_parameters);
  json.set("dtype", facts.dtype);
  json.set("parent", facts.parent.empty() ? Json() : Json(facts.parent));
  return json;
}

int64_t num_starts(const Path& folder) {
  const std::string file = (folder / "run.json").string();
  return is_file(file) ? static_cast<int64_t>(Json::parse(read_text(file), file).as_array(file).size()) : 0;
}

Path parent_of(const Path& folder) {
  if (num_starts(folder) == 0) return {};
  const std::string file = (folder / "run.json").string();
  const Json starts = Json::parse(read_text(file), file);
  const Json& newest = starts.as_array(file).back();
  const Json* parent = newest.find("parent");
  return parent == nullptr || parent->is_null() ? Path() : Path(newest.at("folder", file).as_text(file)) / parent->as_text(file);
}

void add_run_record(const Path& folder, const Json& record) {
  const Path file = folder / "run.json";
  Json list = is_file(file) ? Json::parse(read_text(file), file.string()) : Json(Json::Array{});
  list.push_back(record);
  write_atomic(file, list.dump(2) + "\n");
}

}  // namespace kedge
