"""Which builders of torchvision an expression may be: through variables, tables and attributes."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from msgspec import Struct

from torchmigrate.semantics.flow.calls import returned
from torchmigrate.semantics.flow.steps import UNKNOWN_STEP, Step
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.model import Via
from torchmigrate.semantics.public_names import public_name

_STEPS = 400  # that are followed from one expression


class Choice(Struct, frozen=True):
    """What an expression may be.

    symbols: builders, by their public names. whole: nothing else. rebound: on the way is a name with several
    values, or a function of the file. by_keyword: it is not known what a positional argument is for.
    """

    symbols: tuple[str, ...] = ()
    whole: bool = True
    rebound: bool = False
    by_keyword: bool = False


class ModelChoices:
    """Answers about one file."""

    def __init__(self, flow: ValueFlow) -> None:
        self.flow = flow
        self._uses = {id(use.node): use for use in flow.names.uses}

    def of(self, node: ast.expr, builders: Collection[str]) -> Choice:
        """The choice that an expression is among some builders."""
        symbols: list[str] = []
        whole, rebound, wrapped = True, False, False
        seen = [Step(node)]
        for step in seen:
            here = step.node
            names = self._named(step)
            steps: Sequence[Step] = self.flow.steps(step) if not names else ()
            rebound = rebound or (isinstance(here, ast.Name) and len(steps) > 1)
            if names:
                found = [name for name in map(public_name, names) if name in builders]
                symbols += found if len(found) == len(names) else []
                whole = whole and len(found) == len(names)
            elif not step.path and isinstance(here, ast.FunctionDef):
                rebound = wrapped = True
                steps = self._passed_on(here)
            elif not steps or len(seen) > _STEPS:
                whole = False
            seen += [each for each in steps if each not in seen]
        known = tuple(dict.fromkeys(symbols))
        return Choice(known, whole and bool(known), rebound, wrapped)

    def _named(self, step: Step) -> tuple[str, ...]:
        """The library name that an expression surely is, if any."""
        module = namespace_of(step.node) if len(step.path) == 1 and isinstance(step.path[0], str) else None
        if module is not None:
            owner = self.flow.names.qualified(module) or self.flow.imported(module)
            return (f"{owner}.{step.path[0]}",) if owner else ()
        use = self._uses.get(id(step.node)) if not step.path else None
        if use is None or use.method:
            return ()
        if use.via is Via.GETATTR and isinstance(step.node, ast.Call):  # as sure as the module in it
            given = self._uses.get(id(step.node.args[0]))
            return use.candidates if given is not None and given.sure else ()
        return use.candidates if use.sure else ()

    def _passed_on(self, function: ast.FunctionDef) -> Sequence[Step]:
        """What a function calls that only passes its keywords on: `return build(*args, **kwargs)`."""
        results, _ = returned(function)
        calls = [value for value in results if isinstance(value, ast.Call)]
        keywords, index = function.args.kwarg, self.flow.index
        if keywords is None or function.decorator_list or not calls or len(calls) < len(results):
            return [UNKNOWN_STEP]
        receivers = []
        for mention in index.named(keywords.arg):
            outer = index.parent(mention)
            if isinstance(outer, ast.keyword) and outer.arg is None and index.home_of(mention) is function:
                receivers.append(index.parent(outer))
            elif function in index.around(mention) and not _sets_another(outer):
                return [UNKNOWN_STEP]
        known = set(receivers) == set(calls)
        return [Step(call.func) for call in calls] if known else [UNKNOWN_STEP]


def namespace_of(node: ast.AST | None) -> ast.expr | None:
    """The module in `module.__dict__` and `vars(module)`."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars":
        return node.args[0] if len(node.args) == 1 else None
    return None


def _sets_another(node: ast.AST | None) -> bool:
    """Whether `kwargs[key]` sets an argument that is neither a flag of models nor weights."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        and not node.slice.value.startswith(("pretrained", "weights"))
    )
