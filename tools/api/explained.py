"""Disagreements between what is read and an installed library that are no mistakes, with the reason of each.

Every pattern is matched with a whole name. The library that is compared is the CPU build for Linux, without
any optional package.
"""

from __future__ import annotations

import re

READ_BUT_ABSENT = {
    r"functorch\._C": "in older releases",
    r"functorch\.dim\._Tensor\.ndim": "a property that wants an instance",
    r"torch\._C\.TensorBase\.storage_type": "in the stub only; Tensor has one of its own",
    r"torch\.backends\.(opt_einsum\.OptEinsumModule|python_native)\.\w+": "a stand-in for the module",
    r"torch\.distributed\._sharded_tensor\.\w+": "it puts another module in its place",
    r"torch\._C\.(?!_?TensorBase).*": (
        "what stubs say of C++ classes that are not in this build, or not yet or no more"
    ),
    r"torch\.(distributed|distributed\.distributed_c10d)\.ProcessGroup(MPI|NCCL|UCC|XCCL)": (
        "not in this build"
    ),
    r"torch\.distributed\.distributed_c10d\.(FlightRecorderHook|_BackendWrapper|new_comm)": (
        "not in this build"
    ),
    r"torch\.distributed\.constants\._DEFAULT_PG_NCCL_TIMEOUT": "bound in the build with NCCL",
    r"torch\.distributed\.(_Stub|device_mesh\.\w+|rpc\.\w+(\.\w+)?)": "in the build without distributed",
    r"torch\.profiler\.itt\._ITTStub": "in the build without ITT",
    r"torch\.cuda\.(Path|amdsmi|ctypes|pynvml|_amdsmi_cdll_hook)": "where pynvml or amdsmi is installed",
    r".*triton.*": "where triton is installed",
    r"torch\.fx\.experimental\.validator\..*": "where z3 is installed",
    r"torch\.fx\.passes\.graph_drawer\.FxGraphDrawer\..*": "where pydot is installed",
    r"torch\.jit\._monkeytype_config\..*": "where monkeytype is installed",
    r"torch\.distributed\.flight_recorder\.components\.utils\.tabulate": "where tabulate is installed",
    r"torch\.distributed\.fsdp\._init_utils\.(deferred_init|fake)": "where torchdistx is installed",
    r"torch\.distributed\.elastic\.rendezvous\.etcd_server\.etcd": "where etcd is installed",
    r"torch\.utils\.benchmark\.utils\.compile\..*": "where tabulate is installed",
    r"torch\._appdirs\..*": "on Windows, or when it is run as a program",
    r"torch\.distributed\.elastic\.multiprocessing\.redirects\._.*": "on Windows",
    r"torch\.utils\.data\._utils\.worker\.(BOOL|DWORD|HANDLE|ctypes)": "on Windows",
    r"torch\.multiprocessing\.(_leak_RT_at_exit|atexit)": "with Python 3.12",
    r"torch\.multiprocessing\._atfork\._util": "with other versions of Python",
    r"torch\.(csan|_utils_internal\.shutil|profiler\._)": "under an environment variable",
    r"torch\._functionalize_apply_view_metas": "in the stub only",
    r"torch\.autograd\.profiler\.functools": "where the stand-in of Python's own is needed",
    r"torch\._jit_internal\._dummy_thread": "where Python is built without threads",
    r"torch\.utils\.data\.datapipes\.gen_pyi\..*": "where it is run from the sources of torch",
    r"torch\._higher_order_ops\..*|torch\._inductor\..*": "imported when it is used",
}
NOT_READ = {
    r"torch\.multiprocessing\._prctl_pr_set_pdeathsig": "set by C++",
    r"torch\._C\..*": "stubs of C++ classes are not complete",
    r".*\._backward_cls": "set by the metaclass of autograd.Function",
    r"torch\._(freeze_functional_tensor|from_blob|functionalize_\w+|mirror_autograd_meta_to)": "in no stub",
    r"torch\.backends\.(\w+\.)*m": "the instance attribute of the stand-in for a module",
    r"torch\.distributed\._shard\.sharded_tensor\.(binary_cmp|init|misc_ops|tensor_ops)": "set by an import",
    r"torch\.([a-z_]+\.)+_?config\._\w+": "what install_config_module sets",
    r"torch\.fx\.experimental\.sym_node\.is_.*": "set in a loop over a table that is made in another",
    r"torch\.optim\.optimizer\._single_tensor_\w+": "set by a decorator of other modules",
}
OTHER_SIGNATURE = {
    r"torch\._C\..*": "stubs of C++ classes, whose constructors inspect cannot see",
    r"torch\.return_types\..*|torch\._C\._return_types\..*": "the constructor of named tuples of C++",
    r"torch\.(cuda|xpu)\..*(graph|Graph|cuda|Allocate|Capturing|releasePool).*": (
        "dummies in the build without CUDA"
    ),
    r"torch\.cuda\.memory\._record_memory_history": "it has a signature that it does not take: __signature__",
    r"torch\.nn\.functional\.\w*max_pool.*": "boolean_dispatch: the signature is of what it calls",
    r"torch\.functional\.(lu|\w*unique\w*|_\w*return_inverse_\w+)": "boolean_dispatch, as above",
    r".*\.(ShardedTensor|TypedStorage|SingletonInt|Max)": "__new__ differs from __init__",
    r".*\.(GraphModule|_(Stateful|Lazy)GraphModule|MockedObject|_RemoteModule)": "__new__ takes anything",
    r".*\.(Container|NLLLoss2d|LeafSpec|_EventBase|_StreamBase)": "behind `deprecated`, which takes anything",
    r".*\.(ShapeGuardPrinter|DistributedDataParallelCPU)": "behind `deprecated`, which takes anything",
    r"torch\.jit\._monkeytype_config\.JitTypeTraceConfig": "where monkeytype is installed",
    r".*\.FlatParameter\._init_metadata": "a class method whose second parameter is called self",
    r"torch\.utils\._python_dispatch\.TraceableWrapperSubclass\.\w+": (
        "overloads over one that takes anything"
    ),
    r"torch\.onnx\.ops\._impl\.\w+": "behind a decorator that registers it",
    r"torch\.ao\.ns\.fx\.utils\.compute_\w+": "behind a decorator that takes anything",
    r"torch\.fx\.graph\.Graph\.placeholder": "its default is the mark of inspect for none",
    r"torch\.fx\.experimental\.unify_refinements\.unify": "from a module that is not read",
    r"torch\.utils\.debug_log\._debug_grad_log_hook": "made by a decorator",
    r"torch\.distributed\..*\._open_non_blocking": "behind a decorator that takes anything",
}


def reason(name: str, table: dict[str, str]) -> str | None:
    """Why a disagreement is none, or None."""
    for pattern, text in table.items():
        if re.fullmatch(pattern, name):
            return text
    return None
