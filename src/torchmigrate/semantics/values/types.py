"""A small local type inference: what calls, attributes and elements of library objects are."""

from __future__ import annotations

from functools import lru_cache

from torchmigrate.patterns import pattern
from torchmigrate.semantics.model import (
    OPAQUE,
    VIA_METHOD,
    Candidate,
    Const,
    Instance,
    Items,
    QualifiedName,
    Value,
)
from torchmigrate.semantics.values import tensor_api
from torchmigrate.semantics.values.class_api import LAYER_TENSORS, SINGLE_LAYERS, TUPLE_LAYERS
from torchmigrate.semantics.values.objects import (
    DISTRIBUTION,
    FUNCTION,
    LOADER,
    MODULE,
    OPTIMIZER,
    TENSOR,
    TENSOR_CLASSES,
    is_a,
    library_base,
)
from torchmigrate.semantics.values.slots import UNKNOWN, as_stated, believed, unsure

TENSORS = "tuple[torch.Tensor]"  # a tuple or list of tensors, such as `torch.max(x, 1)`
GROUP = "parameter group"  # of an optimizer: a dict
NUMBER = Instance("number")  # of Python: has none of the methods that rules are about
A_NUMBER: Value = (NUMBER,)
MAYBE_TENSOR = Instance(TENSOR, False)
MAYBE, STATED, SURE = 1, 2, 3  # how far it is known that something is a tensor, see `level`
_NAMED_TENSORS = Items((((Items(((OPAQUE,), (Instance(TENSOR),)))),),), many=True)
# What a loader gives: a tuple, a list or a dict, as a rule of tensors.
_BATCH: Value = (Items(((Instance(TENSOR, False, stated=True),),), many=True),)
_NAMED_MODULES = Items((((Items(((OPAQUE,), (Instance(MODULE),)))),),), many=True)

