#pragma once
// What a server answers when a request cannot be served: an HTTP status and a text for the caller.
#include <string>

#include "kedge/core/error.h"

namespace kedge {

class RequestError : public Error {
 public:
  RequestError(int status, const std::string& text) : Error(text), status_(status) {}
  [[nodiscard]] int status() const { return status_; }

 private:
  int status_;
};

// 400 with that text unless the condition holds.
template <typename... Parts>
void check_request(bool condition, const Parts&... parts) {
  if (!condition) throw RequestError(400, kedge::str(parts...));
}

}  // namespace kedge
