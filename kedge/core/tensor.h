#pragma once
// Access to torch for all code: the tensor and the operators we use, one header each, precompiled once.
// Never <torch/torch.h> (31 s per file); what records gradients is in core/autograd.h.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace kedge {

using at::Tensor;

}  // namespace kedge