# Not annotated in torch/nn/functional.py, or no longer there.
_FUNCTIONAL = tensor_api.FUNCTIONAL | frozenset(
    """
    adaptive_avg_pool1d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d
    avg_pool3d bilinear channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d cosine_similarity fractional_max_pool2d fractional_max_pool3d gelu hardshrink linear
    logsigmoid log_sigmoid
    max_pool1d max_pool2d max_pool3d one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu
    scaled_dot_product_attention sigmoid softplus softshrink softsign tanh tanhshrink threshold upsample
    upsample_bilinear upsample_nearest
    """.split()
)
# Python functions around the ones of the stubs (torch/functional.py), and modules without stubs.
_FUNCTIONS = tensor_api.FUNCTIONS | frozenset(
    "norm einsum stft tensordot cartesian_prod block_diag cdist where nonzero unique unique_consecutive max "
    "min median nanmedian atleast_1d atleast_2d atleast_3d quantize_per_tensor dequantize cholesky".split()
)
_TUPLE_FUNCTIONS = tensor_api.TUPLE_FUNCTIONS | frozenset(
    "broadcast_tensors split meshgrid unravel_index symeig eig solve gesv lstsq gels lu trtrs btrifact "
    "lobpcg pca_lowrank svd_lowrank autograd.grad autograd.functional.jacobian".split()
)
_MODULE_FUNCTIONS = {
    "linalg": "inv pinv cholesky solve solve_triangular lu_solve eigvalsh eigvals svdvals det matrix_power "
    "norm vector_norm matrix_norm matrix_exp multi_dot vecdot cross householder_product matmul diagonal cond "
    "matrix_rank tensorinv tensorsolve vander ldl_solve",
    "fft": "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft hfft2 ihfft2 "
    "hfftn ihfftn fftfreq rfftfreq fftshift ifftshift",
    "special": "bessel_j0 bessel_j1 digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc "
    "gammaln i0 i0e i1 i1e log1p log_ndtr log_softmax logit logsumexp multigammaln ndtr ndtri polygamma psi "
    "round sinc softmax xlog1py xlogy zeta",
    "sparse": "mm sum softmax log_softmax addmm spdiags sampled_addmm",
    "nn.utils": "clip_grad_norm clip_grad_norm_ parameters_to_vector",
    "nn.utils.rnn": "pad_sequence",
    "nn.init": "constant_ dirac_ eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ orthogonal_ sparse_ "
    "trunc_normal_ uniform_ xavier_normal_ xavier_uniform_ zeros_",
    "distributions": "kl_divergence",
    "distributions.kl": "kl_divergence",
    "utils.dlpack": "from_dlpack",
}
_QUALIFIED = frozenset(
    f"{head}.{last}" for head, names in _MODULE_FUNCTIONS.items() for last in names.split()
)
_LINALG_TUPLES = frozenset(
    "qr svd eigh eig slogdet lstsq lu lu_factor cholesky_ex inv_ex solve_ex lu_factor_ex ldl_factor".split()
)
_METHODS = tensor_api.METHODS | frozenset(
    "norm cholesky stft istft fill_ new resize resize_as reinforce unflatten masked_copy_ max min median "
    "nanmedian nonzero unique unique_consecutive type as_subclass to_sparse_coo align_to align_as "
    "refine_names rename rename_ share_memory_ __getitem__ __add__ __sub__ __mul__ __truediv__ __matmul__ "
    "__neg__".split()
)
_TUPLE_METHODS = tensor_api.TUPLE_METHODS | frozenset(
    "symeig eig svd qr solve gesv lstsq gels lu triangular_solve trtrs btrifact split".split()
)
_TENSOR_PROPERTIES = frozenset(["T", "mT", "H", "mH", "grad", "data", "real", "imag"])
# Names that results of functions such as `torch.max(x, 1)` give to their parts.
_FIELDS = frozenset(
    "values indices S U V Vh Q R L P LU pivots eigenvalues eigenvectors sign logabsdet solution QR mantissa "
    "exponent residuals min max hist bin_edges cloned_coefficient".split()
)
_PLAIN_CLASSES = frozenset(f"torch.{name}" for name in "Generator device Size Stream Event".split())
_DISTRIBUTION_TENSORS = frozenset(
    "mean mode stddev variance loc scale probs logits covariance_matrix precision_matrix scale_tril rate "
    "concentration concentration0 concentration1 low high df".split()
)
_DRAWS = frozenset("sample rsample sample_n log_prob entropy cdf icdf enumerate_support perplexity".split())
# What the context of an autograd function has of its own.
_CONTEXT = frozenset(
    "save_for_backward mark_dirty mark_shared_storage mark_non_differentiable set_materialize_grads "
    "save_for_forward needs_input_grad apply".split()
)
# Methods that give back the object itself.
_SELF_METHODS = frozenset(
    "cuda cpu xpu to float double half bfloat16 type train eval apply requires_grad_ share_memory to_empty "
    "to_memory_format compile".split()
)
_EXPORTED = "torch.export.ExportedProgram"
_PACKED = "torch.nn.utils.rnn.PackedSequence"
_EVENT = "torch.autograd.profiler_util.FunctionEvent"
# Classes with names in small letters.
_PROFILERS = ("torch.profiler.profile", "torch.autograd.profiler.profile", "torch.profiler._KinetoProfile")
_RESULTS: dict[str, Candidate] = {
    "torch.nn.utils.rnn.pack_padded_sequence": Instance(_PACKED),
    "torch.nn.utils.rnn.pack_sequence": Instance(_PACKED),
    "torch.nn.utils.rnn.pad_packed_sequence": Instance(TENSORS),
    "torchvision.transforms.functional.to_tensor": Instance(TENSOR),
    "torchvision.transforms.functional.pil_to_tensor": Instance(TENSOR),
    "torchvision.utils.make_grid": Instance(TENSOR),
    "torchvision.io.read_image": Instance(TENSOR),
    **dict.fromkeys(
        ("torch.export.export", "torch.export.export_for_training", "torch.export.load"), Instance(_EXPORTED)
    ),
    f"{_EXPORTED}.run_decompositions": Instance(_EXPORTED),
    f"{_EXPORTED}.module": Instance(MODULE),
    "torchaudio.load": Items(((Instance(TENSOR),), (NUMBER,))),
    **dict.fromkeys(
        (f"torch.utils._pytree.{name}" for name in ("tree_structure", "treespec_loads")),
        Instance("torch.utils._pytree.TreeSpec"),
    ),
    "torch.utils._pytree.tree_flatten": Items(((OPAQUE,), (Instance("torch.utils._pytree.TreeSpec"),))),
    "torch.distributed.fsdp.fully_shard": Instance("torch.distributed.fsdp.FSDPModule"),
    "torch.library.get_ctx": Instance("torch._library.fake_impl.FakeImplCtx"),
    "torch.cuda.GreenContext.create": Instance("torch.cuda.GreenContext"),
    "torch.cuda.green_contexts.GreenContext.create": Instance("torch.cuda.GreenContext"),
    **{cls: Instance(cls) for cls in _PROFILERS},
    **dict.fromkeys((f"{cls}.events" for cls in _PROFILERS), Instance(f"tuple[{_EVENT}]")),
    **dict.fromkeys(
        (f"{cls}.key_averages" for cls in _PROFILERS),
        Instance(f"tuple[{_EVENT}Avg]"),
    ),
}
_TO_TENSOR = ("torchvision.transforms.ToTensor", "torchvision.transforms.PILToTensor")

