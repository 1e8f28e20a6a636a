#include "kedge/text/tokenizer/sentencepiece_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <unordered_set>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/tokenizer/byte_level.h"

namespace kedge {
namespace {

// One message of a protocol buffer, field by field.
class Message {
 public:
  Message(std::string_view bytes, const std::string& origin) : bytes_(bytes), origin_(origin) {}

  // False at the end.
  bool next() {
    if (at_ >= bytes_.size()) return false;
    const uint64_t tag = varint();
    field_ = tag >> 3U;
    kind_ = tag & 7U;
    if (field_ == 0) broken("a field without a number");
    switch (kind_) {
      case kVarint:
        number_ = varint();
        break;
      case kFixed64:
        payload_ = take(8);
        break;
      case kBytes:
        payload_ = take(varint());
        break;
      case kFixed32:
        payload_ = take(4);
        break;
      default:
        broken("a kind of field that SentencePiece never writes");
    }
    return true;
  }

  [[nodiscard]] uint64_t field() const { return field_; }
  [[nodiscard]] std::string_view text() const {
    if (kind_ != kBytes) broken("a field of the wrong kind");
    return payload_;
  }
  [[nodiscard]] uint64_t number() const {
    if (kind_ != kVarint) broken("a field of the wrong kind");
    return number_;
  }
  [[nodiscard]] bool flag() const { return number() != 0; }
  [[nodiscard]] float real() const {
    if (kind_ != kFixed32) broken("a field of the wrong kind");
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; ++i) bits |= uint32_t{static_cast<uint8_t>(payload_[i])} << (8 * i);
    return std::bit_cast<float>(bits);
  }

 private:
  static constexpr uint64_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

  [[noreturn]] void broken(std::string_view what) const { throw UsageError(str(origin_, ": not a SentencePiece model: ", what)); }

  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) broken("it is cut short");
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    broken("a number that does not end");
  }
  std::string_view take(uint64_t size) {
    if (size > bytes_.size() - at_) broken("it is cut short");
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

  std::string_view bytes_;
  const std::string& origin_;
  size_t at_ = 0;
  uint64_t field_ = 0, kind_ = 0, number_ = 0;
  std::string_view payload_;
};

// "IQ== 0": its first line.
bool is_tiktoken(std::string_view bytes) {
  constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  const std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
  const size_t blank = line.find(' ');
  if (blank == 0 || blank == std::string_view::npos || blank + 1 == line.size()) return false;
  return line.substr(0, blank).find_first_not_of(kBase64) == std::string_view::npos &&
         line.substr(blank + 1).find_first_not_of("0123456789\r") == std::string_view::npos;
}

SentencePieceModel::Piece read_piece(std::string_view bytes, const std::string& origin, size_t id) {
  SentencePieceModel::Piece piece;
  for (Message message(bytes, origin); message.next();) {
    if (message.field() == 1) piece.text = message.text();
    if (message.field() == 2) piece.score = message.real();
    if (message.field() != 3) continue;
    check(message.number() >= 1 && message.number() <= 6, origin, ": piece ", id, " is of an unknown type ", message.number());
    piece.type = static_cast<SentencePieceModel::PieceType>(message.number());
  }
  return piece;
}

void read_trainer(std::string_view bytes, const std::string& origin, SentencePieceModel& model, uint64_t& algorithm) {
  for (Message message(bytes, origin); message.next();) {
    switch (message.field()) {
      case 3:
        algorithm = message.number();
        break;
      case 24:
        model.whitespace_as_suffix = message.flag();
        break;
      case 35:
        model.byte_fallback = message.flag();
        break;
      case 44:
        model.unk_surface = message.text();
        break;
      case 45:
        model.unk_piece = message.text();
        break;
      case 46:
        model.bos_piece = message.text();
        break;
      case 47:
        model.eos_piece = message.text();
        break;
      case 48:
        model.pad_piece = message.text();
        break;
      default:
        break;  // how it was trained
    }
  }
}

