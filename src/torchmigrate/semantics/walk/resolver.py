"""What every name of a file means: the walk over it, from its first statement to its last function.

Statements are walked in the order in which they run; each name holds, at each place, the candidates that
may have reached it. Function bodies are walked after the scope around them, and see everything that the
outer names ever hold, since it is unknown when they are called.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from torchmigrate.semantics.guards.maker import read_attempt, used
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import Scope, SemanticModel, Value
from torchmigrate.semantics.values.frames import Frame
from torchmigrate.semantics.values.slots import Env, unsure
from torchmigrate.semantics.walk.blocks import Blocks
from torchmigrate.semantics.walk.bound import bound_names, stored_names
from torchmigrate.semantics.walk.expressions import has_objects
from torchmigrate.semantics.walk.state import SourceLike

if TYPE_CHECKING:
    from torchmigrate.evidence.evidence import SeenPlaces


def resolve(
    tree: ast.Module,
    source: SourceLike,
    *,
    roots: frozenset[str] = LIBRARY_ROOTS,
    given: Mapping[str, Value] | None = None,
    seen: SeenPlaces | None = None,
) -> SemanticModel:
    """Resolve every library name in a file.

    Args:
        tree: the parsed file.
        source: its text and the way from `ast` places to offsets.
        roots: top-level packages whose names are recorded.
        given: what names are that are imported from other files of the project, as far as that is known.
        seen: what was seen while this text ran.

    Raises:
        RecursionError: for expressions nested deeper than the interpreter can walk.
    """
    if seen is None:
        return _walk(tree, Blocks(source, roots, given))
    from torchmigrate.semantics.walk.seen import SeenWalk

    names = _walk(tree, SeenWalk(source, roots, given, seen))
    for operation in names.operations:
        names.seen.update((id(operand), kinds) for operand, kinds in seen.operands(operation.node))
    return names


def module_values(
    tree: ast.Module, source: SourceLike, *, roots: frozenset[str] = LIBRARY_ROOTS
) -> Callable[[ast.expr], Value]:
    """What a name, or a simple expression, is at the end of a module, for the files that import it.

    Raises:
        RecursionError: as `resolve` does.
    """
    walk = Blocks(source, roots)
    _walk_module(tree, walk)
    _note_flagged(walk)
    return walk.peek


def _walk_module(tree: ast.Module, walk: Blocks) -> Scope:
    """Walk all that runs when the module is imported; its scope."""
    module = Scope("module", tree, None)
    walk.scopes.append(module)
    local = frozenset(bound_names(tree.body))
    walk.frame = Frame(module, Env(), None, local, live=True)
    walk.visit_block(tree.body)
    return module


def _walk(tree: ast.Module, walk: Blocks) -> SemanticModel:
    module = _walk_module(tree, walk)
    outermost = walk.frame
    _soften_globals(walk)
    walk.module_done = True
    while walk.queue:
        item = walk.queue.popleft()
        if item.node in walk.waiting:
            walk.visit_body(item)
    for name in walk.exports:
        for binding in module.bindings.get(name, ()):
            binding.exported = True
    walk.uses.sort(key=lambda use: (use.start, use.end))
    _note_flagged(walk)
    names = SemanticModel(
        tree,
        module,
        walk.uses,
        walk.bindings,
        walk.imports,
        walk.scopes,
        frozenset(walk.exports),
        walk.values,
        walk.operations,
        walk.guarded,
        walk.asked,
        walk.seen,
        walk.called,
    )
    walk.walked.held = {name: slot[0] for name, slot in outermost.every.items()}
    walk.guarded.begin(names, walk.walked)
    return names


def _note_flagged(walk: Blocks) -> None:
    """Note what those `try` statements use whose outcome a flag tells; other files may ask for it."""
    if walk.flagged:
        places = used(walk.uses, walk.imports)
        for attempt in dict.fromkeys(walk.flagged):
            read_attempt(attempt, places)


def _soften_globals(walk: Blocks) -> None:
    """A function that rebinds a global name may run before any other: what it holds is not sure."""
    if "global " not in walk.source.text:
        return
    every = walk.frame.every
    for item in walk.queue:
        for name in stored_names(item.local, "global "):
            slot = every.get(name)
            if slot is not None and has_objects(slot[0]):
                every[name] = (unsure(slot[0]), slot[1])
