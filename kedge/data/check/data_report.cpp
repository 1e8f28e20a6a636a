#include "kedge/data/check/data_report.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <string_view>

#include "kedge/core/utf8.h"
#include "kedge/data/check/example_preview.h"

namespace kedge {
namespace {

// Of one row, kept for all rows.
struct Seen {
  int64_t num_tokens = -1;  // -1: a broken row
  uint64_t row_hash = 0, prompt_hash = 0;
  bool crosses = false;
};

// FNV-1a: two different texts among a thousand million collide with a probability of about 3 %.
uint64_t hash_of(std::string_view text, uint64_t hash = 0xCBF29CE484222325U) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

uint64_t hash_of(const RowView& view) {
  uint64_t hash = 0xCBF29CE484222325U;
  for (const auto& [name, tokens] : view.sides) {
    hash = hash_of(name, hash);
    hash = hash_of({reinterpret_cast<const char*>(tokens.ids.data()), tokens.ids.size() * sizeof(TokenId)}, hash);
  }
  return hash;
}

Rows open(const Path& file, const DataCheckOptions& options) {
  auto opened = std::make_shared<const JsonlFile>(file);
  int64_t per_example = 1;
  if (options.kind == DataKind::preference) {
    try {
      per_example = rows_per_pair(*opened);
    } catch (const RowError&) {  // a broken first row is reported with the others
    }
  }
  const int64_t size = num_examples(*opened, per_example);
  return Rows({{std::move(opened), 0, size, 1}}, per_example);
}

// Reads every example; `fail` gets the errors, from several threads.
std::vector<Seen> look_at_all(const Rows& rows, const RowViewer& viewer, const std::function<void(int64_t, const RowError&)>& fail) {
  std::vector<Seen> seen(static_cast<size_t>(rows.size()));
  for_each_example(rows.size(), [&](int64_t i) {
    try {
      const RowView view = viewer(rows, i);
      seen[static_cast<size_t>(i)] = {view.num_tokens(), hash_of(view), hash_of(view.prompt), view.crosses};
    } catch (const RowError& error) {
      fail(i, error);
    }
  });
  return seen;
}

class FaultCounter {
 public:
  void add(int64_t example, const RowError& error) {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[error.fault()];
    ++entry.count;
    if (entry.count == 1 || example < entry.first) entry.first = example, entry.text = error.what();
  }
  [[nodiscard]] std::vector<DataReport::Fault> faults() const {
    std::vector<std::pair<int64_t, DataReport::Fault>> sorted;
    for (const auto& [kind, entry] : entries_) sorted.emplace_back(entry.first, DataReport::Fault{kind, entry.count, entry.text});
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<DataReport::Fault> faults;
    for (auto& [first, fault] : sorted) faults.push_back(std::move(fault));
    return faults;
  }

 private:
  struct Entry {
    int64_t count = 0, first = 0;
    std::string text;
  };
  std::mutex mutex_;
  std::map<RowFault, Entry> entries_;
};

DataReport::Repeats repeats(const std::vector<Seen>& seen, uint64_t Seen::*hash, const Rows& rows) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i].num_tokens >= 0) order.push_back(static_cast<int64_t>(i));
  const auto hash_at = [&](int64_t i) { return seen[static_cast<size_t>(i)].*hash; };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return std::pair(hash_at(a), a) < std::pair(hash_at(b), b); });
  DataReport::Repeats found;
  int64_t first = -1, earlier = -1;
  for (size_t i = 1; i < order.size(); ++i) {
    if (hash_at(order[i]) != hash_at(order[i - 1])) continue;
    ++found.count;
    if (first < 0 || order[i] < first) first = order[i], earlier = order[i - 1];
  }
  if (first >= 0) found.first = rows.where(first), found.first_earlier = rows.where(earlier);
  return found;
}

