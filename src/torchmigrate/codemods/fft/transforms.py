"""TM149-TM153: the old Fourier transforms of torch, and `stft` and `istft` on real tensors.

All transforms in a function are rewritten together or not at all. What always can be done keeps the layout:
`view_as_complex` around what goes in, `view_as_real` around what comes out. Where every use of the results is
understood, and unsafe fixes are wanted, the function computes with complex tensors throughout.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.fft.calls import Transform, halves, new_call, read
from torchmigrate.codemods.fft.complex import PARTS, ComplexForm
from torchmigrate.codemods.fft.helpers import Helpers
from torchmigrate.codemods.fft.inputs import as_complex, measure
from torchmigrate.codemods.fft.layouts import Layouts, Local, only_argument
from torchmigrate.codemods.fft.model import Escapes, Layout
from torchmigrate.codemods.fft.shapes import last_part
from torchmigrate.codemods.fft.symmetry import Spectra
from torchmigrate.codemods.fft.variables import idle, mixed, unread
from torchmigrate.findings import Applicability, DroppedUse, Edit, Finding, Fix, Obstacle, Reason, because
from torchmigrate.match.context import CannotFix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import Part, code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.expressions import ExpressionEdits
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.lines import is_alone, remove_statements
from torchmigrate.rewrite.statements import removed
from torchmigrate.semantics.model import Binding, Role, Scope
from torchmigrate.versions.range import applicability, required

CODES = frozenset(["TM149", "TM150", "TM151", "TM152", "TM153"])
_PLAN = "fft"
_MOST_ROUNDS = 50
_OTHER_CLASS = because("the object may have another class")
_OTHER_CALLS = because("other callers may pass a complex tensor")
_NOT_SYMMETRIC = because(
    "the old `irfft` gave other numbers for a spectrum that is not that of a real signal of this size, "
    "such as one with learned weights or a mask"
)
_ONE_HALF = because(
    "only the first half of the spectrum counts, as before, but the old `irfft` gave gradients to the other "
    "half as well"
)
_WHY_COMPLEX = "complex tensors replace pairs: rounding, and gradients where a number is zero, may differ"
_TRY_UNSAFE = Reason(Obstacle.UNSAFE, "uses complex tensors throughout")
_Body = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


class Rewriting(Struct, frozen=True):
    """One way to rewrite a group."""

    edits: list[Edit] = field(default_factory=list)
    level: Applicability = Applicability.SAFE
    held_by: tuple[Reason, ...] = ()
    title: str = ""


class TransformGroup(Struct):
    """The transforms of one kind in one function, class body or module.

    problem: why nothing is rewritten. plain, whole: the rewriting in the real layout, and that with complex
    tensors throughout, where there is one.
    """

    scope: Scope
    hits: list[RuleMatch] = field(default_factory=list)
    problem: tuple[Reason, ...] = ()
    plain: Rewriting | None = None
    whole: Rewriting | None = None

    def users(self, binding: Binding | None) -> int:
        """How many of the hits are uses of an import."""
        return sum(hit.use.binding is binding for hit in self.hits)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The findings of one of the rules; all of them are planned together, once."""
    if not hits:
        return
    done = file.once(
        _PLAN, lambda: TransformPlan([hit for hit in file.hits if hit.rule.code in CODES], file).done
    )
    for hit in hits:
        if id(hit) not in done.silent:
            fix, blocked_by = done.of.get(id(hit), (None, ()))
            yield replace(file.fixes.finding(hit, fix), blocked_by=blocked_by)


class Outcomes(Struct):
    """The result for every hit of a file: by id() its fix, and why there is no other.

    silent: hits that are nothing to report.
    """

    of: dict[int, tuple[Fix | None, tuple[Reason, ...]]] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)


