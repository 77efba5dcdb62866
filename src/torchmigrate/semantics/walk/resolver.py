"""What every name of a file means: the walk over it, put together from its parts.

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
from torchmigrate.semantics.walk.annotations import Annotations
from torchmigrate.semantics.walk.assignments import Assignments
from torchmigrate.semantics.walk.bindings import Bindings
from torchmigrate.semantics.walk.blocks import Blocks
from torchmigrate.semantics.walk.bound import bound_names, stored_names
from torchmigrate.semantics.walk.calls import Calls
from torchmigrate.semantics.walk.chains import Chains
from torchmigrate.semantics.walk.definitions import Definitions
from torchmigrate.semantics.walk.expressions import Expressions, has_objects
from torchmigrate.semantics.walk.imports import Imports
from torchmigrate.semantics.walk.lookups import Lookups
from torchmigrate.semantics.walk.members import Members
from torchmigrate.semantics.walk.results import Results
from torchmigrate.semantics.walk.state import SourceLike, State
from torchmigrate.semantics.walk.statements import Statements
from torchmigrate.semantics.walk.tests import Tests
from torchmigrate.semantics.walk.uses import Uses

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
    state = State(source, roots, given)
    _put_together(state, seen)
    try:
        return _walk(tree, state)
    finally:
        del (
            state.eval,
            state.visit_block,
            state.visit_body,
        )  # so that the parts need no collection


def module_values(
    tree: ast.Module, source: SourceLike, *, roots: frozenset[str] = LIBRARY_ROOTS
) -> Callable[[ast.expr], Value]:
    """What a name, or a simple expression, is at the end of a module, for the files that import it.

    Raises:
        RecursionError: as `resolve` does.
    """
    state = State(source, roots)
    lookups = _put_together(state)
    try:
        _walk_module(tree, state)
        _note_flagged(state)
    finally:
        del state.eval, state.visit_block, state.visit_body
    return lookups.peek


def _put_together(state: State, seen: SeenPlaces | None = None) -> Lookups:
    """Make the parts of a walk, the lower ones first, and the ways back up."""
    uses, lookups, bindings = Uses(state), Lookups(state), Bindings(state)
    annotations = Annotations(state, lookups)
    results = Results(state, lookups, annotations)
    members = Members(state, uses, results)
    chains = Chains(state, uses, lookups, members)
    if seen is not None:
        from torchmigrate.semantics.walk.seen import SeenChains

        chains = SeenChains(state, uses, lookups, members, seen)
        state.seen = chains.expressions
    calls = Calls(state, annotations, results)
    tests = Tests(state, lookups, annotations)
    expressions = Expressions(state, uses, lookups, bindings, tests, chains, calls)
    assignments = Assignments(state, lookups, bindings, expressions)
    imports = Imports(state, uses, bindings)
    definitions = Definitions(state, lookups, bindings, annotations, chains, expressions, assignments)
    statements = Statements(state, lookups, bindings, annotations, tests, expressions, assignments)
    blocks = Blocks(
        state, lookups, bindings, tests, expressions, assignments, imports, definitions, statements
    )
    state.eval, state.visit_block = expressions.eval, blocks.visit_block
    state.visit_body = definitions.visit_body
    return lookups


def _walk_module(tree: ast.Module, state: State) -> Scope:
    """Walk all that runs when the module is imported; its scope."""
    module = Scope("module", tree, None)
    state.scopes.append(module)
    local = frozenset(bound_names(tree.body))
    state.frame = Frame(module, Env(), None, local, live=True)
    state.visit_block(tree.body)
    return module


def _walk(tree: ast.Module, state: State) -> SemanticModel:
    module = _walk_module(tree, state)
    outermost = state.frame
    _soften_globals(state)
    state.module_done = True
    while state.queue:
        item = state.queue.popleft()
        if item.node in state.waiting:
            state.visit_body(item)
    for name in state.exports:
        for binding in module.bindings.get(name, ()):
            binding.exported = True
    state.uses.sort(key=lambda use: (use.start, use.end))
    _note_flagged(state)
    names = SemanticModel(
        tree,
        module,
        state.uses,
        state.bindings,
        state.imports,
        state.scopes,
        frozenset(state.exports),
        state.values,
        state.operations,
        state.guarded,
        state.asked,
        state.seen,
        state.called,
    )
    state.walked.held = {name: slot[0] for name, slot in outermost.every.items()}
    state.guarded.begin(names, state.walked)
    return names


def _note_flagged(state: State) -> None:
    """Note what those `try` statements use whose outcome a flag tells; other files may ask for it."""
    if state.flagged:
        places = used(state.uses, state.imports)
        for attempt in dict.fromkeys(state.flagged):
            read_attempt(attempt, places)


def _soften_globals(state: State) -> None:
    """A function that rebinds a global name may run before any other: what it holds is not sure."""
    if "global " not in state.source.text:
        return
    every = state.frame.every
    for item in state.queue:
        for name in stored_names(item.local, "global "):
            slot = every.get(name)
            if slot is not None and has_objects(slot[0]):
                every[name] = (unsure(slot[0]), slot[1])
