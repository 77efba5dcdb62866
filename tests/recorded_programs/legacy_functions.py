from unittest import mock

import torch
from support import collect, module, numbers

# The extension: any operation with a derivative will do.


def forward(input1, input2, output, pad_size, kernel_size, stride):
    output.resize_(input1.size()).copy_(input1 * pad_size + input2 * kernel_size + stride)


module(
    "corner_pool_cuda", forward=forward, backward=lambda input1, input2, grad, stride: grad * input1 * stride
)

import program  # noqa: E402 (wants the extension)


def gradients(call, *inputs):
    leaves = [item.clone().requires_grad_() for item in inputs]
    result = call(*leaves)
    (result * numbers(*result.shape)).sum().backward()
    return result.detach(), [leaf.grad for leaf in leaves]


def twice():
    """One object of a function, called twice before it goes back."""
    module, x = program.Binary(), numbers(4).requires_grad_()
    (module(x) * numbers(4, seed=1) + module(2 * x)).sum().backward()
    return x.grad


def roi_pool():
    """With gradients that say they are on a GPU, which the program insists on."""
    with mock.patch.object(torch.Tensor, "is_cuda", property(lambda self: True), create=True):
        return gradients(lambda x: program.RoIPool(2, 2, 0.5)(x, numbers(2, 5)), numbers(2, 3, 2, 2))


results, raised = collect(
    reverse_gradient=lambda: gradients(lambda x: program.reverse_gradient(x, 0.5), numbers(3)),
    reverse_twice=lambda: gradients(
        lambda x: program.reverse_gradient(program.reverse_gradient(x), 0.5), numbers(3)
    ),
    corner_pool=lambda: gradients(program.CornerPool2d(2, 3, 4), numbers(2, 3), numbers(2, 3, seed=1)),
    corner_pool_one=lambda: gradients(
        lambda x: program.CornerPool2d()(x, numbers(2, 3, seed=1)), numbers(2, 3)
    ),
    roi_pool=roi_pool,
    binary=lambda: gradients(program.Binary(), numbers(4) * 2),
    binary_twice=twice,
    run=lambda: [item.detach() for item in program.run(numbers(10).requires_grad_(), [])],
)
