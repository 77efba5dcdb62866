"""What torch defines in C++: from stubs, docstring tables, and tables here where those say nothing."""

from __future__ import annotations

import ast
import re

from api import docs
from api.body import run
from api.bound import Bound, ModuleNames, value
from api.scope import Scope
from api.tree import Tree, parse
from torchmigrate.versions.surface_model import EntryKind

CORE = "torch._C"
FUNCTIONS = "torch._C._VariableFunctions"
WHOLE = (CORE, FUNCTIONS)  # stubs and tables have every public name of these
RETURN_TYPES = "torch._C._return_types"

# Public names of torch._C that stubs lack, or lacked before 1.6. They were there in all of 1.0 to 2.15, or
# only matter to programs that no release breaks by taking them away.
_CORE_NAMES = """
    AVG AnyType Argument ArgumentSpec Block BoolType Capsule Code CompleteArgumentSpec ConcreteModuleType
    DeepCopyMemoTable DictType ExcludeDispatchKeyGuard OperatorInfo SUM ScriptClassFunction
    ScriptDictIterator ScriptDictKeyIterator ScriptListIterator StaticModule DisableTorchFunction
    ErrorReport ExecutionPlan FatalError FileCheck FloatType FunctionSchema Future Generator Gradient
    Graph GraphExecutorState InferredType IntType InterfaceType IODescriptor JITException ListType
    LockingLogger LoggerBase ModuleDict Node NoneType NoopLogger NumberType OptionalType ParameterDict
    PyObjectType PyTorchFileReader PyTorchFileWriter RRefType ScriptClass ScriptFunction ScriptMethod
    ScriptModule ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext Size
    StringType SymIntType TensorType ThroughputBenchmark TracingState TupleType Type UnionType Use Value
    autocast_decrement_nesting autocast_increment_nesting cpp default_generator device dtype finfo fork
    from_numpy get_default_dtype get_num_interop_threads get_num_threads has_cuda has_cudnn has_lapack
    has_mkl has_mkldnn has_openmp has_spectral has_mps iinfo import_ir_module import_ir_module_from_buffer
    init_num_threads is_anomaly_enabled is_autocast_enabled is_grad_enabled layout memory_format
    merge_type_from_type_comment parse_ir parse_schema parse_type_comment qscheme set_anomaly_enabled
    set_autocast_enabled clear_autocast_cache set_flush_denormal set_grad_enabled set_num_interop_threads
    set_num_threads strided sparse_coo unify_type_list wait
"""
# Names in the stub of torch._C that the module has not: aliases for the stub itself, and other mistakes.
_STUB_ONLY = """
    K P R S T T_co AliasInfo BatchNormBackend CapturedTraceback ClassDef ConvBackend Decl Def GreenContext
    IValue Ident JitType JitTypeT Module ResolutionCallback SourceRange Stack TreeView get_num_thread
    gather_traceback symbolize_tracebacks CONV_BN_FUSION FUSE_ADD_RELU HOIST_CONV_PACKED_PARAMS
    INSERT_FOLD_PREPACK_OPS REMOVE_DROPOUT VULKAN_AUTOMATIC_GPU_TRANSFER
"""
_DTYPES = """
    float32 float float64 double float16 half uint8 int8 int16 short int32 int int64 long
    complex32 complex64 complex128
"""
# torch.FloatTensor, torch.cuda.FloatTensor, torch.sparse.FloatTensor ...: made by C++ when torch is imported.
_TENSOR_TYPES = "Byte Char Double Float Half Int Long Short Bool BFloat16"
_TENSOR_TYPE_MODULES = ("torch", "torch.cuda", "torch.sparse", "torch.cuda.sparse")
# Names of Tensor that stubs of some releases leave out.
_TENSOR_NAMES = """
    data grad grad_fn is_leaf output_nr requires_grad retains_grad shape device dtype layout is_cuda is_sparse
    is_mkldnn is_quantized ndim itemsize nbytes T name volatile _version _grad _grad_fn _base _cdata
    _backward_hooks
"""
# Public names that no stub has, or only a later one, with the release that brought them.
_SINCE = {
    (1, 0): """
        Storage _mkldnn binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss dsmm get_device
        hinge_embedding_loss hsmm kl_div margin_ranking_loss saddmm spmm triplet_margin_loss
    """,
    (1, 1): "bool contiguous_format",
    (1, 2): "bfloat16 per_tensor_affine per_tensor_symmetric",
    (1, 3): "channels_last per_channel_affine per_channel_symmetric",
    (1, 4): "preserve_format",
    (1, 5): "channels_last_3d",
    (1, 9): "sparse_csr",
    (1, 12): "chalf",
    (2, 0): "get_autocast_ipu_dtype is_autocast_ipu_enabled set_autocast_ipu_dtype set_autocast_ipu_enabled",
    (2, 1): "get_autocast_xla_dtype is_autocast_xla_enabled set_autocast_xla_dtype set_autocast_xla_enabled "
    "float8_e4m3fn float8_e5m2",
    (2, 3): "uint1 uint2 uint3 uint4 uint5 uint6 uint7",
    (2, 6): "bit int1 int2 int3 int4 int5 int6 int7",
}
_PRIVATE_FUNCTIONS = {"segment_reduce": "_segment_reduce"}


