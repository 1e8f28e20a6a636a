#include "kedge/text/tokenizer/token_decoder.h"

#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/tokenizer/byte_level.h"

namespace kedge {
namespace {

// A running step. Tokens arrive in parts: some bytes, then the end of the token; at last the end of everything.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual void bytes(std::string_view part) = 0;
  virtual void end_token() = 0;
  virtual void finish() { next_->finish(); }
  void set_next(Stage* next) { next_ = next; }

 protected:
  void hand_on(std::string_view token) const {
    next_->bytes(token);
    next_->end_token();
  }
  Stage* next_ = nullptr;
};

// The last one.
class Sink : public Stage {
 public:
  void bytes(std::string_view part) override { out_->append(part); }
  void end_token() override {}
  void finish() override {}
  void set_out(std::string* out) { out_ = out; }

 private:
  std::string* out_ = nullptr;
};

// A step that needs complete tokens.
class WholeTokens : public Stage {
 public:
  void bytes(std::string_view part) override { token_.append(part); }
  void end_token() override {
    whole(token_);
    token_.clear();
  }

 protected:
  virtual void whole(const std::string& token) = 0;

 private:
  std::string token_;
};

class JoinBySpace : public Stage {
 public:
  void bytes(std::string_view part) override {
    if (wants_space_) next_->bytes(" ");
    wants_space_ = false;
    next_->bytes(part);
  }
  void end_token() override { wants_space_ = true; }

 private:
  bool wants_space_ = false;
};

class FuseStage : public Stage {
 public:
  explicit FuseStage(const TokenDecoder::Fuse&) {}
  void bytes(std::string_view part) override { next_->bytes(part); }
  void end_token() override {}
  void finish() override {
    next_->end_token();
    next_->finish();
  }
};

class ByteLevelStage : public WholeTokens {
 public:
  explicit ByteLevelStage(const TokenDecoder::ByteLevel&) {}
  void whole(const std::string& token) override { next_->bytes(from_byte_level(token).value_or(token)); }
  void finish() override {  // all tokens become one
    next_->end_token();
    next_->finish();
  }
};

class ByteFallbackStage : public WholeTokens {
 public:
  explicit ByteFallbackStage(const TokenDecoder::ByteFallback&) {}
  void whole(const std::string& token) override {
    if (const auto byte = byte_of_token(token)) {
      const char c = static_cast<char>(*byte);
      next_->bytes({&c, 1});
      in_run_ = true;  // adjacent bytes become one token
      return;
    }
    end_run();
    hand_on(token);
  }
  void finish() override {
    end_run();
    next_->finish();
  }

 private:
  void end_run() {
    if (in_run_) next_->end_token();
    in_run_ = false;
  }
  bool in_run_ = false;
};

class MetaspaceStage : public WholeTokens {
 public:
  explicit MetaspaceStage(const TokenDecoder::Metaspace& step) : step_(step) {}
  void whole(const std::string& token) override {
    std::string text;
    const std::string_view space = first_ && step_.drops_first ? "" : " ";
    first_ = false;
    size_t done = 0;
    for (size_t at = token.find(step_.replacement); at != std::string::npos; at = token.find(step_.replacement, done)) {
      text.append(token, done, at - done).append(space);
      done = at + step_.replacement.size();
    }
    hand_on(text.append(token, done, std::string::npos));
  }

 private:
  const TokenDecoder::Metaspace& step_;
  bool first_ = true;
};

class ReplaceStage : public WholeTokens {
 public:
  explicit ReplaceStage(const TokenDecoder::Replace& step) : step_(step) {}
  void whole(const std::string& token) override {
    // An expression is only safe on text; bytes from a byte fallback may be none.
    hand_on(utf8_valid_prefix(token) == token.size() ? step_.pattern.replace(token, step_.content) : token);
  }

 private:
  const TokenDecoder::Replace& step_;
};

class BpeSuffixStage : public WholeTokens {
 public:
  explicit BpeSuffixStage(const TokenDecoder::BpeSuffix& step) : step_(step) {}
  void whole(const std::string& token) override {
    if (holds_) hand_on(without_suffix(" "));
    held_ = token;  // whether this one is the last is not known yet
    holds_ = true;
  }
  void finish() override {
    if (holds_) hand_on(without_suffix(""));
    next_->finish();
  }

 private:
  [[nodiscard]] std::string without_suffix(std::string_view replacement) const {
    if (step_.suffix.empty()) return held_;
    std::string text;
    size_t done = 0;
    for (size_t at = held_.find(step_.suffix); at != std::string::npos; at = held_.find(step_.suffix, done)) {
      text.append(held_, done, at - done).append(replacement);
      done = at + step_.suffix.size();
    }
    return text.append(held_, done, std::string::npos);
  }

  const TokenDecoder::BpeSuffix& step_;
  std::string held_;
  bool holds_ = false;
};

class StripStage : public Stage {
 public:
  explicit StripStage(const TokenDecoder::Strip& step) : step_(step), start_left_(step.start) {}

