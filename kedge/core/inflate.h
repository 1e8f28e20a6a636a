#pragma once
// Unpacks data packed with gzip or zlib. Independent of HTTP and files.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kedge {

// By the names that HTTP has for them: deflate is zlib's format.
enum class Packing { gzip, deflate };

// Unpacks bytes as they come. Several gzip members in a row are one text.
class Inflater {
 public:
  explicit Inflater(Packing packing);
  ~Inflater();
  Inflater(Inflater&& other) noexcept;
  Inflater& operator=(Inflater&& other) noexcept;

  // Hands every piece that these bytes yield to `use`. Throws a UsageError for invalid data.
  void unpack(std::string_view packed, const std::function<void(std::string_view)>& use);
  // A UsageError if the data is incomplete.
  void finish() const;

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

// False if this build has no zlib: then there can be no Inflater.
[[nodiscard]] bool can_inflate();

}  // namespace kedge
