#include "kedge/text/tokenizer/vocab.h"

#include <cstring>

namespace kedge {
namespace {

constexpr uint64_t kMix = 0x9E3779B97F4A7C15U;
constexpr size_t kMaxTokenBytes = (1U << 23U) - 1;

uint64_t mix(uint64_t a) {
  a ^= a >> 32U;
  a *= kMix;
  return a ^ (a >> 29U);
}

uint64_t load(const char* from, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, from, size);
  return value;
}

}  // namespace

uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = bytes.size() * kMix;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) hash = mix(hash ^ load(at, 8));
  if (left > 0) hash = mix(hash ^ load(at, left));
  return mix(hash);
}

void Vocab::reserve(size_t num_tokens) {
  size_t size = 16;
  while (size < num_tokens * 2) size *= 2;
  if (size > slots_.size()) rehash(size);
}

void Vocab::rehash(size_t num_slots) {
  slots_.assign(num_slots, 0);
  for (TokenId id = 0; id < end_id(); ++id)
    if (has(id)) place(id);
}

void Vocab::place(TokenId id) {
  size_t slot = hash_bytes(token(id)) & (slots_.size() - 1);
  while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = id + 1;
}

bool Vocab::add(std::string_view token, TokenId id) {
  if (id < 0 || id > kMaxId || has(id) || token.size() > kMaxTokenBytes || find(token)) return false;
  if (static_cast<size_t>(id) >= spans_.size()) spans_.resize(static_cast<size_t>(id) + 1);
  Span& span = spans_[static_cast<size_t>(id)];
  span.start = text_.size();
  span.length = token.size();
  span.used = 1;
  text_.append(token);
  num_tokens_ += 1;
  if (num_tokens_ * 2 > slots_.size()) {
    rehash(slots_.empty() ? 16 : slots_.size() * 2);
  } else {
    place(id);
  }
  return true;
}

std::optional<TokenId> Vocab::find(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  for (size_t slot = hash_bytes(token) & (slots_.size() - 1); slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const TokenId id = slots_[slot] - 1;
    if (this->token(id) == token) return id;
  }
  return std::nullopt;
}

std::string_view Vocab::token(TokenId id) const {
  if (!has(id)) return {};
  const Span span = spans_[static_cast<size_t>(id)];
  return std::string_view(text_).substr(span.start, span.length);
}

}  // namespace kedge
