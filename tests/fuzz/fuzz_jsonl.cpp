// Bytes as a data file of every kind, read as training would: only UsageError may come out.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "kedge/core/log.h"
#include "kedge/data/check/data_report.h"
#include "kedge/data/sets/chat_dataset.h"
#include "kedge/data/sets/kto_dataset.h"
#include "kedge/data/sets/packing.h"
#include "kedge/data/sets/preference_dataset.h"
#include "kedge/data/sets/prompt_dataset.h"
#include "kedge/data/sets/regression_dataset.h"
#include "kedge/data/sets/sft_dataset.h"

#include "tests/support/toy_encoders.h"

namespace {

using kedge::testing::byte_encoder;
using kedge::testing::kToyEos;
using kedge::testing::render_toy_chat;

constexpr int64_t kMaxTokens = 24, kVocabulary = 258;

// The whole of a data set, one row at a time.
template <typename Make, typename Use>
void read_all(Make&& make, Use&& use) {
  try {
    const auto data = make();
    for (int64_t i = 0; i < data.size(); ++i) use(data.get(i));
  } catch (const kedge::UsageError&) {
  }
}

void read_as_every_kind(const kedge::Path& path) {
  kedge::PreferenceConfig config;
  config.seq_length = kMaxTokens;
  config.append_eod = true;
  kedge::SftFilesConfig files;
  files.max_seq_length = kMaxTokens;
  const auto rows = [&] { return kedge::Rows::of_file(path); };
  const auto use = [](const auto& /*example*/) {};
  const auto use_tokens = [](const kedge::MaskedTokens& tokens) {
    if (!tokens.ids.empty()) static_cast<void>(kedge::collate_packed(kedge::pack_rows({&tokens, 1})));
  };

  read_all([&] { return kedge::PromptDataset(rows(), byte_encoder(), config, kMaxTokens, render_toy_chat); }, use);
  read_all([&] { return kedge::SftDataset(rows(), byte_encoder(), files); }, use_tokens);
  read_all([&] { return kedge::ChatDataset(rows(), byte_encoder(), {}, kMaxTokens, render_toy_chat); }, use_tokens);
  read_all([&] { return kedge::KtoDataset(rows(), byte_encoder(), config, render_toy_chat); }, use);
  read_all([&] { return kedge::RegressionDataset(rows(), byte_encoder(), config, 1); }, use);
  read_all([&] { return kedge::PackedDataset(rows(), kMaxTokens, kMaxTokens, kVocabulary); }, use);
  for (const auto kind : {kedge::PreferenceUse::ranking, kedge::PreferenceUse::labelled})
    read_all(
        [&] {
          kedge::Rows pairs = kedge::Rows::of_file(path, rows_per_pair(kedge::JsonlFile(path)));
          return kedge::PreferenceDataset(std::move(pairs), byte_encoder(), config, kind, render_toy_chat);
        },
        use);
}

void report_every_kind(const kedge::Path& path) {
  kedge::DataCheckOptions options;
  options.encoder = byte_encoder();
  options.chat = render_toy_chat;
  for (const auto& kind : enum_names(kedge::DataKind{})) {
    options.kind = kind.value;
    try {
      const kedge::DataReport report = check_data(path, options);
      int64_t num_bad = 0;
      for (const auto& fault : report.faults) num_bad += fault.count;
      if (report.num_good + num_bad != report.num_examples) std::abort();  // no row may vanish
      static_cast<void>(to_text(report));
    } catch (const kedge::UsageError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = ::memfd_create("rows", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  static const bool quiet = (kedge::set_up_log({.level = kedge::LogLevel::error}), true);
  if (!quiet || ::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  read_as_every_kind(path);
  report_every_kind(path);
  return 0;
}