  void bytes(std::string_view part) override {
    held_.append(part);
    for (; start_left_ > 0 && held_.starts_with(step_.content); --start_left_) held_.erase(0, step_.content.size());
    if (start_left_ > 0 && step_.content.starts_with(held_)) return;  // may still become one to take off
    start_left_ = 0;
    if (step_.stop > 0) return;  // the end is not here yet
    next_->bytes(held_);
    held_.clear();
  }
  void end_token() override {
    for (size_t left = step_.stop; left > 0 && held_.ends_with(step_.content); --left) held_.resize(held_.size() - step_.content.size());
    hand_on(held_);
    held_.clear();
    start_left_ = step_.start;
  }

 private:
  const TokenDecoder::Strip& step_;
  size_t start_left_;
  std::string held_;
};

std::unique_ptr<Stage> make_stage(const TokenDecoder::ByteLevel& step) { return std::make_unique<ByteLevelStage>(step); }
std::unique_ptr<Stage> make_stage(const TokenDecoder::ByteFallback& step) { return std::make_unique<ByteFallbackStage>(step); }
std::unique_ptr<Stage> make_stage(const TokenDecoder::Fuse& step) { return std::make_unique<FuseStage>(step); }
std::unique_ptr<Stage> make_stage(const TokenDecoder::Metaspace& step) { return std::make_unique<MetaspaceStage>(step); }
std::unique_ptr<Stage> make_stage(const TokenDecoder::Strip& step) { return std::make_unique<StripStage>(step); }
std::unique_ptr<Stage> make_stage(const TokenDecoder::Replace& step) { return std::make_unique<ReplaceStage>(step); }
std::unique_ptr<Stage> make_stage(const TokenDecoder::BpeSuffix& step) { return std::make_unique<BpeSuffixStage>(step); }

class StageChain : public DecodeState {
 public:
  StageChain(const std::vector<TokenDecoder::Step>& steps, bool present) {
    if (!present) stages_.push_back(std::make_unique<JoinBySpace>());
    for (const auto& step : steps) stages_.push_back(std::visit([](const auto& known) { return make_stage(known); }, step));
    for (size_t i = 0; i < stages_.size(); ++i) stages_[i]->set_next(i + 1 < stages_.size() ? stages_[i + 1].get() : &sink_);
  }
  void push(std::string_view token, std::string& out) override {
    sink_.set_out(&out);
    first().bytes(token);
    first().end_token();
  }
  void finish(std::string& out) override {
    sink_.set_out(&out);
    first().finish();
  }

 private:
  Stage& first() { return stages_.empty() ? sink_ : *stages_.front(); }

  std::vector<std::unique_ptr<Stage>> stages_;
  Sink sink_;
};

}  // namespace

TokenDecoder::TokenDecoder(const Json* json, const std::string& where) {
  if (json == nullptr || json->is_null()) return;
  present_ = true;
  add(*json, where);
}

void TokenDecoder::add(const Json& json, const std::string& where) {
  const std::string& type = json.at("type", where).as_text(where + ".type");
  const auto count = [&](const char* key) {
    const int64_t value = json.at(key, where).as_integer(str(where, ".", key));
    check(value >= 0, where, ".", key, ": ", value, " is negative");
    return static_cast<size_t>(value);
  };
  if (type == "Sequence") {
    const Json::Array& parts = json.at("decoders", where).as_array(where + ".decoders");
    for (size_t i = 0; i < parts.size(); ++i) add(parts[i], str(where, ".decoders[", i, "]"));
  } else if (type == "ByteLevel") {
    steps_.emplace_back(ByteLevel{});
  } else if (type == "ByteFallback") {
    steps_.emplace_back(ByteFallback{});
  } else if (type == "Fuse") {
    steps_.emplace_back(Fuse{});
  } else if (type == "Metaspace") {
    const Json* scheme = json.find("prepend_scheme");
    const Json* prefix = json.find("add_prefix_space");
    const bool never =
        scheme != nullptr ? scheme->as_text(where + ".prepend_scheme") == "never" : prefix != nullptr && *prefix == Json(false);
    steps_.emplace_back(Metaspace{one_char(json.at("replacement", where), where + ".replacement"), !never});
  } else if (type == "Strip") {
    steps_.emplace_back(Strip{one_char(json.at("content", where), where + ".content"), count("start"), count("stop")});
  } else if (type == "Replace") {
    steps_.emplace_back(
        Replace{TextPattern(json.at("pattern", where), where + ".pattern"), json.at("content", where).as_text(where + ".content")});
  } else if (type == "BPEDecoder") {
    steps_.emplace_back(BpeSuffix{json.at("suffix", where).as_text(where + ".suffix")});
  } else {
    throw UsageError(str(where, ": the decoder type \"", type, "\" is not supported"));
  }
}

std::unique_ptr<DecodeState> TokenDecoder::start() const { return std::make_unique<StageChain>(steps_, present_); }

}  // namespace kedge
