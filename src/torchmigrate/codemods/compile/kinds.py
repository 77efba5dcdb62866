"""Which calls build a model, and what other calls do with a model that they are given."""

from __future__ import annotations

import ast
import builtins
import enum
import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property, lru_cache

from torchmigrate.patterns import pattern
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.public_names import public_name
from torchmigrate.source.text import Source
from torchmigrate.source.trees import last_name, walk


class Built(enum.Enum):
    """What a call gives."""

    MODEL = "model"  # surely a torch.nn.Module, and one that is worth compiling
    UNKNOWN = "unknown"  # may be: its uses have to tell
    OTHER = "other"  # surely not, or a model to leave alone


class Event(enum.Enum):
    """What a mention does with the model; of calls, as far as their names tell."""

    MOVE = "move"  # to a device or another type, or converts its layers
    TO_CPU = "to cpu"
    MODE = "mode"  # train(), eval()
    PREPARE = "prepare"  # apply(init), requires_grad_()
    LOOK = "look"  # printed, counted, frozen
    CHANGE = "change"  # assigns one of its attributes
    CALL = "call"
    WRAP = "wrap"  # DistributedDataParallel
    COPIES = "copies"  # DataParallel: runs copies on several devices
    SHARD = "shard"  # FSDP
    STATE = "state"  # saved or loaded
    IDENTITY = "identity"  # asks for its class, its parts or a copy
    PARAMETERS = "parameters"
    TRAINED = "trained"  # its parameters go to an optimizer
    USE = "use"  # given to something that trains or runs it
    GIVEN = "given"  # given to something else
    STORED = "stored"  # in another variable, an attribute, a container
    RETURNED = "returned"
    LEAVE = "leave"  # compiled, traced, exported, quantized or taken over: not ours to touch


def _parents(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name}." for name in names)


def below(name: str, parents: tuple[str, ...]) -> bool:
    """Whether a qualified name is one of these, which end with a dot, or inside one."""
    return f"{name}.".startswith(parents)


_BUILTINS = frozenset(dir(builtins))

# What takes a model over, or needs it as it is: by qualified name, and what is below it.
_LEAVE = _parents(
    """
    torch.compile torch._dynamo torch._inductor torch.jit torch.export torch._export torch.onnx torch.fx
    torch.func torch.ao torch.quantization torch.cuda.make_graphed_callables torch.utils.mkldnn
    torch.utils.tensorboard torch.distributed.pipelining torch.distributed.pipeline
    torch.distributed.tensor torch.distributed.rpc torch.multiprocessing torch.nn.utils.stateless
    torch_tensorrt torch2trt torch_xla torchao torch_neuronx functorch accelerate apex.amp backpack
    botorch captum colossalai deepspeed fairscale gpytorch habana_frameworks
    intel_extension_for_pytorch laplace lightning
    lightning_fabric multiprocessing nncf onnx onnxruntime opacus openvino optimum peft poptorch pyro
    pytorch_lightning tensorboardX thunder trl
    """.split()
)
# Of those, what a function or class of the file makes its own models with.
_COMPILERS = _parents(
    """
    torch.compile torch._dynamo torch.jit torch.export torch.onnx.export torch.ao.quantization
    torch.quantization torch.cuda.make_graphed_callables torch.cuda.CUDAGraph
    """.split()
)
# Harmless parts of torch.jit: what a model says about itself.
_JIT_HINTS = _parents(
    """
    torch.jit.Attribute torch.jit.Final torch.jit.annotate torch.jit.export torch.jit.final torch.jit.ignore
    torch.jit.interface torch.jit.is_scripting torch.jit.is_tracing torch.jit.isinstance torch.jit.unused
    """.split()
)
# The same by the last part of the name, for what is reached through objects: accelerator.prepare(model).
_LEAVE_LAST = frozenset(
    """
    add_graph aot_module boost compile convert convert_fx convert_to_torchscript draft_export
    dynamo_export export export_for_training fit freeze_graph fuse_fx fuse_modules functional_call
    initialize make_functional make_functional_with_buffers make_fx make_graphed_callables make_private
    make_private_with_epsilon optimize optimize_for_inference optimize_model parallelize_module prepare
    prepare_fx prepare_model prepare_qat prepare_qat_fx quantize quantize_ quantize_dynamic quantize_fx
    script script_if_tracing setup setup_module spawn symbolic_trace to_mkldnn torch2trt trace
    trace_module Pipe PipelineModule PipelineStage Process GraphModule Interpreter
    """.split()
)
# Files that use these run on devices that compile by themselves, hand their models to them, have modules that
# run elsewhere, hooks that compiled code does not call, or differentiate through the steps of an optimizer.
TAKEN_OVER = _parents(
    """
    accelerate backpack colossalai deepspeed habana_frameworks higher learn2learn lightning opacus
    poptorch pytorch_lightning thunder torch.distributed.autograd torch.distributed.rpc torch_neuronx
    torch_xla torchopt
    """.split()
)

