"""What torch defines in C++: from stubs and docstring tables, and from tables here where those say nothing."""

from __future__ import annotations

from api import docs
from api.bound import Bound, ModuleNames, value
from api.scope import Scope
from api.tree import Tree, parse
from torchmigrate.versions.surface_model import EntryKind

CORE = "torch._C"
FUNCTIONS = "torch._C._VariableFunctions"
RETURN_TYPES = "torch._C._return_types"

# Public names of torch._C that stubs lack, or lacked before 1.6. They were there in all of 1.0 to 2.15, or
# only matter to programs that no release breaks by taking them away.
_CORE_NAMES = """
    AnyType Argument ArgumentSpec Block BoolType Code CompleteArgumentSpec ConcreteModuleType DeepCopyMemoTable
    DictType DisableTorchFunction ErrorReport ExecutionPlan FatalError FileCheck FloatType FunctionSchema
    Future Generator Gradient Graph GraphExecutorState InferredType IntType InterfaceType IODescriptor
    JITException ListType LockingLogger LoggerBase ModuleDict Node NoneType NoopLogger NumberType OptionalType
    ParameterDict PyObjectType PyTorchFileReader PyTorchFileWriter RRefType ScriptClass ScriptFunction
    ScriptMethod ScriptModule ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext
    Size StringType SymIntType TensorType ThroughputBenchmark TracingState TupleType Type UnionType Use Value
    autocast_decrement_nesting autocast_increment_nesting cpp default_generator device dtype
    finfo fork from_numpy get_default_dtype get_num_interop_threads get_num_threads
    has_cuda has_cudnn has_lapack has_mkl has_mkldnn has_openmp has_spectral has_mps
    iinfo import_ir_module import_ir_module_from_buffer init_num_threads is_anomaly_enabled is_autocast_enabled
    is_grad_enabled layout memory_format merge_type_from_type_comment parse_ir parse_schema
    parse_type_comment per_tensor_affine qscheme read_vitals set_anomaly_enabled
    set_autocast_enabled clear_autocast_cache set_flush_denormal set_grad_enabled set_num_interop_threads
    set_num_threads set_vital strided sparse_coo unify_type_list vitals_enabled wait contiguous_format
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
    is_mkldnn is_quantized names ndim itemsize nbytes T name volatile _version _grad _grad_fn _base _cdata
    _backward_hooks
"""
_PRIVATE_FUNCTIONS = {"segment_reduce": "_segment_reduce"}


class Alone:
    """For reading a stub without looking at other modules."""

    def star(self, source: str) -> tuple[list[tuple[str, Bound]], bool]:
        return [], False

    def __contains__(self, name: str) -> bool:
        return False


def is_made(name: str, tree: Tree) -> bool:
    return tree.library == "torch" and name in (CORE, FUNCTIONS, RETURN_TYPES)


def made(name: str, tree: Tree) -> ModuleNames | None:
    """A module of torch that is no file: of C++ without stubs, and `_return_types`, whose stub has another name."""
    if not is_made(name, tree):
        return None
    module = ModuleNames(name, open=True)
    if name == RETURN_TYPES:
        module.names = _stub(tree, "torch.return_types")
        return module
    table = _documented(tree)
    module.names = _stub(tree, name) if name in tree.stubs else _before_stubs(name, tree, table)
    if name == CORE:
        for key in _CORE_NAMES.split():
            module.names.setdefault(key, value())
        for key in ("TensorBase", "_TensorBase"):
            if key in module.names:
                _complete_tensor(module.names[key], table)
    else:
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
    scope.run(parsed.body)
    for bound in scope.names.values():
        if bound.kind is EntryKind.CLASS:
            bound.open = True
    return scope.names


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
        for name in ("TensorBase", "_TensorBase"):
            module.names.pop(name, None)
        if not any(name in tree.stubs for name in (CORE, "torch")):
            module.open = True  # 1.0: only what is documented is known
        module.names.setdefault("ops", value())
    if module.name in _TENSOR_TYPE_MODULES:
        for name in _TENSOR_TYPES.split():
            module.names.setdefault(name + "Tensor", Bound(EntryKind.CLASS, bases=("torch.Tensor",), open=True))
