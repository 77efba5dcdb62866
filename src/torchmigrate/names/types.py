"""A small local type inference: which calls, methods and attributes give which library objects."""

from __future__ import annotations

import re
from functools import lru_cache

from torchmigrate.names import tensor_api
from torchmigrate.names.model import OPAQUE, Candidate, Instance, Qual

TENSOR = "torch.Tensor"

# Not annotated in torch/nn/functional.py, or no longer there.
_FUNCTIONAL = tensor_api.FUNCTIONAL | frozenset(
    """
    avg_pool1d avg_pool2d avg_pool3d bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d cosine_similarity gelu linear logsigmoid log_sigmoid max_pool1d max_pool2d max_pool3d
    one_hot pairwise_distance pixel_shuffle pixel_unshuffle prelu sigmoid softplus softshrink softsign tanh
    tanhshrink threshold upsample
    """.split()
)
_METHODS = tensor_api.METHODS | frozenset(["norm", "cholesky", "__getitem__", "fill_", "new"])
_TUPLE_METHODS = tensor_api.TUPLE_METHODS | frozenset(
    "symeig eig svd qr solve gesv lstsq gels lu triangular_solve trtrs btrifact max min".split()
)
_TENSOR_PROPERTIES = frozenset(["T", "mT", "H", "mH", "grad", "data", "real", "imag"])
_TENSOR_CLASSES = frozenset(
    f"torch.{device}{kind}Tensor"
    for device in ("", "cuda.")
    for kind in ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool", "")
) | {"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.autograd.Variable"}

# Classes of other libraries whose objects have outdated attributes.
_DATASET = re.compile(r"torchvision\.datasets\.(?:\w+\.)?[A-Z]\w*|torchtext\.vocab\.Vocab")
# Method names that exist on nothing else in common use: a "maybe tensor" is enough to report them.
DISTINCTIVE_METHODS = frozenset(
    "symeig gesv potrf potrs potri trtrs gels btrifact btrifact_with_info btrisolve pstrf lu_solve "
    "triangular_solve cholesky_solve cholesky_inverse orgqr ormqr geqrf masked_fill_ "
    "masked_scatter_ addcdiv_ addcmul_ index_fill_ requires_grad_".split()
)
# Of those, the ones that no other library's objects have at all: an unknown receiver is enough.
ONLY_TENSOR_METHODS = frozenset(
    "gesv potrf potrs potri trtrs btrifact btrifact_with_info btrisolve triangular_solve lu_solve".split()
)


@lru_cache(maxsize=4096)
def call_result(name: str, sure: bool = True) -> Candidate:
    """What calling the thing of this qualified name gives.

    A bound method of a tensor is called `torch.Tensor.NAME` here.
    """
    root, _, rest = name.partition(".")
    if root != "torch":
        return Instance(name, sure) if _DATASET.fullmatch(name) else OPAQUE
    if rest in tensor_api.FUNCTIONS:
        return Instance(TENSOR, sure)
    if rest.startswith("Tensor."):
        method = rest[len("Tensor.") :]
        if method in _METHODS:
            return Instance(TENSOR, sure)
        return Instance("tuple[torch.Tensor]", sure) if method in _TUPLE_METHODS else OPAQUE
    if name in _TENSOR_CLASSES:
        return Instance(TENSOR, sure)
    if rest in tensor_api.TUPLE_FUNCTIONS:
        return Instance("tuple[torch.Tensor]", sure)
    head, _, last = rest.rpartition(".")
    if head in ("nn.functional", "functional") and last in _FUNCTIONAL:
        return Instance(TENSOR, sure)
    if head == "linalg" and last in (
        "inv pinv cholesky solve eigvalsh eigvals svdvals det matrix_power norm vector_norm matrix_norm "
        "matrix_exp multi_dot vecdot cross householder_product".split()
    ):
        return Instance(TENSOR, sure)
    if head == "linalg" and last in ("qr", "svd", "eigh", "eig", "slogdet", "lstsq", "lu"):
        return Instance("tuple[torch.Tensor]", sure)
    if last[:1].isupper() and head:
        return Instance(name, sure)
    return OPAQUE


def attribute(cls: str, attr: str, sure: bool) -> Candidate:
    """What `.attr` of an instance of `cls` gives: a property's type, or the bound method's name."""
    if cls == TENSOR and attr in _TENSOR_PROPERTIES:
        return Instance(TENSOR, sure)
    return Qual(f"{cls}.{attr}", sure, "method")


def element(cls: str, sure: bool) -> Candidate:
    """What indexing or iterating an instance gives."""
    if cls in (TENSOR, "tuple[torch.Tensor]"):
        return Instance(TENSOR, sure)
    return OPAQUE


def of_annotation(name: str) -> Candidate:
    """The instance that an annotation with this qualified name promises."""
    if name in _TENSOR_CLASSES or name == TENSOR:
        return Instance(TENSOR)
    root, _, rest = name.partition(".")
    if root == "torch" and rest.rpartition(".")[2][:1].isupper():
        return Instance(name)
    return OPAQUE
