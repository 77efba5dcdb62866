"""Conditions under which code runs, and whether they show that a place is already taken care of.

Formulas are evaluated with three values: True, False, and None where the test depends on something else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from torchmigrate.patterns import pattern
from torchmigrate.semantics.formulas import (
    All,
    Any_,
    Formula,
    HasName,
    Known,
    Not,
    TryGuard,
    TryWorked,
    VersionTest,
    all_of,
)
from torchmigrate.semantics.guards.version_order import Release, holds
from torchmigrate.semantics.model import Guards
from torchmigrate.semantics.public_names import public_name
from torchmigrate.source.trees import last_name, walk

# ---- evaluation -------------------------------------------------------------------------------------


class Lookup(Struct, frozen=True):
    """What is known of the target.

    version: the target release of a library; (2, 6) means any 2.6.x. None: not known.
    exists: whether a qualified name exists there. worked: whether the body of a `try` runs to its end.
    """

    version: Callable[[str], Release | None]
    exists: Callable[[str], bool | None]
    worked: Callable[[TryGuard], bool | None]


def outcome(formula: Formula, lookup: Lookup) -> bool | None:
    """Whether `formula` holds at the target; None if unknown."""
    if isinstance(formula, VersionTest):
        target = lookup.version(formula.library)
        return None if target is None else holds(formula.op, formula.part, formula.version, target)
    if isinstance(formula, HasName):
        return lookup.exists(formula.qualified)
    if isinstance(formula, TryWorked):
        return lookup.worked(formula.attempt)
    if isinstance(formula, Not):
        inner = outcome(formula.formula, lookup)
        return None if inner is None else not inner
    if isinstance(formula, Known):
        return formula.value
    if isinstance(formula, (All, Any_)):
        decisive = isinstance(formula, Any_)  # one True settles an Any_, one False an All
        answers = {outcome(part, lookup) for part in formula.parts}
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive
    return None


_LATER = 10**6  # the number of a release that is newer than all


def lower_bound(formula: Formula) -> Formula:
    """That part of a formula which holds on every release from some one on; `TRUE` if there is none."""
    lookup = Lookup(lambda _: (_LATER, _LATER), lambda _: None, lambda _: None)
    parts = formula.parts if isinstance(formula, All) else (formula,)
    return all_of(part for part in parts if outcome(part, lookup) is True)


# ---- is a place taken care of? ----------------------------------------------------------------------

# The release of its own library from which a name that people test for surely exists (earlier: unknown).
_EXISTS_SINCE: dict[str, Release] = {
    **dict.fromkeys(
        (
            "torch.amp",
            "torch.amp.autocast",
            "torch.ao",
            "torch.ao.quantization",
            "torch.autocast",
            "torch.backends.mps",
            "torch.compile",
            "torch.complex",
            "torch.cuda.amp",
            "torch.cuda.amp.GradScaler",
            "torch.cuda.amp.autocast",
            "torch.distributed.all_gather_into_tensor",
            "torch.distributed.fsdp",
            "torch.distributed.reduce_scatter_tensor",
            "torch.fft",
            "torch.func",
            "torch.inference_mode",
            "torch.linalg",
            "torch.nn.functional.scaled_dot_product_attention",
            "torch.nn.functional.silu",
            "torch.nn.utils.parametrizations",
            "torch.nn.utils.parametrize",
            "torch.nn.utils.stateless",
            "torch.no_grad",
            "torch.optim.lr_scheduler.LRScheduler",
            "torch.set_default_device",
            "torch.set_float32_matmul_precision",
            "torch.special",
            "torch.testing.assert_close",
            "torch.use_deterministic_algorithms",
            "torch.view_as_complex",
            "torch.view_as_real",
            "torch.vmap",
        ),
        (2, 0),
    ),
    "torch.compiler": (2, 1),
    "torch.export": (2, 1),
    "torch.amp.GradScaler": (2, 3),
    "torch.nn.attention": (2, 3),
    "torch.amp.custom_bwd": (2, 4),
    "torch.amp.custom_fwd": (2, 4),
    "torch.serialization.add_safe_globals": (2, 4),
    "torch.serialization.safe_globals": (2, 5),
    "torchvision.transforms.InterpolationMode": (0, 10),
    "torchvision.transforms.v2": (0, 16),
}
# A test for one of these is about an optional dependency, not about a version of torch.
_OPTIONAL_PACKAGES = frozenset(("apex", "functorch"))


def is_handled(
    guards: Guards,
    *,
    target: Callable[[str], Release | None],
    old: Iterable[str],
    new: Iterable[str],
    exists: Callable[[str], bool | None] | None = None,
    arguments: Arguments | None = None,
) -> bool:
    """Whether a use of `old` under these guards is none of the target's business.

    It is where the code does not run at the target, where it is the other side of a `try` that uses one
    of `new`, or where the code first asks whether the old name is there.

    target: the release of a library that is aimed at, (2, 6) for any 2.6.x, None where it is not known.
    old, new: qualified names of what is used and of what replaces it (modules stand for their members).
    exists: whether a name, as in `HasName`, exists at the target, for those that the guards know nothing
    about. arguments: where only the arguments of a call of `old` are outdated.
    """
    if guards.formula is None and guards.attempt is None and guards.outer is None:
        return False
    wanted = frozenset(new)
    lookup = _lookup(wanted, target, exists)
    tested = frozenset(
        name for name in old if name.partition(".")[0] not in _OPTIONAL_PACKAGES and not lookup.exists(name)
    )

    def takes_care(guard: Guards) -> bool:
        if guard.formula is not None and (
            outcome(guard.formula, lookup) is False or _asserts(guard.formula, tested)
        ):
            return True
        attempt = guard.attempt
        if attempt is None:
            return False
        for part in _OTHER_SIDE.get(guard.part, ()):
            if (uses_one_of(attempt.names.get(part, ()), wanted) and _reaches(guard, arguments)) or (
                arguments is not None and arguments.differ(attempt.calls.get(part, ()))
            ):
                attempt.about_releases = True
                return True
        return guard.part == "handler" and _imports_work(attempt, lookup.exists)

    return any_outwards(guards, (target, exists, tested, wanted, arguments), takes_care)


def any_outwards(guards: Guards, question: object, holds_at: Callable[[Guards], bool]) -> bool:
    """Whether something holds at one of the guards of a place.

    A thousand early returns make a thousand guards around each other: the answer is kept at each of them.

    Args:
        question: a key for `holds_at`, different from the keys of all other questions about guards.
    """
    asked: list[Guards] = []
    found: bool | None = None
    for guard in _outwards(guards):
        if guard.formula is None and guard.attempt is None:
            continue
        found = None if guard.answers is None else guard.answers.get(question)
        if found is None:
            asked.append(guard)
            found = holds_at(guard) or None
        if found is not None:
            break
    for guard in asked:
        if guard.answers is None:
            guard.answers = {}
        guard.answers[question] = bool(found)
    return bool(found)


def is_excluded(
    formula: Formula,
    target: Callable[[str], Release | None],
    exists: Callable[[str], bool | None],
) -> bool:
    """Whether what runs under a test does not run at the target."""
    return outcome(formula, _lookup(frozenset(), target, exists)) is False


def surely_runs(
    guards: Guards,
    outer: Guards,
    *,
    target: Callable[[str], Release | None],
    new: Iterable[str],
    exists: Callable[[str], bool | None] | None = None,
) -> bool:
    """Whether code under `guards` runs at the target wherever code under `outer` does.

    The parameters are those of `is_handled`. The body of a `try` runs if it uses one of `new`.
    """
    wanted = frozenset(new)
    lookup = _lookup(wanted, target, exists)
    for guard in _outwards(guards):
        if guard is outer:
            return True
        if guard.formula is not None and outcome(guard.formula, lookup) is not True:
            return False
        if guard.attempt is not None and not (guard.part == "body" and lookup.worked(guard.attempt) is True):
            return False
    return False


def _lookup(
    wanted: frozenset[str],
    target: Callable[[str], Release | None],
    exists: Callable[[str], bool | None] | None,
) -> Lookup:
    def name_exists(name: str) -> bool | None:
        name = public_name(name)
        if name in wanted or any(other.startswith(name + ".") for other in wanted):
            return True
        since, release = _EXISTS_SINCE.get(name), target(name.partition(".")[0])
        if since and release and release >= since:
            return True
        return exists(name) if exists else None

    def worked(attempt: TryGuard) -> bool | None:
        if any(exists(public_name(name)) is False for name in attempt.always) if exists else False:
            return False
        used = attempt.names.get("body", set()) | attempt.names.get("else", set())
        if uses_one_of(used, wanted):
            return True
        return True if used & _EXISTS_SINCE.keys() and all(map(name_exists, used)) else None

    return Lookup(target, name_exists, worked)


class Arguments(Struct, frozen=True):
    """A use whose arguments alone are outdated.

    functions: its qualified names. given: the keywords of the call. outdated: the parameters that are old or
    new, so that a call of the same function on the other side of a `try` which gives others of them is what
    runs on the other releases.
    """

    functions: frozenset[str]
    given: frozenset[str]
    outdated: frozenset[str]

    def differ(self, calls: Iterable[tuple[str, frozenset[str]]]) -> bool:
        """Whether one of these calls of the same function gives others of the parameters."""
        mine = self.given & self.outdated
        return any(
            public_name(name) in self.functions and (keys & self.outdated != mine or "**" in keys)
            for name, keys in calls
        )


# ---- handlers ---------------------------------------------------------------------------------------


class Missing(Struct, frozen=True):
    """What is raised where a module, a name or a parameter is not there.

    named: the errors that mean nothing else. broad: those of other failures, too; a handler of them is
    there for the missing name only if the `try` shows it. Removed functions often stay for a while as ones
    that raise a RuntimeError.
    """

    named: frozenset[str]
    broad: frozenset[str]


_ANYTHING = frozenset(("Exception", "BaseException"))
MISSING_IMPORT = Missing(frozenset(("ImportError", "ModuleNotFoundError")), _ANYTHING)
MISSING_NAME = Missing(
    frozenset(("AttributeError", "NameError")), _ANYTHING | {"NotImplementedError", "RuntimeError"}
)
MISSING_ARGUMENT = Missing(frozenset(), _ANYTHING | {"RuntimeError", "TypeError"})


def caught_by(handler: ast.ExceptHandler) -> frozenset[str]:
    """The names of the exceptions that a handler is for; a bare `except:` catches any `BaseException`."""
    if handler.type is None:
        return frozenset(("BaseException",))
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return frozenset(kind.id if isinstance(kind, ast.Name) else getattr(kind, "attr", "") for kind in kinds)


def ends_in_error(body: list[ast.stmt]) -> bool:
    """Whether a handler ends in another error, or in the end of the program."""
    last = body[-1]
    if isinstance(last, ast.Raise):
        return True
    call = last.value if isinstance(last, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("exit", "quit", "_exit", "fail")


def survives(guards: Guards, missing: Missing) -> bool:
    """Whether code that surely fails for what is missing stands in a `try` that goes on without it."""

    def goes_on(guard: Guards) -> bool:
        if guard.attempt is None or guard.part != "body":
            return False
        attempt = guard.attempt
        for handler in attempt.node.handlers:
            if is_about(attempt, handler, missing):
                attempt.about_releases = True
                return not ends_in_error(handler.body)
        return False

    return any_outwards(guards, ("survives", missing), goes_on)


def is_about(attempt: TryGuard, handler: ast.ExceptHandler, missing: Missing) -> bool:
    """Whether a handler is there for what is missing, and not for whatever else fails in the body.

    `except RuntimeError:` around a decomposition is there for singular matrices, unless it asks for the
    release or reads the message, or nothing else in the body can fail.
    """
    caught = caught_by(handler)
    if caught & missing.named:
        return True
    if not caught & missing.broad:
        return False
    body = attempt.node.body
    if missing is MISSING_IMPORT:
        return _is_short(body)
    return attempt.asks or (_is_short(body) and not _computes(body)) or _reads_message(handler)


# Functions that only look something up.
_LOOK_UPS = frozenset(("getattr", "hasattr", "import_module", "__import__"))


def _computes(body: list[ast.stmt]) -> bool:
    """Whether a block does more than to look up and bind names."""
    return any(
        isinstance(node, (ast.BinOp, ast.Subscript, ast.Await))
        or (isinstance(node, ast.Call) and last_name(node.func) not in _LOOK_UPS)
        for statement in body
        for node in walk(statement)
    )


# What messages about missing names and arguments say, and those about numbers and dtypes do not.
_OF_ABSENCE = pattern(
    r"attribute|removed|deprecat|no longer|cannot import|no module|not defined"
    r"|unexpected keyword|(?:keyword|positional|required) argument",
    re.IGNORECASE,
)
_KINDS_OF_ABSENCE = MISSING_IMPORT.named | MISSING_NAME.named
_SEARCHES = frozenset("startswith endswith find index count search match fullmatch findall".split())


def _reads_message(handler: ast.ExceptHandler) -> bool:
    """Whether a handler asks if its error is about a missing name: `if "no attribute" in str(error)`."""
    return any(
        (isinstance(node, ast.Constant) and isinstance(node.value, str) and _OF_ABSENCE.search(node.value))
        or (isinstance(node, ast.Name) and node.id in _KINDS_OF_ABSENCE)
        for statement in handler.body
        for asked in walk(statement)
        for part in _asked(asked)
        for node in walk(part)
    )


def _asked(node: ast.AST) -> Iterator[ast.AST]:
    """What a node asks, if it is a test."""
    if isinstance(node, (ast.If, ast.IfExp)):
        yield node.test
    elif isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and last_name(node.func) in _SEARCHES):
        yield node


_SHORT = 3  # statements, apart from imports and constants: longer blocks fail for other reasons too


def _is_short(body: list[ast.stmt]) -> bool:
    """Whether a block is a few simple statements."""
    rest = [
        node
        for node in body
        if not isinstance(node, (ast.Import, ast.ImportFrom))
        and not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant))
    ]
    return len(rest) <= _SHORT and all(
        isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return)) for node in rest
    )


def _reaches(guard: Guards, arguments: Arguments | None) -> bool:
    """Whether the other side of a `try` is there for releases that lack what this side uses."""
    attempt = guard.attempt
    if attempt is None or guard.part == "handler":
        return True  # the new name is there, so that the body does not fail for lack of it
    if arguments is not None or any(
        isinstance(node, (ast.Import, ast.ImportFrom)) for node in attempt.node.body
    ):
        return True
    return any(caught_by(handler) - MISSING_IMPORT.named for handler in attempt.node.handlers)


def _imports_work(attempt: TryGuard, exists: Callable[[str], bool | None]) -> bool:
    """Whether a `try` does nothing but import what the target has, so that its handlers do not run."""
    used = attempt.names.get("body", set())
    only_imports = all(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in attempt.node.body)
    return bool(used) and only_imports and all(map(exists, used))


# What runs instead of a part of a `try`: body and else belong together.
_OTHER_SIDE = {"body": ("handler",), "else": ("handler",), "handler": ("body", "else")}


def _outwards(guards: Guards) -> Iterator[Guards]:
    level: Guards | None = guards
    while level is not None:
        yield level
        level = level.outer


def uses_one_of(used: Iterable[str], wanted: frozenset[str]) -> bool:
    """Whether one of the used names is wanted, or is in a wanted module, or imports its module."""
    return any(_is_one_of(name, wanted) for name in used)


@lru_cache(maxsize=65_536)
def _is_one_of(spelled: str, wanted: frozenset[str]) -> bool:
    name = public_name(spelled)
    if name in wanted or any(name.startswith(other + ".") for other in wanted):
        return True
    # Only for modules that came late: importing `torch.nn` says nothing.
    return name in _EXISTS_SINCE and any(other.startswith(name + ".") for other in wanted)


def _asserts(formula: Formula, names: frozenset[str]) -> bool:
    """Whether the formula can only hold where one of `names` exists."""
    if isinstance(formula, HasName):
        return formula.qualified in names or public_name(formula.qualified) in names
    if isinstance(formula, All):
        return any(_asserts(part, names) for part in formula.parts)
    if isinstance(formula, Any_):
        return all(_asserts(part, names) for part in formula.parts)
    return False
