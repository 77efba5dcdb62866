"""Names of attributes and methods that tell what an object is, of which nothing else is known."""

from __future__ import annotations

from torchmigrate.semantics.values.objects import FUNCTION, MODULE, TENSOR

EVENT = "torch.autograd.profiler_util.FunctionEventAvg"

# Names that only objects of one class have: an object of which nothing is known is enough for "maybe".
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
        "floor_divide",
        "floor_divide_",
        "refine_names",
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
}
ONLY_ATTRIBUTES = frozenset(  # that are not called
    "saved_variables cummulative_sizes cuda_time_total self_cuda_time_total cuda_time_total_str "
    "self_cuda_time_total_str self_cuda_memory_usage".split()
)
# Classes of which calling an object is a use of `CLASS.__call__`.
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
# Names that say something of an object of which nothing else is known.
NAMED = OF_STORAGES.union(ONLY)
# Attributes that are often passed through (`x.grad.norm()`), and of which there is nothing to say.
ORDINARY = frozenset("shape device dtype grad weight bias is_cuda requires_grad".split())
# Names that lazy matrices have too, as those of gpytorch do.
LAZY = frozenset(["symeig"])
# Other libraries whose tensors, or dicts of tensors, have the same methods.
LOOKALIKES = frozenset("paddle mindspore oneflow jittor megengine mxnet tensordict torchrl".split())
# Names by which functions receive a whole library, whose functions are called as methods of tensors are.
MODULES_AS_OBJECTS = frozenset(
    "torch th np numpy jnp xp xnp lib linalg lax backend functional nd ops module mod namespace".split()
) | {"F", "K", "B"}
