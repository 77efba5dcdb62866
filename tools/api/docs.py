"""The docstring tables of torch: `_torch_docs.py` and `_tensor_docs.py` document what C++ defines."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from api import marks, signatures
from api.bound import Bound
from api.tree import Tree, parse
from api.values import docstring
from torchmigrate.versions.surface_model import EntryKind


@dataclass(slots=True)
class Documented:
    """Documented builtins: `torch.NAME`, and methods and properties of `Tensor`."""

    functions: dict[str, Bound] = field(default_factory=dict)
    methods: dict[str, Bound] = field(default_factory=dict)


def read(tree: Tree) -> Documented:
    """What the tables of a torch release say; empty for another library."""
    found = Documented()
    for module in ("_torch_docs", "_tensor_docs"):
        path = tree.modules.get(f"{tree.library}.{module}")
        parsed = parse(path) if path is not None else None
        for node in parsed.body if parsed is not None else ():
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                _take(node.value, found)
    return found


def _take(call: ast.Call, found: Documented) -> None:
    function = marks.last_name(call.func)
    if len(call.args) < 2:
        return
    subject = call.args[0]
    doc = docstring(call.args[1])
    if function == "add_docstr_all" and isinstance(subject, ast.Constant) and isinstance(subject.value, str):
        found.methods[subject.value] = _bound(doc, subject.value)
    elif (
        function == "add_docstr"
        and isinstance(subject, ast.Attribute)
        and isinstance(subject.value, ast.Name)
        and subject.value.id == "torch"
    ):
        found.functions[subject.attr] = _bound(doc, subject.attr)


def _bound(doc: str, name: str) -> Bound:
    found = signatures.from_docstring(doc, name)
    bound = Bound(EntryKind.FUNCTION if found else EntryKind.VALUE, signatures=found)
    bound.deprecated = marks.from_docstring(doc, name)
    return bound