_WRAPS = frozenset("DistributedDataParallel DDP ApexDDP NativeDDP MMDistributedDataParallel".split())
_COPIES = frozenset("DataParallel MMDataParallel DataParallelModel data_parallel".split())
_SHARDS = frozenset("FullyShardedDataParallel FSDP FullyShardedDDP ShardedDataParallel fully_shard".split())
_SAME = frozenset("convert_sync_batchnorm convert_syncbn_model".split())
_IDENTITY = frozenset(
    """
    AveragedModel ModelEma ModelEmaV2 ModelEmaV3 deepcopy enumerate isinstance iter issubclass len list
    reversed tuple type vars zip
    """.split()
)
_OPTIMIZER = pattern(
    r"optim|^(?:ada(?:belief|delta|factor|grad|max|mw?)?w?|asgd|adamw?|fusedadam|lamb|lars|lbfgs|lion|madgrad|[nr]adam|"
    r"novograd|r(?:ms)?prop|sgdw?|sparseadam)$",
    re.IGNORECASE,
)
_STATE = pattern(
    r"(?:^|_)(?:save|load|restore|resume)(?:_|$)|^(?:save|load|restore)[A-Z]|checkpoint|ckpt|state_dict|pretrained",
    re.IGNORECASE,
)
_INSPECT = pattern(
    r"print|summar|^(?:info|debug|warning|log)|count|num_|param|watch|flop|macs|complexity|init|freeze|^set|size|"
    r"attr$|format|^(?:str|repr|id|next|callable)$",
    re.IGNORECASE,
)
_USE = pattern(
    r"train|fit|eval|valid|test|run|infer|predict|epoch|step|loop|main|bench|demo|learn|sample|generate|forward|"
    r"engine",
    re.IGNORECASE,
)

_GROUPS = (
    (_SAME, Event.MOVE),
    (_WRAPS, Event.WRAP),
    (_COPIES, Event.COPIES),
    (_SHARDS, Event.SHARD),
    (_LEAVE_LAST, Event.LEAVE),
    (_IDENTITY, Event.IDENTITY),
)
_WORDS = (
    (_OPTIMIZER, Event.TRAINED),
    (_STATE, Event.STATE),
    (_INSPECT, Event.LOOK),
    (_USE, Event.USE),
)

_CONTAINERS = frozenset("Sequential Transformer TransformerEncoder TransformerDecoder".split())
_NOT_MODELS = frozenset(
    """
    clone copy create_feature_extractor deepcopy get get_model_weights get_weight list_models load loads
    next pop unwrap_model
    """.split()
)
_GIVE_NO_MODEL = _NOT_MODELS | _LEAVE_LAST | _WRAPS | _COPIES | _SHARDS
_TRANSFORMERS = pattern(r"(?!TF|Flax|DataCollator)\w*(?:Model|For[A-Z]\w*|LMHead\w*|Transformer)")
_TRANSFORMERS_ROOTS = ("transformers", "pytorch_transformers", "pytorch_pretrained_bert")
_OTHER_COMPILERS = ("re", "regex", "torch")
_FROM = frozenset("from_pretrained from_config from_encoder_decoder_pretrained".split())