void add_lengths(DataReport& report, std::vector<int64_t> lengths) {
  if (lengths.empty()) return;
  std::sort(lengths.begin(), lengths.end());
  const auto quantile = [&](size_t percent) { return lengths[std::min(lengths.size() - 1, lengths.size() * percent / 100)]; };
  report.min_tokens = lengths.front();
  report.median_tokens = quantile(50);
  report.p95_tokens = quantile(95);
  report.max_tokens = lengths.back();
  report.total_tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  report.mean_tokens = static_cast<double>(report.total_tokens) / static_cast<double>(lengths.size());
  for (int64_t from = 0, to = 15; from <= report.max_tokens; from = to + 1, to = 2 * to + 1) {
    const auto begin = std::lower_bound(lengths.begin(), lengths.end(), from), end = std::upper_bound(lengths.begin(), lengths.end(), to);
    report.histogram.push_back({from, to, end - begin});
  }
}

ShownExample show(const RowView& view, std::string where, const TextEncoder& encoder) {
  ShownExample example{std::move(where), {}};
  for (const auto& [name, tokens] : view.sides) {
    std::vector<ShownToken> shown;
    for (size_t i = 0; i < tokens.ids.size(); ++i)
      shown.push_back({tokens.ids[i], utf8_replace_invalid(encoder.decode({&tokens.ids[i], 1})), tokens.mask[i] != 0});
    example.sides.emplace_back(name, std::move(shown));
  }
  return example;
}

constexpr int64_t kBarWidth = 40;

// Control characters as escapes, so that a token stays on its line.
std::string printable(const std::string& text) {
  const std::string quoted = Json(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

DataReport check_data(const Path& file, const DataCheckOptions& options) {
  const Rows rows = open(file, options);
  const RowViewer viewer = make_viewer(options);
  FaultCounter faults;
  const std::vector<Seen> seen = look_at_all(rows, viewer, [&](int64_t i, const RowError& error) { faults.add(i, error); });

  DataReport report;
  report.name = rows.name();
  report.num_examples = rows.size();
  report.faults = faults.faults();
  report.limit = options.max_tokens;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].num_tokens < 0) continue;
    const auto example = static_cast<int64_t>(i);
    if (!report.example) report.example = show(viewer(rows, example), rows.where(example), options.encoder);
    lengths.push_back(seen[i].num_tokens);
    if (seen[i].crosses && report.num_crossing++ == 0) report.first_crossing = rows.where(example);
    if (seen[i].num_tokens <= report.limit) continue;
    if (report.num_over_long++ == 0) report.first_over_long = rows.where(example);
  }
  report.num_good = static_cast<int64_t>(lengths.size());
  report.equal_rows = repeats(seen, &Seen::row_hash, rows);
  report.equal_prompts = repeats(seen, &Seen::prompt_hash, rows);
  add_lengths(report, std::move(lengths));
  return report;
}

PromptOverlap prompt_overlap(const Path& first, const Path& second, const DataCheckOptions& options) {
  const RowViewer viewer = make_viewer(options);
  const auto ignore = [](int64_t, const RowError&) {};
  std::vector<uint64_t> known;
  for (const Seen& seen : look_at_all(open(first, options), viewer, ignore))
    if (seen.num_tokens >= 0) known.push_back(seen.prompt_hash);
  std::sort(known.begin(), known.end());

  const Rows rows = open(second, options);
  const std::vector<Seen> others = look_at_all(rows, viewer, ignore);
  PromptOverlap overlap;
  for (size_t i = 0; i < others.size(); ++i) {
    if (others[i].num_tokens < 0) continue;
    ++overlap.num_prompts;
    if (!std::binary_search(known.begin(), known.end(), others[i].prompt_hash)) continue;
    if (overlap.num_shared++ == 0) overlap.first = rows.where(static_cast<int64_t>(i));
  }
  return overlap;
}

