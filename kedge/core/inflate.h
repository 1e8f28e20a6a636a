#pragma once
// Unpacks what was packed with gzip or zlib. Knows no HTTP and no files.
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

  // Hands every piece that these bytes yield to `use`. A UsageError that says what is broken.
  void unpack(std::string_view packed, const std::function<void(std::string_view)>& use);
  // A UsageError where more bytes should have come.
  void finish() const;

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

// False where this build has no zlib: then there can be no Inflater.
[[nodiscard]] bool can_inflate();

}  // namespace kedge
