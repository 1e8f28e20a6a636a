#pragma once
// What one rank is about to do in a collective call. Small and of fixed size, so the ranks exchange it before
// every call, and ranks that disagree get an error that shows both sides, not a hang. Independent of transport and torch.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kedge {

struct CollectiveCall {
  static constexpr size_t kMaxDims = 8;

  std::array<char, 32> name{};   // with what else must be equal: "all_reduce sum", "broadcast from rank 2"
  std::array<char, 16> dtype{};  // of the elements; empty where nothing is carried
  int64_t num_dims = 0;
  std::array<int64_t, kMaxDims> dims{};

  [[nodiscard]] std::string_view name_text() const;
  [[nodiscard]] std::span<const int64_t> shape() const { return std::span(dims).first(static_cast<size_t>(num_dims)); }
};

[[nodiscard]] CollectiveCall make_call(std::string_view name, std::string_view dtype = "", std::span<const int64_t> shape = {});

// Where shapes may differ between ranks.
enum class Freedom { none, rows, all };

// Entry r is rank r's call. Every rank holds the same list, so all of them throw, and the same Error.
void check_agreement(std::span<const CollectiveCall> calls, Freedom freedom);

// "[3, 4]"
[[nodiscard]] std::string shape_text(std::span<const int64_t> shape);

}  // namespace kedge
