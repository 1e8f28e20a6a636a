#pragma once
// A named array as sent between processes: a type, a shape, and its bytes, row-major and little-endian. Independent of HTTP, JSON
// and the meaning of the numbers.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

// The types of the KServe protocol; `bytes` are texts of any length.
enum class WireType { boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64, fp16, bf16, fp32, fp64, bytes };

[[nodiscard]] std::string_view name_of(WireType type);                            // "INT64"
[[nodiscard]] std::string_view config_name_of(WireType type);                     // "TYPE_INT64"; bytes: "TYPE_STRING"
[[nodiscard]] bool find_wire_type(std::string_view name, WireType& type);         // "INT64"
[[nodiscard]] bool find_config_wire_type(std::string_view name, WireType& type);  // "TYPE_INT64"
[[nodiscard]] int64_t bytes_of(WireType type);                                    // of one element; 0 for texts

struct WireTensor {
  std::string name;
  WireType type = WireType::fp32;
  std::vector<int64_t> shape = {};
  std::string data = {};  // texts: each with its length before it, in 4 bytes

  friend bool operator==(const WireTensor&, const WireTensor&) = default;
};

[[nodiscard]] std::string shape_json(std::span<const int64_t> shape);  // "[2,3]"

// The product of the shape; a RequestError if it does not fit into 63 bits or a size is negative.
[[nodiscard]] int64_t num_elements(const std::vector<int64_t>& shape);

// RequestError if the number of bytes does not match type and shape, texts do not fill them exactly, or a bool is neither 0 nor 1.
void check_tensor_data(const WireTensor& tensor);

[[nodiscard]] WireTensor int64_tensor(std::string name, std::vector<int64_t> shape, std::span<const int64_t> values);
[[nodiscard]] WireTensor fp32_tensor(std::string name, std::vector<int64_t> shape, std::span<const float> values);
[[nodiscard]] WireTensor text_tensor(std::string name, std::vector<int64_t> shape, std::span<const std::string> texts);
// One more text at the end of a tensor's bytes.
void append_text(std::string& data, std::string_view text);

// The elements, if the tensor has that type; otherwise a Bug. The tensor must outlive the span.
[[nodiscard]] std::span<const int64_t> int64_values(const WireTensor& tensor);
[[nodiscard]] std::span<const float> fp32_values(const WireTensor& tensor);
// RequestError if lengths and bytes do not match.
[[nodiscard]] std::vector<std::string> text_values(const WireTensor& tensor);

// The tensor of that name, or null.
[[nodiscard]] const WireTensor* find_tensor(std::span<const WireTensor> tensors, std::string_view name);

// Rows of all parts below each other: same type and shape of a row, under the name of the first.
[[nodiscard]] WireTensor join_rows(std::span<const WireTensor* const> parts);
// `count` rows from `begin` on.
[[nodiscard]] WireTensor take_rows(const WireTensor& tensor, int64_t begin, int64_t count);

}  // namespace kedge
