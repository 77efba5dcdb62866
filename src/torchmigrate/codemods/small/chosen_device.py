"""TM968: code that picks "cuda", "mps" or "cpu" by asking for one after the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.nodes import has_comment, replaced
from torchmigrate.versions.range import applicability, required

_ACCELERATOR = "torch.accelerator"
_KINDS = {
    "torch.cuda.is_available": "cuda",
    "torch.backends.mps.is_available": "mps",
    "torch.backends.mps.is_built": "mps",
    "torch.has_mps": "mps",
    "torch.xpu.is_available": "xpu",
}
_DEVICE = "torch.device"
_Chain = Sequence[tuple[ast.expr, ast.expr]]  # tests, and the devices that they choose


class _Choice(Struct, frozen=True):
    """A choice of a device, and the first of the tests that it hangs on.

    node: the conditional expression or statement.
    cpu: what is left if no test holds.
    plain: whether nothing but the tests decides, and every device is just the requested kind.
    """

    node: ast.IfExp | ast.If
    hit: RuleMatch
    cpu: ast.expr | None
    plain: bool
    target: ast.expr | None = None


class _Tests:
    """The tests of a file for a kind of device, also through a variable that is bound once."""

    def __init__(self, file: FileContext, hits: Sequence[RuleMatch]) -> None:
        self._hits = {id(hit.use.call or hit.use.node): hit for hit in hits}
        self._values: dict[str, list[ast.expr]] = {}
        for statement in file.names.nodes(ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    self._values.setdefault(target.id, []).append(statement.value)
        self._parameters = {item.arg for item in file.names.nodes(ast.arg)}

    def by(self, test: ast.expr) -> tuple[RuleMatch | None, bool]:
        """The use that a test asks by, and whether it asks for nothing else."""
        if isinstance(test, ast.Name):
            values = self._values.get(test.id, [])
            return (
                (None, False) if len(values) != 1 or isinstance(values[0], ast.Name) else self.by(values[0])
            )
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            found = [self._hits[id(item)] for item in test.values if id(item) in self._hits]
            alone = all(id(item) in self._hits or _is_hasattr(item) for item in test.values)
            return (found[0] if found else None), alone
        return self._hits.get(id(test)), True


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every choice."""
    if not hits:
        return
    for choice in _choices(file, _Tests(file, hits)):
        span = file.source.span(choice.node)
        if isinstance(choice.node, ast.If):
            span = span[0], file.source.span(choice.node.test)[1]
        yield finding_at(rule, file, span, symbol=choice.hit.symbol, fix=_fix(rule, choice, file))


def _choices(file: FileContext, asks: _Tests) -> Iterator[_Choice]:
    names, inner = file.names, set[int]()
    for expression in names.nodes(ast.IfExp):
        if id(expression) in inner:
            continue
        arms: list[tuple[ast.expr, ast.expr]] = []
        last: ast.expr = expression
        while isinstance(last, ast.IfExp):
            inner.add(id(last))
            arms.append((last.test, last.body))
            last = last.orelse
        choice = _choice(expression, arms, last, None, asks, file)
        if choice is not None:
            yield choice
    for statement in names.nodes(ast.If):
        if id(statement) in inner:
            continue
        arms, block = [], [statement]
        targets: set[str] = set()
        target: ast.expr | None = None
        while len(block) == 1 and isinstance(block[0], ast.If):
            inner.add(id(block[0]))
            given = _given(block[0].body)
            if given is None:
                break
            arms.append((block[0].test, given.value))
            target = given.targets[0]
            targets.add(ast.unparse(target))
            block = block[0].orelse  # type: ignore[assignment]
        else:
            rest = _given(block) if block else None
            if block and rest is None:
                continue
            if rest is not None:
                targets.add(ast.unparse(rest.targets[0]))
            if len(targets) == 1:
                cpu = rest.value if rest is not None else None
                choice = _choice(statement, arms, cpu, target, asks, file)
                if choice is not None:
                    yield choice


def _given(block: Sequence[ast.stmt]) -> ast.Assign | None:
    """The assignment that a block is."""
    only = block[0] if len(block) == 1 else None
    return only if isinstance(only, ast.Assign) and len(only.targets) == 1 else None


def _choice(
    node: ast.IfExp | ast.If,
    arms: _Chain,
    cpu: ast.expr | None,
    target: ast.expr | None,
    asks: _Tests,
    file: FileContext,
) -> _Choice | None:
    """What tests and devices make, if every test asks for the kind of device that it chooses."""
    hit: RuleMatch | None = None
    plain = cpu is not None
    for test, device in arms:
        asked, alone = asks.by(test)
        plain = plain and alone
        name = _device_name(device, file)
        if asked is None or name is None or name.partition(":")[0] != _KINDS[asked.symbol]:
            return None
        plain = plain and ":" not in name
        hit = hit or asked
    if hit is None or (cpu is not None and _device_name(cpu, file) != "cpu"):
        return None
    return _Choice(node, hit, cpu, plain, target)


def _is_hasattr(node: ast.expr) -> bool:
    """Whether a test only asks if this torch knows of a kind of device."""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("hasattr", "getattr")


def _device_name(node: ast.expr, file: FileContext) -> str | None:
    """The name of a device that is written as a string, or as `torch.device("cuda")`."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        if file.around.qualified(node.func) == _DEVICE:
            return _device_name(node.args[0], file)
        return None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _fix(rule: Rule, choice: _Choice, file: FileContext) -> Fix | None:
    cpu, hit = choice.cpu, choice.hit
    if not choice.plain or cpu is None or not file.fixes.may_fix(hit):
        return None
    if has_comment(file.source, choice.node):
        return None
    spelling = file.imports.spell(_ACCELERATOR, hit.use)
    if isinstance(spelling, Refusal):
        return None
    template = "$all.current_accelerator() if $all.is_available() else $cpu"
    if isinstance(cpu, ast.Constant):
        template = "$all.current_accelerator().type if $all.is_available() else $cpu"
    new: Code = code(template, all=spelling.text, cpu=cpu)
    if choice.target is not None:
        new = code("$target = $value", target=choice.target, value=new)
    level, reasons = applicability(rule.cases[0], rule, file.versions)
    edits = (replaced(file.source, choice.node, new), *spelling.edits)
    title, requires = "Ask `torch.accelerator`", required(rule.cases[0], rule)
    return file.fixes.fix(rule, title, level, reasons, edits, file.imports.releases(hit.use), requires)
