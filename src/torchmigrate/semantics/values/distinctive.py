"""Names of attributes and methods that tell what an otherwise unknown object is."""

from __future__ import annotations

from torchmigrate.semantics.values import by_arguments
from torchmigrate.semantics.values.objects import FUNCTION, MODULE, OPTIMIZER, TENSOR

EVENT = "torch.autograd.profiler_util.FunctionEventAvg"

# Names that only objects of one class have: on an unknown object they are enough for "maybe".
ONLY = dict.fromkeys(
    (
        "gesv",
        "potrf",
        "potrs",
        "potri",
        "pstrf",
        "trtrs",
        "btrifact",
        "btrifact_with_info",
        "btrisolve",
        "triangular_solve",
        "lu_solve",
        "add_",
        "sub_",
        "addcdiv_",
        "addcmul_",
        "masked_fill",
        "masked_fill_",
        "masked_scatter_",
        "masked_copy_",
        "index_fill_",
        "scatter_",
        "symeig",
        "refine_names",
        "floor_divide",
        "floor_divide_",
    ),
    TENSOR,
) | {
    "register_backward_hook": MODULE,
    "saved_variables": FUNCTION,
    "mark_shared_storage": FUNCTION,
    "cummulative_sizes": "torch.utils.data.ConcatDataset",
    "cuda_time_total": EVENT,
    "self_cuda_time_total": EVENT,
    "cuda_time_total_str": EVENT,
    "self_cuda_time_total_str": EVENT,
    "self_cuda_memory_usage": EVENT,
    "export_memory_timeline": "torch.profiler.profile",
    "children_specs": "torch.utils._pytree.TreeSpec",
    "set_reduce_scatter_divide_factor": "torch.distributed.fsdp.FSDPModule",
}
ONLY_ATTRIBUTES = frozenset(  # that are not called
    "saved_variables cummulative_sizes cuda_time_total self_cuda_time_total cuda_time_total_str "
    "self_cuda_time_total_str self_cuda_memory_usage children_specs".split()
)
# Methods without which no object of a model or optimizer gets by, and what has them: what they give is known.
GIVING = {
    "named_parameters": MODULE,
    "named_buffers": MODULE,
    "named_modules": MODULE,
    "named_children": MODULE,
    "parameters": MODULE,
    "buffers": MODULE,
    "modules": MODULE,
    "children": MODULE,
    "param_groups": OPTIMIZER,
}
GIVING_ATTRIBUTES = frozenset(["param_groups"])  # that are not called
# Methods that only tensors have: a name with such a call holds a tensor.
TELLING = frozenset(
    """
    addmm_ baddbmm bernoulli_ bmm clamp_ clamp_max clamp_min div_ exp_ expand_as exponential_ index_add
    index_add_ index_copy_ index_fill index_fill_ index_put_ index_select log_ log_softmax logsumexp
    masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select mul_ narrow neg_ new_empty new_full
    new_ones new_tensor new_zeros normal_ pow_ repeat_interleave scatter_add scatter_add_ sqrt_ squeeze_ t_
    transpose_ type_as unbind uniform_ unsqueeze unsqueeze_ view_as
    """.split()
)
# Classes whose objects, when called, use `CLASS.__call__`.
CALLED = frozenset(["torch.export.ExportedProgram"])
# Names that exist on nothing else in common use: a "maybe" is enough to report them.
DISTINCTIVE_METHODS = frozenset(ONLY) | frozenset(
    "gels cholesky_solve cholesky_inverse orgqr ormqr geqrf requires_grad_ is_ort "
    "masked_scatter index_fill logdet slogdet reinforce storage".split()
)
# What objects that stand in for tensors have as well (dicts of tensors, frames): an annotation is not enough.
OF_STAND_INS = frozenset("names has_names rename rename_ refine_names align_to align_as".split())
# Methods by which what `storage()` gave is known for the storage of a tensor.
OF_STORAGES = frozenset(["resize_", "data_ptr", "is_shared", "is_pinned", "share_memory_"])
# Names that tell something about an otherwise unknown object.
NAMED = OF_STORAGES.union(ONLY, GIVING, TELLING, by_arguments.NAMES)
# Attributes that are often passed through (`x.grad.norm()`) and never reported.
ORDINARY = frozenset("shape device dtype grad weight bias is_cuda requires_grad".split())
# Names that lazy matrices have too, as those of gpytorch do, and those of algebra.
LAZY = frozenset(["symeig"]) | by_arguments.NAMES
# Libraries with matrices of that kind, or with exact ones.
MATRICES = frozenset("gpytorch linear_operator botorch sympy mpmath sage galois flint sksparse".split())
# Other libraries whose tensors, or dicts of tensors, have the same methods.
LOOKALIKES = frozenset("paddle mindspore oneflow jittor megengine mxnet tensordict torchrl".split())
# Names by which functions receive a whole library, whose functions are called as methods of tensors are.
MODULES_AS_OBJECTS = frozenset(
    "torch th np numpy jnp xp xnp cp cupy lib linalg la fft blas lapack lax backend functional nd ops module "
    "mod namespace".split()
) | {"F", "K", "B"}
