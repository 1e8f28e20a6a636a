#pragma once
// Unpacks what was packed with gzip or zlib. Knows no HTTP and no files.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kedge {

// As HTTP names them: deflate is zlib's format.
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

// A whole body; `encoding` as HTTP's Content-Encoding names it. RequestError: 400 where it is broken, 413 where it unpacks to more than
// `max_bytes`, 501 for an encoding that is not known.
[[nodiscard]] std::string inflate(std::string_view body, std::string_view encoding, int64_t max_bytes);

}  // namespace kedge