void read_normalizer(std::string_view bytes, const std::string& origin, SentencePieceModel& model) {
  for (Message message(bytes, origin); message.next();) {
    switch (message.field()) {
      case 2:
        model.charsmap = message.text();
        break;
      case 3:
        model.add_dummy_prefix = message.flag();
        break;
      case 4:
        model.remove_extra_whitespaces = message.flag();
        break;
      case 5:
        model.escape_whitespaces = message.flag();
        break;
      default:
        break;  // names
    }
  }
}

void refuse_denormalizer(std::string_view bytes, const std::string& origin) {
  for (Message message(bytes, origin); message.next();)
    check(message.field() != 2 || message.text().empty(), origin, ": a denormalizer (replacements made when decoding) is not supported");
}

}  // namespace

SentencePieceModel SentencePieceModel::parse(std::string_view bytes, const std::string& origin) {
  check(!is_tiktoken(bytes), origin,
        ": is a tiktoken file (lines of base64 and a rank), not a SentencePiece model; kedge reads the tokenizer.json "
        "that the same model's Hugging Face folder has: put it next to this file");
  SentencePieceModel model;
  uint64_t algorithm = 1;
  for (Message message(bytes, origin); message.next();) {
    switch (message.field()) {
      case 1:
        model.pieces.push_back(read_piece(message.text(), origin, model.pieces.size()));
        break;
      case 2:
        read_trainer(message.text(), origin, model, algorithm);
        break;
      case 3:
        read_normalizer(message.text(), origin, model);
        break;
      case 5:
        refuse_denormalizer(message.text(), origin);
        break;
      default:
        break;
    }
  }
  check(algorithm != 3 && algorithm != 4, origin, ": SentencePiece's model type ", algorithm == 3 ? "WORD" : "CHAR",
        " is not supported; expected UNIGRAM or BPE");
  check(algorithm == 1 || algorithm == 2, origin, ": not a SentencePiece model: model type ", algorithm);
  model.algorithm = static_cast<Algorithm>(algorithm);
  model.check_pieces(origin);
  return model;
}

void SentencePieceModel::check_pieces(const std::string& origin) {
  constexpr size_t kMaxPieceBytes = 8000;
  check(!pieces.empty(), origin, ": not a SentencePiece model: it has no pieces");
  std::unordered_set<std::string_view> seen;
  std::array<bool, 256> byte_seen{};
  size_t num_unknown = 0;
  for (size_t id = 0; id < pieces.size(); ++id) {
    const Piece& piece = pieces[id];
    const auto wrong = [&](std::string_view what) { throw UsageError(str(origin, ": piece ", id, " ", what)); };
    if (piece.text.empty()) wrong("is empty");
    if (piece.text.size() >= kMaxPieceBytes) wrong("is too long");
    if (piece.text.find('\0') != std::string::npos) wrong("holds a NUL");
    if (utf8_valid_prefix(piece.text) != piece.text.size()) wrong("is not UTF-8");
    if (!std::isfinite(piece.score)) wrong("has a score that is not a number");
    if (!seen.insert(piece.text).second) wrong(str("\"", piece.text, "\" occurs twice"));
    if (piece.type == PieceType::unknown) {
      unk_id = id;
      ++num_unknown;
    }
    if (piece.type != PieceType::byte) continue;
    const auto byte = byte_of_token(piece.text);
    if (!byte || byte_token(*byte) != piece.text) wrong(str("\"", piece.text, "\" is said to be a byte"));
    byte_seen[*byte] = true;
  }
  check(num_unknown == 1, origin, ": expected one unknown piece, found ", num_unknown);
  check(!byte_fallback || std::all_of(byte_seen.begin(), byte_seen.end(), [](bool found) { return found; }), origin,
        ": byte_fallback is set, but the 256 byte pieces are not all there");
}

}  // namespace kedge