def release(tree: Tree) -> tuple[int, int]:
    """Major and minor, from `torch/version.py`."""
    path = tree.modules.get("torch.version")
    found = re.search(r"__version__ = '(\d+)\.(\d+)", path.read_text()) if path is not None else None
    return (int(found[1]), int(found[2])) if found is not None else (0, 0)


class Alone:
    """For reading a stub without looking at other modules."""

    def star(self, source: str) -> tuple[list[tuple[str, Bound]], bool]:
        return [], False

    def __contains__(self, name: str) -> bool:
        return False

    def constant(self, name: str) -> ast.expr | None:
        return None


def is_made(name: str, tree: Tree) -> bool:
    return tree.library == "torch" and name in (CORE, FUNCTIONS, RETURN_TYPES)


def made(name: str, tree: Tree) -> ModuleNames | None:
    """A module of torch that is no file: of C++ without stubs, or `_return_types` with a stub elsewhere."""
    if not is_made(name, tree):
        return None
    module = ModuleNames(name, open=True)
    if name == RETURN_TYPES:
        module.names = _stub(tree, "torch.return_types")
        return module
    table = _documented(tree)
    module.names = _stub(tree, name) if name in tree.stubs else _before_stubs(name, tree, table)
    if name == CORE:
        for key in [key for key in module.names if key.endswith("Tensor") or key in _STUB_ONLY.split()]:
            del module.names[key]
        for key in _CORE_NAMES.split():
            module.names.setdefault(key, value())
        for key in ("TensorBase", "_TensorBase"):
            if key in module.names:
                _complete_tensor(module.names[key], table)
    else:
        for bound in module.names.values():
            # What stubs call `self` in some functions, C++ calls `input` in all.
            bound.signatures = tuple(re.sub(r"\bself\b", "input", text) for text in bound.signatures)
        core = _stub(tree, CORE)
        for key, bound in table.functions.items():
            if key in core or key in _CORE_NAMES.split():
                continue
            known = module.names.setdefault(key, bound)
            known.signatures = known.signatures or bound.signatures
            known.deprecated = bound.deprecated
        for key, private in _PRIVATE_FUNCTIONS.items():
            if key in module.names:
                module.names[private] = module.names[key]
    return module


def _complete_tensor(tensor: Bound, table: docs.Documented) -> None:
    for key in _TENSOR_NAMES.split():
        tensor.members.setdefault(key, value())
    for key, bound in table.methods.items():
        known = tensor.members.setdefault(key, bound)
        known.signatures = known.signatures or bound.signatures
        known.deprecated = bound.deprecated
    tensor.open = False


def _stub(tree: Tree, name: str) -> dict[str, Bound]:
    """The names in a stub file; classes may have more members than it says."""
    parsed = parse(tree.stubs[name]) if name in tree.stubs else None
    if parsed is None:
        return {}
    package = name if name in tree.packages else name.rpartition(".")[0]
    scope = Scope(name, package, Alone(), stub=True)
    run(scope, parsed.body)
    leave_open(ModuleNames(name, scope.names))
    return scope.names


def leave_open(module: ModuleNames) -> None:
    """A stub, and the classes in it, may lack names that the compiled module has."""
    module.open = True
    for bound in module.names.values():
        if bound.kind is EntryKind.CLASS:
            bound.open = True


def _before_stubs(name: str, tree: Tree, table: docs.Documented) -> dict[str, Bound]:
    """Up to 1.5 the stub of torch itself has what C++ defines, in 1.0 only the documentation."""
    everything = _stub(tree, "torch")
    if name == FUNCTIONS:
        return {key: bound for key, bound in everything.items() if bound.kind is EntryKind.FUNCTION}
    names = {
        key: bound
        for key, bound in everything.items()
        if bound.kind is not EntryKind.FUNCTION and not key.endswith(("Storage", "Tensor"))
    }
    tensor = everything.get("Tensor") or Bound(EntryKind.CLASS)
    names["_TensorBase"] = tensor
    for key in _DTYPES.split():
        names.setdefault(key, value())
    return names


_TABLES: dict[int, docs.Documented] = {}


def _documented(tree: Tree) -> docs.Documented:
    if id(tree) not in _TABLES:
        _TABLES.clear()
        _TABLES[id(tree)] = docs.read(tree)
    return _TABLES[id(tree)]


def complete(module: ModuleNames, tree: Tree) -> None:
    """Adds to torch's own modules what importing torch puts there."""
    if tree.library != "torch":
        return
    if module.name == "torch":
        for name in [name for name in module.names if re.fullmatch(r"_?TensorBase|\w+StorageBase", name)]:
            del module.names[name]
        if not any(name in tree.stubs for name in (CORE, "torch")):
            module.open = True  # 1.0: only what is documented is known
        module.names.setdefault("ops", value())
        for since, names in _SINCE.items():
            if release(tree) >= since:
                for name in names.split():
                    module.names.setdefault(name, value())
    if module.name in _TENSOR_TYPE_MODULES:
        for name in _TENSOR_TYPES.split():
            if name == "Bool" and "sparse" in module.name:
                continue
            module.names.setdefault(
                name + "Tensor", Bound(EntryKind.CLASS, bases=("torch.Tensor",), open=True)
            )
