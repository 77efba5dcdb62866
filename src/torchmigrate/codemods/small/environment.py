"""TM074 and TM075: environment variables that were renamed, or that nothing reads now.

The rules find code that sets one: `os.environ["NAME"] = "1"`, `setdefault`, `setenv`, `putenv`, or a dict
with the name as a key. What reads a variable itself knows what it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.quotes import text_replaced
from torchmigrate.versions.range import severity

_SETTERS = frozenset(["setdefault", "setenv", "putenv"])


class Variable(Struct, frozen=True):
    """since: the release that reads it no longer, or warns of it. new: what is read instead."""

    since: str
    new: str | None = None


# The names in torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp; the old ones warn.
_RENAMED = {
    name: Variable("2.2", f"TORCH_{name}")
    for name in ("NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING")
}
# Names that the Python sources of the release before read, and that are nowhere in those of this one.
_UNREAD = {
    "AOT_DYNAMIC_SHAPES": Variable("2.1"),
    "TORCHDYNAMO_DYNAMIC_SHAPES": Variable("2.1"),
    "TORCHDYNAMO_REPORT_GUARD_FAILURES": Variable("2.2"),
    "XLA_USE_SPMD": Variable("2.3"),
    "TORCH_DISABLE_NATIVE_FUNCOL": Variable("2.4"),
    "TORCHDYNAMO_INLINE_INBUILT_NN_MODULES": Variable("2.5"),
    "TORCH_ONNX_EXPERIMENTAL_RUNTIME_TYPE_CHECK": Variable("2.5"),
    "ENABLE_AOT_AUTOGRAD_CACHE": Variable("2.6", "TORCHINDUCTOR_AUTOGRAD_CACHE"),
    "TORCHDYNAMO_CPP_GUARD_MANAGER": Variable("2.6"),
    "TORCHDYNAMO_PRINT_GUARDS": Variable("2.6"),
    "TORCHINDUCTOR_ABI_COMPATIBLE": Variable("2.6"),
    "TORCHINDUCTOR_STACK_ALLOCATION": Variable("2.6"),
    "TORCHINDUCTOR_C_SHIM_VERSION": Variable("2.7"),
    "AOT_INDUCTOR_COMPILE_WRAPPER_WITH_O0": Variable("2.8"),
    "TORCHINDUCTOR_AUTOTUNE_FALLBACK_TO_ATEN": Variable("2.8"),
    "ONNXRT_DUMP_PATH": Variable("2.9"),
    "TORCHINDUCTOR_DISABLE_DECOMPOSE_K": Variable("2.9"),
    "TORCHINDUCTOR_CUTLASS_PRESETS": Variable("2.10"),
    "ENABLE_EPILOGUE_SUBTILING": Variable("2.11"),
    "TORCHINDUCTOR_FORCE_SAME_PRECISION": Variable("2.13"),
    "TVM_SCHEDULER": Variable("2.14"),
    "TORCH_DISTRIBUTED_PIPELINE_PER_DIRECTION_P2P": Variable("2.15"),
}
_TABLES = {"nccl-environment": _RENAMED, "unread-environment": _UNREAD}


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every place that sets a variable of the rule."""
    table = _TABLES[rule.name]
    places = [node for node in _set(file) if node.value in table]
    text = file.source.text
    for node in places:
        name = str(node.value)
        variable = table[name]
        since = variable.since
        own = replace(rule, deprecated=since) if rule.deprecated else replace(rule, changed=since)
        if severity(own, file.versions) is None:
            continue
        fix = None
        if rule.cases and variable.new is not None:
            if variable.new in text:
                continue  # both are set
            edit = text_replaced(node, variable.new, file.source)
            alone = text.count(name) == sum(place.value == name for place in places)
            if alone and edit is not None:
                fix = fix_by(own, file, f"Set `{variable.new}`", edit)
        yield finding_at(own, file, file.source.span(node), symbol=name, fix=fix)


def _set(file: FileContext) -> Iterator[ast.Constant]:
    """The strings that name what is set."""
    for item in file.names.nodes(ast.Subscript):
        if isinstance(item.ctx, ast.Store) and isinstance(item.slice, ast.Constant):
            yield item.slice
    for call in file.names.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _SETTERS:
            yield from (key for key in call.args[:1] if isinstance(key, ast.Constant))
    for mapping in file.names.nodes(ast.Dict):
        yield from (key for key in mapping.keys if isinstance(key, ast.Constant))