# Classes of other libraries whose objects have outdated attributes.
_DATASET = pattern(r"torchvision\.datasets\.(?:\w+\.)?[A-Z]\w*|torchtext\.vocab\.Vocab")
# Where the classes of other libraries are whose objects are of interest.
_OBJECTS = (
    *("torchvision.models.", "torchvision.transforms.", "torchvision.ops.", "torchaudio.", "apex."),
    *("torchcodec.", "torchmetrics.", "lightning.", "pytorch_lightning."),
)


@lru_cache(maxsize=4096)
def call_result(name: str, sure: bool = True) -> Candidate:
    """What calling the thing of this qualified name gives, whatever the arguments are.

    A bound method is called `torch.Tensor.NAME` here; of one whose result depends on the object (that is what
    `module.cuda()` gives) nothing is known.
    """
    root, _, rest = name.partition(".")
    if root != "torch":
        return with_sure(_outside(name), sure)
    if rest in _FUNCTIONS:
        return Instance(TENSOR, sure)
    if rest.startswith("Tensor."):
        return _tensor_method(rest[len("Tensor.") :], sure)
    if name in TENSOR_CLASSES:
        return Instance(TENSOR, sure)
    if rest in _TUPLE_FUNCTIONS:
        return Instance(TENSORS, sure)
    head, _, last = rest.rpartition(".")
    if head in ("nn.functional", "functional"):
        if last in _FUNCTIONAL or (head == "functional" and last in _FUNCTIONS):
            return Instance(TENSOR, sure)
        return OPAQUE
    if rest in _QUALIFIED:
        return Instance(TENSOR, sure)
    if head == "linalg" and last in _LINALG_TUPLES:
        return Instance(TENSORS, sure)
    if name in _RESULTS:
        return with_sure(_RESULTS[name], sure)
    if (head and last.lstrip("_")[:1].isupper()) or name in _PLAIN_CLASSES or name.endswith("Storage"):
        return Instance(name, sure)
    owner, _, method = name.rpartition(".")
    if owner.rpartition(".")[2].lstrip("_")[:1].isupper():
        return with_sure(_method(owner, method), sure)
    return OPAQUE


def _tensor_method(method: str, sure: bool) -> Candidate:
    if method in _METHODS:
        return Instance(TENSOR, sure)
    if method in _TUPLE_METHODS:
        return Instance(TENSORS, sure)
    if method in ("storage", "untyped_storage"):
        return Instance("torch.TypedStorage" if method == "storage" else "torch.UntypedStorage", sure)
    return OPAQUE


def _method(owner: str, method: str) -> Candidate:
    """The result of a method of an object that is not a tensor."""
    if is_a(owner, MODULE):
        if method in ("parameters", "buffers"):
            return Instance(TENSORS)
        if method in ("named_parameters", "named_buffers"):
            return _NAMED_TENSORS
        if method in ("modules", "children"):
            return Instance(f"tuple[{MODULE}]")
        if method in ("named_modules", "named_children"):
            return _NAMED_MODULES
        if method == "forward":
            return object_call(owner, True)
        if method == "state_dict":
            return Items(((MAYBE_TENSOR,),), many=True, keyed=True)
    elif is_a(owner, DISTRIBUTION) and method in _DRAWS:
        return Instance(TENSOR)
    return OPAQUE


def _outside(name: str) -> Candidate:
    """What a class or function of another library gives."""
    if name in _RESULTS:
        return _RESULTS[name]
    last = name.rpartition(".")[2]
    if _is_object(name, last):
        return Instance(name)
    if (
        name.startswith("torchvision.models.")
        and last[:1].islower()
        and not last.startswith(("get_", "list_"))
    ):
        return Instance(MODULE)
    return OPAQUE


def _is_object(name: str, last: str) -> bool:
    """Whether a class of another library is one whose objects are of interest."""
    return (name.startswith(_OBJECTS) and last[:1].isupper()) or _DATASET.fullmatch(name) is not None


def with_sure(item: Candidate, sure: bool) -> Candidate:
    """A candidate that is only as sure as what it comes from."""
    return item if sure else unsure((item,))[0]


@lru_cache(maxsize=4096)
def object_call(cls: str, sure: bool) -> Candidate:
    """What calling an object of a class gives, such as `nn.Linear(2, 3)(x)`."""
    head, _, last = cls.rpartition(".")
    if cls in _TO_TENSOR:
        return Instance(TENSOR, sure)
    if is_a(cls, MODULE):
        if head == "torch.nn" or head.startswith("torch.nn.modules"):
            if last in SINGLE_LAYERS:
                return Instance(TENSOR, sure)
            if last in TUPLE_LAYERS:
                return Instance(TENSORS, sure)
        return MAYBE_TENSOR
    return OPAQUE