Json to_json(const DataReport& report) {
  Json json;
  json.set("file", report.name);
  json.set("examples", report.num_examples);
  json.set("good", report.num_good);
  Json::Array faults;
  for (const auto& fault : report.faults)
    faults.push_back(Json::Object{{"kind", name_of(fault.kind)}, {"count", fault.count}, {"first", fault.first}});
  json.set("faults", std::move(faults));
  json.set("tokens", Json::Object{{"total", report.total_tokens},
                                  {"min", report.min_tokens},
                                  {"mean", report.mean_tokens},
                                  {"median", report.median_tokens},
                                  {"p95", report.p95_tokens},
                                  {"max", report.max_tokens}});
  Json::Array histogram;
  for (const auto& bucket : report.histogram)
    histogram.push_back(Json::Object{{"from", bucket.from}, {"to", bucket.to}, {"count", bucket.count}});
  json.set("histogram", std::move(histogram));
  json.set("over_long", Json::Object{{"limit", report.limit}, {"count", report.num_over_long}, {"first", report.first_over_long}});
  json.set("crossing", Json::Object{{"count", report.num_crossing}, {"first", report.first_crossing}});
  const auto repeats_json = [](const DataReport::Repeats& repeats) {
    return Json::Object{{"count", repeats.count}, {"first", repeats.first}, {"earlier", repeats.first_earlier}};
  };
  json.set("equal_rows", repeats_json(report.equal_rows));
  json.set("equal_prompts", repeats_json(report.equal_prompts));
  if (!report.example) return json;
  Json sides;
  for (const auto& [name, tokens] : report.example->sides) {
    Json::Array shown;
    for (const ShownToken& token : tokens)
      shown.push_back(Json::Object{{"id", int64_t{token.id}}, {"text", token.text}, {"trained", token.trained}});
    sides.set(name, std::move(shown));
  }
  json.set("example", Json::Object{{"where", report.example->where}, {"sides", std::move(sides)}});
  return json;
}

std::string to_text(const DataReport& report) {
  std::string text = str(report.name, ": ", report.num_examples, " examples, ", report.num_good, " good\n");
  for (const auto& fault : report.faults) text += str("  ", fault.count, " x ", name_of(fault.kind), ", first: ", fault.first, "\n");
  if (report.num_good == 0) return text;
  text += str("tokens: ", report.total_tokens, " in total; shortest ", report.min_tokens, ", median ", report.median_tokens,
              ", 95 % up to ", report.p95_tokens, ", longest ", report.max_tokens, "\n");
  int64_t largest = 1;
  for (const auto& bucket : report.histogram) largest = std::max(largest, bucket.count);
  for (const auto& bucket : report.histogram)
    text += str("  ", bucket.from, "-", bucket.to, ": ", bucket.count, " ",
                std::string(static_cast<size_t>((bucket.count * kBarWidth + largest - 1) / largest), '#'), "\n");
  text += str("longer than ", report.limit, " tokens: ", report.num_over_long);
  if (report.num_over_long > 0) text += str(", first ", report.first_over_long);
  if (report.num_crossing > 0)
    text += str("\ntokens that reach from the prompt into an answer: ", report.num_crossing, ", first ", report.first_crossing,
                "; kedge dpo refuses these pairs unless model.data.prompt_boundary=common");
  for (const auto& [what, repeats] : {std::pair("equal rows", &report.equal_rows), std::pair("equal prompts", &report.equal_prompts)}) {
    text += str("\n", what, ": ", repeats->count);
    if (repeats->count > 0) text += str(", first ", repeats->first, " as ", repeats->first_earlier);
  }
  text += str("\nas the model sees ", report.example->where, " ([[trained on]]):\n");
  for (const auto& [name, tokens] : report.example->sides) {
    text += str("  ", name, ": ");
    bool open = false;
    for (const ShownToken& token : tokens) {
      if (token.trained != open) text += open ? "]]" : "[[";
      open = token.trained;
      text += "|" + printable(token.text);
    }
    text += open ? "|]]\n" : "|\n";
  }
  return text;
}

}  // namespace kedge
