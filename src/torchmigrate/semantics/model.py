"""What the resolver says about a file: scopes, bindings, values and uses of library names."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, cast

from msgspec import Struct, field

from torchmigrate.semantics.formulas import UNKNOWN, Formula, TryGuard
from torchmigrate.source.trees import Node, Nodes

if TYPE_CHECKING:
    from torchmigrate.evidence.kinds import Seen


T = TypeVar("T")


class BindingKind(enum.Enum):
    """How a name is bound."""

    IMPORT = "import"  # import a.b [as c]
    FROM_IMPORT = "from-import"  # from a import b [as c]
    STAR_IMPORT = "star-import"
    ASSIGNMENT = "assignment"
    PARAMETER = "parameter"
    DEFINITION = "definition"  # def, class
    DELETION = "deletion"
    OTHER = "other"  # for, with, except, match, walrus, comprehension, type parameter


class Via(str, enum.Enum):
    """By which way a name of a library came to a place."""

    IMPORT = "import"
    ALIAS = "alias"  # t = torch
    STAR = "star"
    GETATTR = "getattr"
    SELF = "self"  # self.f = torch.ger
    METHOD = "method"


_IMPORTS = (BindingKind.IMPORT, BindingKind.FROM_IMPORT)
# For the walk: before Python 3.12 it takes ten times as long to look them up in the class.
ASSIGNMENT, PARAMETER, OTHER = BindingKind.ASSIGNMENT, BindingKind.PARAMETER, BindingKind.OTHER
VIA_IMPORT, VIA_METHOD = Via.IMPORT, Via.METHOD


# ---- values: what an expression may evaluate to, as far as the resolver cares -----------------------
class QualifiedName(Struct, frozen=True):
    """A module, class or function of a library, by its qualified name."""

    name: str
    sure: bool = True  # False: star import, attribute of self, loop-carried
    via: Via = VIA_IMPORT
    receiver: Instance | Items | None = None  # via method: the object, where the result depends on it
    stated: bool = False  # not sure, known from an annotation only
    # The uses from which assignments took it, if all are known: `self.f = torch.ger` under an old release.
    # They tell no two names apart.
    taken: tuple[Use, ...] = ()

    def __eq__(self, other: object) -> bool:
        return other.__class__ is QualifiedName and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.name, self.sure, self.via, self.receiver, self.stated)


class Local(Struct, frozen=True):
    """A function or class of this file."""

    name: str
    node: ast.AST


class Foreign(Struct, frozen=True, eq=False):
    """A function of another file of the project, or such a file.

    evaluate: what an expression in it means there.
    """

    name: str
    node: ast.AST
    evaluate: Callable[[ast.expr], Value]


class Instance(Struct, frozen=True):
    """An object of a library class, or of a class of this file.

    cls: the qualified name, such as `torch.Tensor`; for a class of this file its library base, or "".
    local: that class of this file.
    gives: what calling it gives, as a class, if the arguments that made it tell. stated: not sure, known from
    an annotation only: lists and arrays are passed to such parameters too.
    """

    cls: str
    sure: bool = True
    local: Local | None = None
    gives: str = ""
    stated: bool = False


class Items(Struct, frozen=True):
    """A tuple or list whose elements are known.

    values: each element; if there may be any number of them, what each may be.
    keyed: a dict with those values.
    """

    values: tuple[Value, ...]
    many: bool = False
    keyed: bool = False


class Const(Struct, frozen=True):
    """A literal: str, int, float, bool, None, or a tuple of those; a VersionLiteral for `Version("1.8")`."""

    value: object


class VersionOf(Struct, frozen=True):
    """The version of a library, or a part of it.

    part: "full" (a version object, `torch.__version__`) | "text" (a string) | "parts", "parts1", "parts2" (a
    sequence, such as the first two) | "major" | "minor" | "micro" | "float" (`v[:3]` or its float) |
    "decimal" (float of major.minor) | "digit" (`v[2]`) | "chunks" (`v.split("+")`) | "distribution".
    """

    library: str
    part: str = "full"


class Flag(Struct, frozen=True):
    """The outcome of a test that was assigned to a name."""

    formula: Formula


class Mark(Struct, frozen=True):
    """A decorator: what it marks only runs where the formula holds."""

    formula: Formula


class Parameters(Struct, frozen=True):
    """What lists the parameters of a library function: `inspect.signature(torch.load)`.

    part: "" for all of them, "*" for those with defaults after the star (`__kwdefaults__`), "=" for the
    defaults of those before it (`__defaults__`).
    """

    function: str
    part: str = ""


class Opaque(Struct, frozen=True):
    """Anything else."""


OPAQUE = Opaque()
Candidate = (
    QualifiedName | Instance | Items | Const | VersionOf | Flag | Mark | Parameters | Local | Foreign | Opaque
)
Value = tuple[Candidate, ...]  # every candidate, in a fixed order; empty: not bound at that place


# ---- scopes, bindings, uses -------------------------------------------------------------------------


class Scope(Struct, eq=False):
    """A module, class, function, lambda or comprehension."""

    kind: str  # "module" | "class" | "function" | "comprehension"
    node: ast.AST
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)  # in source order
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)


class Binding(Struct, eq=False):
    """One place where a name is bound."""

    id: int
    name: str
    kind: BindingKind
    scope: Scope
    node: ast.AST  # the ast.alias, target, def, ...
    statement: ast.stmt
    block: list[ast.stmt]  # the statement list that holds `statement`
    target: str | None = None  # imports: the qualified name that the local name means
    module: str | None = None  # imports: the module that the statement names
    conditional: bool = False  # inside if, try, a loop or a function that may not run
    type_checking: bool = False  # inside `if TYPE_CHECKING:`
    guarded: GuardsOf = field(default_factory=lambda: UNGUARDED)
    value: Value = ()  # what it binds, as far as that is known
    uses: list[int] = field(default_factory=list)  # offsets of every name that may load this binding
    exported: bool = False  # in `__all__`, or `import x as x`, or any import of an `__init__.py`
    in_string: bool = False  # used inside a string annotation

    @property
    def is_import(self) -> bool:
        return self.kind in _IMPORTS

    @property
    def guards(self) -> Guards:
        """Under which conditions the statement runs."""
        return self.guarded.of(self.node, self.statement, self.block)


class Role(enum.Enum):
    """In which syntactic place a library name is used."""

    CALL = "call"  # the function of a call
    DECORATOR = "decorator"  # bare decorator; `@f(...)` is CALL
    BASE = "base"  # in a class's bases
    ANNOTATION = "annotation"
    IMPORT = "import"  # an alias of an import statement
    STRING = "string"  # a dotted name in a string: mock.patch("torch.qr")
    REFERENCE = "reference"  # anything else


CALL, ANNOTATION, REFERENCE = Role.CALL, Role.ANNOTATION, Role.REFERENCE  # for the walk, as those of bindings


class Use(Struct, eq=False):
    """A place where a library name is used; the full chain only (`torch.qr`, not also its `torch`)."""

    node: ast.AST  # ast.Name | ast.Attribute | ast.Call (getattr) | ast.alias | ast.Constant
    candidates: tuple[str, ...]  # qualified names it may be, as spelled, in a fixed order
    sure: bool  # exactly one candidate, surely bound here
    role: Role
    start: int  # offsets of the whole expression (of the alias for imports)
    end: int
    statement: ast.stmt
    block: list[ast.stmt]
    scope: Scope
    guarded: GuardsOf
    call: ast.Call | None = None  # the call whose function (or, for getattr, callee) this is
    binding: Binding | None = None  # the sole import binding of the chain's first name
    origins: tuple[Binding, ...] = ()  # every binding that the chain's first name may have come from
    attribute_path: str = ""  # the attributes after that first name, such as "linalg.qr"
    method: bool = False  # an attribute of an Instance: candidates are like "torch.Tensor.symeig"
    in_string: bool = False  # inside a string annotation, or the string itself
    in_fstring: bool = False  # inside an f-string whose inner positions are unreliable (Python < 3.12)
    via: Via = VIA_IMPORT
    stated: bool = False  # not sure, since only an annotation says of what class the object is
    decorates: ast.AST | None = None  # the function or class, when this (or its call) is a decorator
    told: bool = False  # of an object that may be anything: only objects of that class take such a call
    seen: bool = False  # only what was seen while the code ran says that a rule may be about it
    seen_for_fix: bool = False  # or which case of the rule fits
    # Of a candidate that assignments put there, if all of them are known: the uses that they took it from.
    taken: dict[str, tuple[Use, ...]] = field(default_factory=lambda: NOTHING_TAKEN)

    @property
    def guards(self) -> Guards:
        """Under which conditions the place runs."""
        return self.guarded.of(self.node, self.statement, self.block)


NOTHING_TAKEN: dict[str, tuple[Use, ...]] = {}  # of most uses, and never changed


class Guards:
    """Under which conditions a place runs: a linked list, innermost first.

    formula: holds here (already negated for an else branch).
    part: of the attempt: "body" | "handler" | "else".
    around: the next one outside with an attempt.
    answers: to questions about it and all around it.
    """

    __slots__ = ("answers", "around", "attempt", "formula", "outer", "part")

    def __init__(
        self,
        formula: Formula | None = None,
        attempt: TryGuard | None = None,
        part: str = "",
        outer: Guards | None = None,
    ) -> None:
        self.formula = formula
        self.attempt = attempt
        self.part = part
        self.outer = outer
        self.around: Guards | None = outer if outer is None or outer.attempt is not None else outer.around
        self.answers: dict[object, bool] | None = None  # until one is given: there are many guards

    def is_nothing(self) -> bool:
        """Whether the place always runs."""
        return self.formula is None and self.attempt is None and self.outer is None


NO_GUARDS: Guards = Guards()


class GuardsOf(Protocol):
    """What makes the guards of the places of one file, on demand."""

    def of(
        self, node: ast.AST, statement: ast.stmt | None = None, block: list[ast.stmt] | None = None
    ) -> Guards:
        """The guards of a node, or of its statement where the node is not in the tree."""
        ...

    def callers(self, scope: Scope) -> list[Guards]:
        """The guards of every place that may call a private function; none if they are not all known."""
        ...

    def attempt(self, body: list[ast.stmt]) -> TryGuard | None:
        """The `try` with this body, if a handler of it runs where something is missing."""
        ...

    def said(self, test: ast.expr) -> Formula:
        """What a test of the file says of versions and names."""
        ...

    def end(self) -> None:
        """Let go of the file."""


class _Unguarded:
    """Of places that always run."""

    def of(
        self, node: ast.AST, statement: ast.stmt | None = None, block: list[ast.stmt] | None = None
    ) -> Guards:
        return NO_GUARDS

    def callers(self, scope: Scope) -> list[Guards]:
        return []

    def attempt(self, body: list[ast.stmt]) -> TryGuard | None:
        return None

    def said(self, test: ast.expr) -> Formula:
        return UNKNOWN

    def end(self) -> None:
        pass


UNGUARDED: GuardsOf = _Unguarded()


class Operation(NamedTuple):
    """An operator or a subscript, and where it stands."""

    node: ast.BinOp | ast.UnaryOp | ast.Subscript
    scope: Scope
    fstring: ast.JoinedStr | None  # that it is in: where in there, Python does not say before 3.12


class SemanticModel(Struct, eq=False):
    """Everything that the resolver found in one file."""

    tree: ast.Module
    module: Scope
    uses: list[Use]  # in source order
    bindings: list[Binding]  # by id
    imports: list[Binding]  # those of them that imports are, without star imports
    scopes: list[Scope]
    all_names: frozenset[str] = frozenset()  # strings in `__all__`
    values: dict[int, Value] = field(default_factory=dict)  # id of an expression -> what it may be, if known
    operations: list[Operation] = field(default_factory=list)
    guarded: GuardsOf = field(default_factory=lambda: UNGUARDED)
    # Every test and decorator, and what is assigned that may be one.
    asked: list[ast.expr] = field(default_factory=list)
    # id of an expression -> what it was while the code ran, where that was recorded.
    seen: dict[int, tuple[Seen, ...]] = field(default_factory=dict)
    # The last names of all that is called; "==" if a comparison has a known value.
    called: set[str] = field(default_factory=set)
    _nodes: Nodes | None = None
    _by_node: dict[int, Use] | None = None
    _shared: dict[Hashable, object] = field(default_factory=dict)

    def qualified(self, node: ast.AST) -> str | None:
        """The library name that an expression surely is."""
        if self._by_node is None:
            self._by_node = {id(use.node): use for use in self.uses}
        use = self._by_node.get(id(node))
        return use.candidates[0] if use is not None and use.sure else None

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What several look up in the model: made for the first of them, and freed with the model.

        Args:
            key: what it is; the same key always stands for the same kind of thing.
        """
        if key not in self._shared:
            self._shared[key] = make()
        return cast(T, self._shared[key])

    @property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Node -> the one around it, for the whole file."""
        return self._all_nodes.parents

    def nodes(self, kind: type[Node]) -> list[Node]:
        """Every node of the file of one class, those nearer to the module first.

        Codemods ask for these instead of walking the whole tree, which is done once for all of them.
        """
        return self._all_nodes(kind)

    @property
    def _all_nodes(self) -> Nodes:
        if self._nodes is None:
            self._nodes = Nodes(self.tree)
        return self._nodes

    def release(self) -> None:
        """Break the cycles between scopes and bindings, so that all of it is freed without a collection."""
        for scope in self.scopes:
            scope.bindings.clear()
        self.uses.clear()
        self.bindings.clear()
        self.imports.clear()
        self.values.clear()
        self.operations.clear()
        self.asked.clear()
        self.guarded.end()
        self.seen = {}
        self._nodes = self._by_node = None
        self._shared.clear()
