"""What the walk of a file has found so far, and where it is: shared by all of its parts."""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from torchmigrate.semantics.formulas import TryGuard
from torchmigrate.semantics.guards.maker import GuardMaker
from torchmigrate.semantics.guards.peeking import Peeking, Walked
from torchmigrate.semantics.model import REFERENCE, Binding, Operation, Scope, Use, Value
from torchmigrate.semantics.values.frames import Deferred, Frame

if TYPE_CHECKING:
    from torchmigrate.evidence.kinds import Seen

FSTRINGS_HAVE_PLACES = sys.version_info >= (3, 12)

# What says where the walk is.
_PLACE = (
    "frame", "block", "statement", "role", "conditional", "type_checking", "tries", "branch_test",
    "string_base", "fstring", "nested", "uncertain",
)  # fmt: skip


class SourceLike(Protocol):
    """The part of `Source` that the walk needs."""

    text: str

    def offset(self, line: int, column: int) -> int: ...


class State(Peeking):
    """The state of one walk.

    The walk is one object, of a class that is written in layers, a module each: names, results, chains,
    calls, expressions, statements, definitions, blocks. Lower layers call `eval`, `visit_block` and
    `visit_body` of higher ones, because an attribute may be one of any expression, and a call may be of a
    function that is not walked yet.

    Args:
        source: the text, and the way from `ast` places to offsets.
        roots: top-level packages whose names are recorded.
        given: what names are that are imported from other files of the project.
    """

    __slots__ = (
        "asked",
        "bases",
        "bindings",
        "block",
        "branch_test",
        "called",
        "called_now",
        "classes",
        "conditional",
        "depth",
        "exports",
        "flagged",
        "frame",
        "fstring",
        "given",
        "guarded",
        "has_walrus",
        "imports",
        "imports_torch",
        "lazy",
        "lookalikes",
        "module_done",
        "nested",
        "operations",
        "other_star",
        "queue",
        "returned",
        "returns",
        "role",
        "roots",
        "scopes",
        "seen",
        "setups",
        "source",
        "stars",
        "statement",
        "string_base",
        "tries",
        "type_checking",
        "uncertain",
        "unknown_star",
        "uses",
        "values",
        "waiting",
        "walked",
    )

    def __init__(
        self, source: SourceLike, roots: frozenset[str], given: Mapping[str, Value] | None = None
    ) -> None:
        self.source = source
        self.roots = roots
        self.given = given or {}
        # What is found.
        self.uses: list[Use] = []
        self.values: dict[int, Value] = {}
        self.operations: list[Operation] = []
        self.bindings: list[Binding] = []
        self.imports: list[Binding] = []  # those of them that imports are, without star imports
        self.scopes: list[Scope] = []
        self.exports: set[str] = set()
        self.called: set[str] = set()  # last names of what is called
        self.asked: list[ast.expr] = []  # tests, decorators, and what is assigned and may be one of them
        self.walked = Walked(source.text)
        self.bases = self.walked.bases  # chains are what there is most of
        self.flagged: list[TryGuard] = []  # `try` statements that decide what a flag says
        self.guarded = GuardMaker()
        self.seen: dict[int, tuple[Seen, ...]] = {}  # of expressions, where the file was recorded
        self.stars: list[tuple[str, int]] = []  # star-imported modules of the file, and where
        self.unknown_star = False
        self.other_star = False  # of a module that belongs to no library
        self.imports_torch = False
        self.lookalikes = False  # the file imports a library whose tensors have torch's methods
        self.lazy = False  # or lazy matrices
        self.has_walrus = ":=" in source.text
        self.classes = self.walked.classes
        self.returned: dict[ast.AST, Value] = {}  # of functions that were walked: what their bodies return
        self.returns: dict[ast.AST, Value] = {}  # of functions, as far as it was computed
        self.queue: deque[Deferred] = deque()  # functions whose bodies are to be walked
        self.waiting: dict[ast.AST, Deferred] = {}  # those that have not been
        self.depth = 0  # functions that are walked one within the other
        self.setups = 0  # those of them that put on `self` what other methods find there
        self.module_done = False
        # Where the walk is.
        self.frame: Frame
        self.block: list[ast.stmt] = []
        self.statement: ast.stmt = ast.Pass()
        self.role = REFERENCE  # what a name is used for by default
        self.conditional = 0  # depth of if, try and loops around the statement
        self.type_checking = 0
        self.tries: list[tuple[TryGuard, str]] = []
        # The test of the `if` that alone decides whether this block runs, and what has to come out of it.
        self.branch_test: tuple[ast.expr, bool] | None = None
        self.string_base: int | None = None  # offset of a string annotation that is being read
        self.fstring: ast.JoinedStr | None = None
        self.uncertain = 0  # depth of expressions around this place that need not run
        self.called_now: ast.Call | None = None  # whose function is being evaluated, if that is not a name
        self.nested = 0  # how many conditions are around this place: `a and (b or (c and ...))`

    def eval(self, node: ast.expr) -> Value:
        """What an expression may be."""
        raise NotImplementedError

    def visit_block(self, block: list[ast.stmt]) -> bool:
        """Walk statements in order; whether the end of the block is never reached."""
        raise NotImplementedError

    def visit_body(self, item: Deferred) -> None:
        """Walk the body of a function."""
        raise NotImplementedError

    def leave(self) -> tuple[object, ...]:
        """Leave this place for the body of another function; what `resume` needs to come back."""
        place = tuple(getattr(self, name) for name in _PLACE)
        self.role, self.type_checking, self.tries, self.branch_test = REFERENCE, 0, [], None
        self.string_base, self.fstring, self.nested, self.uncertain = None, None, 0, 0
        return place

    def resume(self, place: tuple[object, ...]) -> None:
        """Come back to a place."""
        for name, value in zip(_PLACE, place, strict=True):
            setattr(self, name, value)

    def offset(self, node: ast.AST) -> int:
        """Where a node begins."""
        if self.string_base is not None:
            return self.string_base + node.col_offset  # type: ignore[attr-defined, no-any-return]
        return self.source.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end_offset(self, node: ast.AST) -> int:
        """Where a node ends."""
        if self.string_base is not None:
            return self.string_base + node.end_col_offset  # type: ignore[attr-defined, no-any-return]
        return self.source.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
