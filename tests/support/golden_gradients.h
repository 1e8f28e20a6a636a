#pragma once
// Gradients that another program computed, kept as a safetensors file under the names of a Hugging Face folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kedge/model/files/safetensors.h"
#include "kedge/model/model.h"

#include "tests/support/tensors.h"

namespace kedge::testing {

// The model's gradients are these, every one, to 1e-5 of its norm.
inline void expect_gradients(const Model& model, const Path& file) {
  const SafetensorsFile wanted(file);
  const auto table = parameter_layout(model.config(), model.places());
  EXPECT_EQ(wanted.entries().size(), table.size());
  for (const TensorEntry& entry : wanted.entries()) {
    const auto slice = std::find_if(table.begin(), table.end(), [&](const WeightSlice& one) { return one.name == entry.name; });
    ASSERT_NE(slice, table.end()) << entry.name;
    const Tensor found = model.parameters().gradient(slice->parameter).narrow(0, slice->row, slice->rows);
    Tensor numbers = at::empty(entry.shape, at::kFloat);
    std::memcpy(numbers.mutable_data_ptr(), wanted.bytes(entry).data(), numbers.nbytes());
    EXPECT_LT(relative_error(found.view(entry.shape), numbers), 1e-5) << entry.name;
  }
}

}  // namespace kedge::testing