class TransformPlan:
    """Plan the rewriting of the hits of a file."""

    def __init__(self, hits: Sequence[RuleMatch], file: FileContext) -> None:
        self.file = file
        self.around = file.around
        self.done = Outcomes()
        self.transforms: dict[ast.AST, Transform] = {}
        self._problems: dict[int, Unclear] = {}
        groups: dict[tuple[int, bool], TransformGroup] = {}
        imports = [hit for hit in hits if hit.use.role is Role.IMPORT]
        for hit in hits:
            if hit.use.role is not Role.IMPORT:
                scope = _scope(hit.use.scope)
                key = id(scope), hit.name.endswith("stft")
                groups.setdefault(key, TransformGroup(scope)).hits.append(hit)
                try:
                    transform = self._read(hit)
                    self.transforms[transform.call] = transform
                except Unclear as error:
                    self._problems[id(hit)] = Unclear(str(error), line=error.line)  # without a traceback
        self.layouts = Layouts(file.flow, self.transforms, Helpers(file.flow))
        self.spectra = Spectra(self.layouts)
        for group in groups.values():
            try:
                self._plan(group)
            except Unclear as error:
                said = f"not rewritten: {error}"
                group.problem = because(said, line=error.line)
        self._share([group for group in groups.values() if group.hits], imports)

    # ---- fixes ---------------------------------------------------------------------------------------------

    def _share(self, groups: list[TransformGroup], imports: list[RuleMatch]) -> None:
        """One fix for each group, or for several that use one import which goes with them."""
        sets: list[tuple[list[TransformGroup], list[RuleMatch]]] = [([group], []) for group in groups]
        for hit in imports:
            binding = hit.use.binding
            mine = [item for item in sets if any(group.users(binding) for group in item[0])]
            together = [group for item in mine for group in item[0]]
            users = sum(group.users(binding) for group in together)
            if binding is None or not mine or users != len(binding.uses):
                continue
            if any(group.problem for group in together):
                continue
            lines = [hit, *(line for item in mine for line in item[1])]
            sets = [item for item in sets if not any(item is other for other in mine)]
            sets.append((together, lines))
        for found, lines in sets:
            self._fix(found, lines)

    def _fix(self, groups: list[TransformGroup], imports: list[RuleMatch]) -> None:
        fix: Fix | None = None
        hits = [hit for group in groups for hit in group.hits]
        if not any(group.problem for group in groups):
            releases: tuple[DroppedUse, ...] = tuple(
                dict.fromkeys(item for hit in hits for item in self.file.imports.releases(hit.use))
            )
            needs = {item for hit in hits for item in required(hit.rule.cases[0], hit.rule)}

            def made(chosen: list[Rewriting]) -> Fix:
                worst = min(chosen, key=lambda item: item.level)
                edits = tuple(dict.fromkeys(edit for item in chosen for edit in item.edits))
                return self.file.fixes.fix(
                    hits[0].rule, worst.title, worst.level, worst.held_by, edits, releases, needs
                )

            whole = [group.whole or group.plain or Rewriting() for group in groups]
            offered = any(group.whole is not None for group in groups)
            if offered and self.file.settings.promotes(hits[0].rule.code):
                fix, offered = made(whole), False
            else:
                fix = made([group.plain or Rewriting() for group in groups])
                fix = replace(fix, unsafe=made(whole)) if offered else fix
            for group in groups:
                more = (_TRY_UNSAFE,) if offered and group.whole is not None else ()
                self.done.of.update((id(hit), (fix, more)) for hit in group.hits)
        else:
            for group in groups:
                self.done.of.update((id(hit), (None, group.problem)) for hit in group.hits)
        self.done.of.update((id(hit), (fix, ())) for hit in imports)

    # ---- one group -----------------------------------------------------------------------------------------

    def _plan(self, group: TransformGroup) -> None:
        node = group.scope.node
        assert isinstance(node, _Body), "the scope of a group has statements"
        arguments = node.args if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
        self._leave_complex(group)
        for hit in group.hits:
            if id(hit) in self._problems:
                line = self.file.source.position(hit.use.start)[0]
                raise Unclear(f"line {line}: {self._problems[id(hit)]}", line=line)
        calls = [hit.use.call for hit in group.hits if hit.use.call is not None]
        transforms: dict[ast.AST, Transform] = {call: self.transforms[call] for call in calls}
        if not transforms:
            return
        layouts = Local(self.layouts, node, transforms)
        direct = self._direct(transforms, layouts)
        complex_edits, parts = self._complex(node, transforms, layouts)
        real = parts > 0 or _surely_real(transforms)
        level, held_by = min((self._level(hit.rule, real) for hit in group.hits), key=lambda item: item[0])
        if level >= Applicability.UNSAFE and any(map(_may_be, group.hits)):
            level, held_by = Applicability.UNSAFE, (*held_by, *_OTHER_CLASS)
        given = [item.input for item in transforms.values() if item.kind == "istft"]
        closed = all(self.layouts.is_only(item, Layout.PAIR) for item in given)
        if level >= Applicability.UNSAFE and not closed:
            level, held_by = Applicability.UNSAFE, (*held_by, *_OTHER_CALLS)
        inexact = [item for item in transforms.values() if not self.spectra.is_exact(item)]
        if level >= Applicability.UNSAFE and inexact:
            why = _ONE_HALF if all(map(halves, inexact)) else _NOT_SYMMETRIC
            level, held_by = Applicability.UNSAFE, (*held_by, *why)
        title = "Add `torch.view_as_complex` and `torch.view_as_real` around the transform"
        group.plain = Rewriting(direct, level, held_by, title)
        if complex_edits is None or set(complex_edits) == set(direct) or arguments is None:
            return  # what a module or class computes may be read from elsewhere
        if level >= Applicability.UNSAFE:
            by_release = held_by if level is Applicability.UNSAFE else ()
            why = by_release or because(_WHY_COMPLEX)
            group.whole = Rewriting(complex_edits, Applicability.UNSAFE, why, "Compute with complex tensors")

    def _level(self, rule: Rule, real: bool) -> tuple[Applicability, tuple[Reason, ...]]:
        """How safe a call is to rewrite; real: what it transforms surely is real."""
        case = rule.cases[0]
        if real:
            case = replace(case, applicability=Applicability.SAFE, reason=None)
        return applicability(case, rule, self.file.versions)

    def _read(self, hit: RuleMatch) -> Transform:
        if not self.file.fixes.may_fix(hit) and not _may_be(hit):
            raise Unclear("the called function is not certain")
        return read(hit, self.file.source)

    def _leave_complex(self, group: TransformGroup) -> None:
        """Of `istft`, only those calls are outdated whose argument surely is real: it holds pairs."""
        for hit in list(group.hits):
            if not hit.name.endswith("istft"):
                continue
            call = hit.use.call
            transform = self.transforms.get(call) if call is not None else None
            value = transform.input if transform else call.args[0] if call and call.args else None
            if value is None or not self.layouts.is_surely(value, Layout.PAIR):
                group.hits.remove(hit)
                self.done.silent.add(id(hit))

    def _direct(self, transforms: dict[ast.AST, Transform], layouts: Local) -> list[Edit]:
        """Rewrite every call on its own, so that nothing else has to change."""
        rewriting = ExpressionEdits(self.file.source)
        spelled: dict[Edit, None] = {}
        inner = {
            item.input
            for item in transforms.values()
            if item.takes_pairs and item.input in transforms and transforms[item.input].gives_pairs
        }
        for transform in transforms.values():
            try:
                self._keep_layout(transform, layouts, rewriting, inner, spelled)
            except Unclear as error:
                raise Unclear(f"line {transform.call.lineno}: {error}", line=transform.call.lineno) from None
        try:
            return [*rewriting.edits(), *spelled]
        except CannotFix as error:
            raise Unclear(str(error)) from None

    def _keep_layout(
        self,
        transform: Transform,
        layouts: Local,
        rewriting: ExpressionEdits,
        inner: set[ast.expr],
        spelled: dict[Edit, None],
    ) -> None:
        """Rewrite one call; inner: those whose result goes right into another transform."""

        def spell(name: str) -> str:
            return self._spell(transform, name, spelled)

        node = transform.input
        value: Part = node
        if transform.takes_pairs and node not in inner:
            real = isinstance(node, ast.Call) and self.around.qualified(node.func) == "torch.view_as_real"
            given = only_argument(node) if real and isinstance(node, ast.Call) else None
            if given is not None:
                value = given
            else:
                value = as_complex(node, layouts, spell("torch.view_as_complex"))
        exact = self.spectra.is_exact(transform)
        call = new_call(transform, value, measure(node, layouts, 1), exact, spell, self.file.source)
        outer = layouts.parents.get(transform.call)
        part = layouts.part_of(outer) if isinstance(outer, ast.Subscript) else None
        if part is not None and isinstance(outer, ast.Subscript) and last_part(outer):
            rewriting.put(outer, code("$call.$part", call=call, part=PARTS[part.index]))
            return
        if transform.gives_pairs and transform.call not in inner:
            call = code("$f($call)", f=spell("torch.view_as_real"), call=call)
        rewriting.put(transform.call, call)

    def _complex(
        self, node: _Body, transforms: dict[ast.AST, Transform], layouts: Local
    ) -> tuple[list[Edit] | None, int]:
        """The edits that make pairs complex (None: it cannot be), and how many parts are read if all are."""
        first = next(iter(transforms.values()))
        for _ in range(_MOST_ROUNDS):
            rewriting = ExpressionEdits(self.file.source)
            spelled: dict[Edit, None] = {}
            form = ComplexForm(
                layouts,
                self.spectra,
                rewriting,
                lambda item, name, held=spelled: self._spell(item or first, name, held),  # type: ignore[misc]
            )
            try:
                form.block(node.body)
            except Escapes as error:
                more = set(error.definitions) - layouts.refused
                if not more:
                    return None, 0
                layouts.refuse(more)
                continue
            except Unclear:
                return None, 0
            without = idle(form, layouts)
            if not without:
                if mixed(node, layouts):
                    return None, 0
                gone = unread(form, layouts.variables)
                edits, spans = self._removed(gone)
                try:
                    return [*rewriting.edits(without=spans), *edits, *spelled], 0 if form.kept else form.parts
                except CannotFix:
                    return None, 0
            layouts.refuse(without)
        return None, 0

    def _removed(self, statements: list[ast.stmt]) -> tuple[list[Edit], list[tuple[int, int]]]:
        """Edits that take statements away, and where they stood."""
        source = self.file.source
        blocks: dict[int, tuple[list[ast.stmt], list[ast.stmt]]] = {}
        for item in statements:
            block = self.file.flow.index.block_of(item) or []
            blocks.setdefault(id(block), (block, []))[1].append(item)
        edits: list[Edit] = []
        spans: list[tuple[int, int]] = []
        for block, gone in blocks.values():
            if len(gone) == len(block):
                return [], []  # one of them may read what another one makes
            alone = [item for item in gone if is_alone(source, block, item)]
            shared = [item for item in gone if item not in alone]
            edits += removed(self.file.rewriting(), alone)
            edits += remove_statements(source, block, shared, module=False)
            spans += [source.span(item) for item in gone]
        return edits, spans

    def _spell(self, transform: Transform, name: str, edits: dict[Edit, None]) -> str:
        spelling = self.file.imports.spell(name, transform.hit.use)
        if isinstance(spelling, Refusal):
            raise Unclear(spelling.reason)
        edits.update(dict.fromkeys(spelling.edits))
        return spelling.text


def _scope(scope: Scope) -> Scope:
    """The function, class or module whose statements a place is among."""
    while not isinstance(scope.node, _Body) and scope.parent is not None:
        scope = scope.parent
    return scope


def _may_be(hit: RuleMatch) -> bool:
    """Whether it is a method called as only a tensor's is, of an object that may be something else."""
    return hit.use.method and not hit.use.sure


def _surely_real(transforms: dict[ast.AST, Transform]) -> bool:
    """Whether every `stft` is one of a real signal: of a complex one there is no one-sided transform."""
    return all(
        isinstance(value := item.value("onesided"), ast.Constant) and value.value is True
        for item in transforms.values()
        if item.kind == "stft" and item.value("return_complex") is None
    )
