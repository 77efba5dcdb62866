#include <torch/extension.h>
#include <THC/THC.h>

// Called by ops.cpp.
at::Tensor scaled(at::Tensor x, float by) {
  AT_CHECK(x.type().is_cuda(), "x must be on a GPU");
  AT_DISPATCH_FLOATING_TYPES(x.type(), "scaled", ([&] {
    scale<scalar_t><<<x.numel() / 256 + 1, 256>>>(x.data_ptr<scalar_t>(), by);
  }));
  return x;
}