@lru_cache(maxsize=4096)
def attribute(cls: str, attr: str, sure: bool) -> Candidate:
    """What `.attr` of an instance of `cls` gives: a property's type, or the bound method's name."""
    if cls == TENSOR:
        if attr in _TENSOR_PROPERTIES:
            return Instance(TENSOR, sure)
        if attr == "device":
            return Instance("torch.device", sure)
    elif cls.startswith("tuple["):
        return Instance(cls[6:-1], sure) if attr in _FIELDS else OPAQUE
    elif "." not in cls:
        return OPAQUE
    elif is_a(cls, MODULE):
        if attr in LAYER_TENSORS or attr.startswith(("weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l")):
            return Instance(TENSOR, sure and cls != MODULE and "quantized" not in cls)
        if attr == "module" and cls.endswith(("Parallel", "ParallelCPU", "AveragedModel")):
            return Instance(MODULE, sure)
    elif is_a(cls, OPTIMIZER):
        if attr == "param_groups":
            return Instance(f"tuple[{GROUP}]", sure)
    elif is_a(cls, FUNCTION):
        if attr in ("saved_tensors", "saved_variables"):
            return Instance(TENSORS, sure)
        if attr not in _CONTEXT:
            return OPAQUE  # whatever the function put there
    elif is_a(cls, DISTRIBUTION):
        if attr in _DISTRIBUTION_TENSORS:
            return Instance(TENSOR, sure)
    elif cls in _PROFILERS and attr in ("profiler", "function_events"):
        return Instance(_PROFILERS[1] if attr == "profiler" else f"tuple[{_EVENT}]", sure)
    elif cls == _PACKED and attr in ("data", "batch_sizes"):
        return Instance(TENSOR, sure)
    return QualifiedName(f"{cls}.{attr}", sure, VIA_METHOD)


def gives_itself(cls: str, method: str) -> bool:
    """Whether a method gives back the object that it is called on, or one like it."""
    if method not in _SELF_METHODS:
        return False
    return is_a(cls, MODULE) or cls == _PACKED or cls.endswith("Storage")


# ---- elements ---------------------------------------------------------------------------------------


def element(item: Candidate, sure: bool = True) -> Value:
    """What iterating a candidate, or indexing it with anything, gives."""
    if isinstance(item, Instance):
        if item.stated:
            return tuple(map(as_stated, element(believed(item), sure)))
        cls = item.cls
        sure = sure and item.sure
        if cls == TENSOR:
            return (Instance(TENSOR, sure),)
        if cls.startswith("tuple["):
            return (Instance(cls[6:-1], sure),)
        if "." not in cls:
            return (OPAQUE,)
        if is_a(cls, LOADER):
            return _BATCH
        if cls in ("torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict"):
            return (Instance(MODULE, sure),)
        if cls in ("torch.nn.ParameterList", "torch.nn.ParameterDict"):
            return (Instance(TENSOR, sure),)
        return (OPAQUE,)
    if isinstance(item, Items) and not item.keyed:
        found: list[Candidate] = []
        for value in item.values:
            found.extend(one for one in value if one not in found)
        return tuple(found)
    return (OPAQUE,)


def elements(value: Value) -> Value:
    """What iterating a value gives; what is None is not iterated."""
    if value is UNKNOWN:
        return UNKNOWN
    found: list[Candidate] = []
    for item in value:
        if not (isinstance(item, Const) and item.value is None):
            found.extend(one for one in element(item) if one not in found)
    return tuple(found) or UNKNOWN


def level(value: Value) -> int:
    """How far it is known that a value is a tensor (or None, on which nothing can be called).

    SURE, STATED if known from an annotation only, MAYBE, or 0.
    """
    if value is UNKNOWN:
        return 0
    known, found = SURE, False
    for item in value:
        if isinstance(item, Instance) and item.cls == TENSOR:
            found = True
            if not item.sure:
                known = min(known, STATED if item.stated else MAYBE)
        elif not (isinstance(item, Const) and item.value is None):
            known = MAYBE
    return known if found else 0


def is_number(value: Value) -> bool:
    """Whether a value is a number of Python, if annotations are right."""
    return len(value) == 1 and _is_number(value[0])


def _is_number(item: Candidate) -> bool:
    if isinstance(item, Const):
        return isinstance(item.value, (int, float))
    return isinstance(item, Instance) and item.cls == NUMBER.cls


def of_annotation(name: str) -> Candidate:
    """The instance that an annotation with this qualified name promises."""
    name = library_base(name)
    root, _, rest = name.partition(".")
    last = rest.rpartition(".")[2].lstrip("_")
    if root == "torch" and (last[:1].isupper() or rest == "device" or name in _PROFILERS):
        return Instance(name)
    return Instance(name) if name in _PROFILERS or _is_object(name, last) else OPAQUE