class ModelKinds:
    """Answers about the calls of one file.

    Args:
        flow: where its values come from.
        source: its text.
    """

    def __init__(self, flow: ValueFlow, source: Source) -> None:
        self.flow = flow
        self.names = flow.names
        self.source = source
        self._recorded = {id(use.node): use.candidates for use in flow.names.uses}

    # ---- names ---------------------------------------------------------------------------------------

    def qualified(self, node: ast.AST) -> list[str]:
        """The names that a dotted expression may mean in any library; empty if it comes from no import."""
        recorded = self._recorded.get(id(node)) or self.flow.imports(node)
        return sorted({public_name(name) for name in recorded if name})

    def last_names(self, node: ast.AST) -> list[str]:
        """The last parts of what a callee may be called, as imported and as written."""
        found = [last_name(node), *(name.rpartition(".")[2] for name in self.qualified(node))]
        if isinstance(node, ast.Call):  # getattr(torch.optim, name)(...)
            found += [part.attr for part in walk(node) if isinstance(part, ast.Attribute)]
        return found

    def leaves(self, node: ast.AST) -> bool:
        """Whether an expression is something that compiles, exports or takes over models."""
        return any(below(name, _LEAVE) and not below(name, _JIT_HINTS) for name in self.qualified(node))

    def mentions_compiler(self, node: ast.AST) -> bool:
        """Whether something that compiles, traces or exports is used anywhere in a function or class."""
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)), "defined"
        marks = getattr(node, "decorator_list", ())
        lines = self.compiler_lines
        index = bisect_left(lines, min((mark.lineno for mark in marks), default=node.lineno))
        return index < len(lines) and lines[index] <= (node.end_lineno or node.lineno)

    @cached_property
    def compiler_lines(self) -> list[int]:
        """The lines of the file on which something compiles, traces or exports."""
        lines = [
            node.func.end_lineno or node.lineno
            for node in self.names.nodes(ast.Call)
            if isinstance(node.func, ast.Attribute) and node.func.attr == "compile"
            if last_name(node.func.value) not in _OTHER_COMPILERS
        ]
        for use in self.names.uses:
            if any(below(name, _COMPILERS) and not below(name, _JIT_HINTS) for name in use.candidates):
                lines.append(self.source.position(use.start)[0])
        return sorted(lines)

    # ---- what a call builds --------------------------------------------------------------------------

    def built(self, call: ast.Call) -> Built:
        """What a call gives, by its function alone."""
        if any("compile" in (keyword.arg or "") for keyword in call.keywords):
            return Built.OTHER
        function = self.flow.definition(call.func)
        if isinstance(function, ast.ClassDef):
            return self.class_built(function)
        if function is not None:
            return Built.OTHER if self.mentions_compiler(function) else Built.UNKNOWN
        known = set(map(_library_built, self.qualified(call.func)))
        if known:
            return known.pop() if len(known) == 1 else Built.UNKNOWN
        if self.flow.builtin(call.func) in _BUILTINS or any(map(_gives_no_model, self.last_names(call.func))):
            return Built.OTHER
        return Built.UNKNOWN

    def class_built(self, node: ast.ClassDef) -> Built:
        """What a class of this file is; its bases are followed within the file."""
        lineage = self.flow.classes.lineage(node)
        kinds = {
            self._base_built(base)
            for each in lineage
            for base in each.bases
            if self.flow.definition(base) not in lineage
        }
        if Built.OTHER in kinds or any(map(self.mentions_compiler, lineage)):
            return Built.OTHER
        return Built.MODEL if Built.MODEL in kinds else Built.UNKNOWN

    def _base_built(self, base: ast.expr) -> Built:
        kinds = set()
        for name in self.qualified(base):
            root, _, rest = name.partition(".")
            if below(name, _LEAVE) or rest.rpartition(".")[2].startswith("Lightning"):
                kinds.add(Built.OTHER)
            elif root == "torch":
                kinds.add(Built.MODEL if below(name, ("torch.nn.",)) else Built.OTHER)
            elif root in (*_TRANSFORMERS_ROOTS, "torchvision", "timm"):
                kinds.add(_library_built(name))
            else:
                kinds.add(Built.UNKNOWN)
        return kinds.pop() if len(kinds) == 1 else Built.UNKNOWN

    # ---- what a call does with a model ---------------------------------------------------------------

    def role(self, call: ast.Call) -> Event:
        """What a call does with a model among its arguments, as far as its name tells."""
        names = self.qualified(call.func)
        last = self.last_names(call.func)
        for group, role in _GROUPS:
            if any(name in group for name in last):
                return role
        if self.leaves(call.func) or self._is_compiled(call.func):
            return Event.LEAVE
        if any(name.partition(".")[0] in _TRANSFORMERS_ROOTS and name.endswith("Trainer") for name in names):
            return Event.LEAVE
        if any(name.lower().endswith("ema") for name in last):
            return Event.IDENTITY
        if any(below(name, ("torch.optim.",)) for name in names):
            return Event.TRAINED
        return next((role for kind, role in _WORDS if any(map(kind.search, last))), Event.GIVEN)

    def _is_compiled(self, node: ast.AST) -> bool:
        """Whether a function is what a compiler gives, or decorated with one."""
        if isinstance(node, ast.Call):
            return self.leaves(node.func)  # torch.compile(backend=...)(model)
        made = [step.node for step in self.flow.origins(node)] if isinstance(node, ast.Name) else []
        marks = [mark for item in made for mark in getattr(item, "decorator_list", ())]
        return any(
            self.leaves(item.func if isinstance(item, ast.Call) else item)
            for item in (*marks, *(item for item in made if isinstance(item, ast.Call)))
        )


@lru_cache(maxsize=4096)
def _gives_no_model(name: str) -> bool:
    """Whether the last part of a name says that what is called gives no model, or one that is in use."""
    return name in _GIVE_NO_MODEL or _OPTIMIZER.search(name) is not None


@lru_cache(maxsize=4096)
def _library_built(name: str) -> Built:
    """What a function or class of a library gives."""
    root, _, rest = name.partition(".")
    head, _, last = rest.rpartition(".")
    if below(name, _LEAVE):
        return Built.OTHER
    if name == "torch.hub.load":
        return Built.MODEL
    if _gives_no_model(last or root):
        return Built.OTHER
    if root == "torch":
        if head != "nn":
            return Built.OTHER
        return Built.MODEL if last in _CONTAINERS else Built.UNKNOWN
    if root == "torchvision":
        is_model = head.startswith("models") and not last.endswith("Weights") and "." not in head[7:]
        return Built.MODEL if is_model and head != "models.feature_extraction" else Built.OTHER
    if root == "timm":
        return Built.MODEL if last == "create_model" or head.startswith("models.") else Built.UNKNOWN
    if root in _TRANSFORMERS_ROOTS:
        cls = head.rpartition(".")[2] if last in _FROM else last
        return Built.MODEL if _TRANSFORMERS.fullmatch(cls) else Built.OTHER
    if root == "segmentation_models_pytorch":
        single = rest == last or head in ("decoders", "unet", "fpn")
        return Built.MODEL if single and (last[:1].isupper() or last == "create_model") else Built.OTHER
    return Built.UNKNOWN
