#include "kedge/dist/collective_signature.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {
namespace {

template <size_t N>
void put_text(std::array<char, N>& field, std::string_view text) {
  ensure(text.size() <= N, "a collective call is described by at most ", N, " bytes, found \"", text, "\"");
  std::copy(text.begin(), text.end(), field.begin());
}

template <size_t N>
std::string_view text_of(const std::array<char, N>& field) {
  return {field.data(), static_cast<size_t>(std::find(field.begin(), field.end(), '\0') - field.begin())};
}

std::string describe(const CollectiveCall& call) {
  if (text_of(call.dtype).empty()) return std::string(call.name_text());
  return str(call.name_text(), " of ", text_of(call.dtype), " ", shape_text(call.shape()));
}

bool shapes_agree(const CollectiveCall& a, const CollectiveCall& b, Freedom freedom) {
  if (freedom == Freedom::all) return true;
  if (a.num_dims != b.num_dims) return false;
  const size_t first = freedom == Freedom::rows && a.num_dims > 0 ? 1 : 0;
  return std::ranges::equal(a.shape().subspan(first), b.shape().subspan(first));
}

}  // namespace

std::string_view CollectiveCall::name_text() const { return text_of(name); }

CollectiveCall make_call(std::string_view name, std::string_view dtype, std::span<const int64_t> shape) {
  ensure(shape.size() <= CollectiveCall::kMaxDims, name, ": at most ", CollectiveCall::kMaxDims, " dimensions, found ", shape_text(shape));
  CollectiveCall call;
  put_text(call.name, name);
  put_text(call.dtype, dtype);
  call.num_dims = static_cast<int64_t>(shape.size());
  std::ranges::copy(shape, call.dims.begin());
  return call;
}

void check_agreement(std::span<const CollectiveCall> calls, Freedom freedom) {
  const CollectiveCall& first = calls.front();
  for (size_t rank = 1; rank < calls.size(); ++rank) {
    const CollectiveCall& other = calls[rank];
    if (first.name == other.name && first.dtype == other.dtype && shapes_agree(first, other, freedom)) continue;
    throw Error(str("the ranks disagree: rank 0 calls ", describe(first), ", rank ", rank, " calls ", describe(other)));
  }
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t dim : shape) text += str(text.size() > 1 ? ", " : "", dim);
  return text + "]";
}

}  // namespace kedge
