#pragma once
// The elements of a tensor to and from a JSON list. Independent of requests.
#include <string>
#include <string_view>

#include "kedge/core/json.h"
#include "kedge/net/wire_tensor.h"

namespace kedge {

// Fills the tensor's bytes, its type and shape being set, from a list that is flat or nested as the shape is, or as its first sizes are.
// RequestError (400), opening with `where`, for a value that the type cannot hold, another number of values, and the types that JSON has
// no numbers for (FP16, BF16). Numbers from 2^63 on, which UINT64 could hold, are refused too: kedge's JSON does not keep them exactly.
void read_json_data(const Json& data, std::string_view where, WireTensor& tensor);

// Adds the flat list. Numbers are as short as possible and read back to the same bits, even if the reader uses doubles.
// RequestError: 400 for FP16 and BF16, 500 for what JSON cannot represent (NaN, infinities, texts that are not UTF-8).
void append_json_data(const WireTensor& tensor, std::string& out);

}  // namespace kedge
