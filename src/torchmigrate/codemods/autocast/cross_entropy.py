"""TM204: binary cross entropy of probabilities in a region of mixed precision, which raises on CUDA.

Half precision cannot hold probabilities close to 0 and 1 well enough. The loss that takes logits is safe: the
sigmoid that made the probabilities goes, and both places change together. That is possible where it stands in
the function of the loss, or ends the `forward` of a model that is called for this loss alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.autocast.regions import Region, regions_of
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.findings import Edit, Finding, Fix, Reason
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.nodes import has_comment, name_replaced, replaced
from torchmigrate.semantics.flow.calls import returned
from torchmigrate.semantics.flow.domain import UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.model import Role
from torchmigrate.semantics.public_names import public_name
from torchmigrate.versions.range import applicability, required

_LOSS = "torch.nn.BCELoss"
_NEW = {
    _LOSS: "torch.nn.BCEWithLogitsLoss",
    "torch.nn.functional.binary_cross_entropy": "torch.nn.functional.binary_cross_entropy_with_logits",
}
_SIGMOIDS = frozenset(
    ("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit", "torch.Tensor.sigmoid")
)
_LAYER = "torch.nn.Sigmoid"
_SEQUENTIAL = "torch.nn.Sequential"
# Methods that leave every element as it is, so that a sigmoid before them is one after them.
_SHAPES = frozenset("squeeze unsqueeze view reshape flatten float contiguous".split())
_SAME_OBJECT = frozenset("cuda to cpu train eval float".split())
# Attributes of a model that can be read without calling it.
_ASKED = frozenset(
    "parameters named_parameters train eval state_dict load_state_dict zero_grad cuda to".split()
)


class _Losses(Domain[ast.Call]):
    """Which of the objects of `BCELoss` an expression is: the call that makes it."""

    def __init__(self, flow: ValueFlow, made: Sequence[ast.Call]) -> None:
        super().__init__(flow)
        self._made = frozenset(made)

    def start(self, node: ast.AST) -> ast.Call | None:
        return node if isinstance(node, ast.Call) and node in self._made else None

    def through(self, node: ast.AST) -> Values[ast.Call]:
        function = getattr(node, "func", None)
        if isinstance(function, ast.Attribute) and function.attr in _SAME_OBJECT:
            return self.of(function.value)
        return frozenset([UNKNOWN])


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every such call, those of one loss object with one fix."""
    calls = [hit for hit in hits if hit.use.role is Role.CALL and hit.use.call is not None]
    if not calls:
        return
    search = _Search(file, calls)
    for hit in calls:
        losses = search.losses_of(hit)
        found = [loss for loss in losses if search.is_mixed(loss)]
        if not found:
            continue
        fix: Fix | None = None
        blocked: tuple[Reason, ...] = ()
        try:
            fix = search.fix(rule, hit, losses)
        except Unclear as unclear:
            blocked = unclear.reasons
        for loss in found:
            span = file.source.span(loss.func)
            finding = finding_at(rule, file, span, symbol=hit.symbol, fix=fix)
            yield replace(finding, blocked_by=blocked)


def _is_mixed(region: Region | None) -> bool:
    return (
        region is not None and region.device in ("cuda", None) and not (region.disabled or region.on_request)
    )


def _input(loss: ast.Call) -> ast.expr | None:
    if any(isinstance(item, ast.Starred) for item in loss.args):
        return None
    named = (item.value for item in loss.keywords if item.arg == "input")
    return loss.args[0] if loss.args else next(named, None)


class _Search:
    """The search of one file."""

    def __init__(self, file: FileContext, hits: Sequence[RuleMatch]) -> None:
        self.file = file
        self.flow, self.index = file.flow, file.flow.index
        self.parents = file.names.parents
        self.regions = regions_of(file)
        made = [hit.use.call for hit in hits if hit.symbol == _LOSS and hit.use.call is not None]
        self.made = _Losses(self.flow, made)
        calls = file.names.nodes(ast.Call) if made else ()
        self.by_objects = [(call, self.made.of(call.func)) for call in calls]

    # ---- which losses --------------------------------------------------------------------------------

    def is_mixed(self, call: ast.Call) -> bool:
        """Whether a call surely stands in a region, or in a function that is called in one."""
        here = self.regions.around(call)
        around = self.index.home_of(call)
        if here is not None or not isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _is_mixed(here)
        return any(_is_mixed(self.regions.around(other)) for other, _ in self.flow.calls_of(around)[0])

    def losses_of(self, hit: RuleMatch) -> list[ast.Call]:
        """The calls of the function, or of the object that a call makes, as far as they are known."""
        call = hit.use.call
        assert call is not None, "only calls were taken"
        return [each for each, made in self.by_objects if call in made] if hit.symbol == _LOSS else [call]

    # ---- sigmoids ------------------------------------------------------------------------------------

    def core(self, node: ast.expr) -> ast.expr:
        """An expression without methods after it that change its shape."""
        while (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SHAPES
        ):
            node = node.func.value
        return node

    def is_sigmoid(self, node: ast.AST | None) -> bool:
        if not isinstance(node, ast.Call):
            return False
        name = self.file.around.qualified(node.func)
        method = isinstance(node.func, ast.Attribute) and node.func.attr == "sigmoid" and not node.args
        return (name is None and method) or public_name(name or "") in _SIGMOIDS or self.is_layer(node.func)

    def is_layer(self, node: ast.AST) -> bool:
        """Whether an expression is an `nn.Sigmoid()`: on the spot, of a variable, or of `self`."""
        made = self.flow.only_origin(node)
        return (
            isinstance(made, ast.Call) and public_name(self.file.around.qualified(made.func) or "") == _LAYER
        )

    def argument(self, sigmoid: ast.Call) -> ast.expr:
        """What the sigmoid is taken of. Raises Unclear."""
        given = [*sigmoid.args, *(item.value for item in sigmoid.keywords if item.arg == "input")]
        if not given and isinstance(sigmoid.func, ast.Attribute) and not sigmoid.keywords:
            return sigmoid.func.value
        if len(given) != 1 or isinstance(given[0], ast.Starred) or len(sigmoid.args + sigmoid.keywords) != 1:
            raise Unclear("the sigmoid has other arguments", sigmoid)
        return given[0]

    # ---- the fix -------------------------------------------------------------------------------------

    def fix(self, rule: Rule, hit: RuleMatch, losses: Sequence[ast.Call]) -> Fix | None:
        """All places of a loss at once. Raises Unclear."""
        if not self.file.fixes.may_fix(hit):
            return None
        if hit.symbol == _LOSS:
            self.check_only_called(hit, losses)
        spelling = self.file.imports.spell(_NEW[hit.symbol], hit.use)
        if isinstance(spelling, Refusal):
            return None
        edits: list[Edit] = [name_replaced(hit.use, spelling.text), *spelling.edits]
        for loss in losses:
            edits += self.logits(loss, losses)
        level, reasons = applicability(rule.cases[0], rule, self.file.versions)
        releases = self.file.imports.releases(hit.use)
        title = "Compute the loss from logits"
        unique = list(dict.fromkeys(edits))
        return self.file.fixes.fix(
            rule, title, level, reasons, unique, releases, required(rule.cases[0], rule)
        )

    def reads(self, node: ast.Name | ast.Attribute) -> list[ast.expr]:
        """Every read of a variable, or of an attribute, whatever object has it."""
        found: Sequence[ast.Name | ast.Attribute]
        if isinstance(node, ast.Attribute):
            found = self.index.attributes(node.attr)
        else:
            holder = self.index.holder(node)
            found = [each for each in self.index.named(node.id) if self.index.holder(each) is holder]
        return [each for each in found if isinstance(each.ctx, ast.Load)]

    def stored(self, value: ast.AST) -> ast.Name | ast.Attribute | None:
        """The one variable or attribute that a value is assigned to, as it is or after methods such as
        `.cuda()`."""
        outer = self.parents[value]
        while isinstance(outer, ast.Attribute) and outer.attr in _SAME_OBJECT | _SHAPES:
            value = self.parents[outer]
            outer = self.parents[value]
        targets: list[ast.expr] = outer.targets if isinstance(outer, ast.Assign) else []
        if isinstance(outer, ast.AnnAssign):
            targets = [outer.target]
        target = targets[0] if len(targets) == 1 else None
        return target if isinstance(target, (ast.Name, ast.Attribute)) else None

    def check_only_called(self, hit: RuleMatch, losses: Sequence[ast.Call]) -> None:
        """Raises Unclear where a loss object is used in another way than by a call."""
        made = hit.use.call
        assert made is not None, "only calls were taken"
        if any(loss.func is made for loss in losses):
            return
        target = self.stored(made)
        if target is None:
            raise Unclear("the loss is not stored in a single variable", made)
        called = {loss.func for loss in losses if self.made.is_only(loss.func, made)}
        for read in self.reads(target):
            if read not in called:
                raise Unclear("the loss is passed on", read)
        is_global = isinstance(target, ast.Name) and self.index.home_of(target) is None
        if is_global and self.file.exports.is_taken(target.id):  # type: ignore[union-attr]
            raise Unclear(f"another file may use `{ast.unparse(target)}`", target)

    def logits(self, loss: ast.Call, losses: Sequence[ast.Call]) -> list[Edit]:
        """The edits by which a loss gets logits. Raises Unclear."""
        given = _input(loss)
        if given is None:
            raise Unclear("cannot tell what the loss is computed from", loss)
        made: ast.AST | None = self.core(given)
        if isinstance(given, ast.Name):
            steps = self.flow.sources(given)
            held = steps[0].node if len(steps) == 1 and not steps[0].path else None
            made = self.core(held) if isinstance(held, ast.expr) else None
        if not isinstance(made, ast.Call):
            raise Unclear("found no sigmoid before the loss", given)
        if not self.is_sigmoid(made):
            return self.of_model(made, losses)
        if self.is_only_for(made, losses):
            return [self.without(made)]
        logits = self.argument(made)
        statement = self.index.statement_of(given)
        if not isinstance(logits, ast.Name) or not isinstance(given, ast.Name) or self.stored(made) is None:
            raise Unclear("the probabilities are not only used for the loss", given)
        if statement is None or not self.index.is_kept(logits, statement):
            raise Unclear(f"`{logits.id}` may have changed before the loss", logits)
        return [replaced(self.file.source, given, code("$x", x=logits))]

    def is_only_for(self, made: ast.Call, losses: Sequence[ast.Call]) -> bool:
        """Whether a value goes to some losses and nowhere else: on the spot, or by way of a variable."""
        inputs = [given for loss in losses if (given := _input(loss)) is not None]
        if any(self.core(given) is made for given in inputs):
            return True
        target = self.stored(made)
        return isinstance(target, ast.Name) and all(read in inputs for read in self.reads(target))

    def without(self, sigmoid: ast.Call) -> Edit:
        self.check_comment(sigmoid)
        given = self.argument(sigmoid)
        atom = isinstance(given, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        held = isinstance(self.parents[sigmoid], ast.Attribute)
        return replaced(self.file.source, sigmoid, code("$x" if atom or not held else "($x)", x=given))

    def check_comment(self, node: ast.expr | ast.stmt) -> None:
        if has_comment(self.file.source, node):
            raise Unclear("there is a comment in the sigmoid", line=node.lineno)

    # ---- models --------------------------------------------------------------------------------------

    def of_model(self, call: ast.Call, losses: Sequence[ast.Call]) -> list[Edit]:
        """The edits at the end of `forward` of the model that a call calls. Raises Unclear."""
        forward = self.flow.called(call)
        owner = self.parents.get(forward) if forward is not None else None
        if (
            not isinstance(call.func, ast.Name)
            or not isinstance(owner, ast.ClassDef)
            or not isinstance(forward, ast.FunctionDef)
        ):
            raise Unclear("found no sigmoid before the loss", call)
        self.check_model(call.func, owner, losses)
        results, _ = returned(forward)
        value = self.core(results[0]) if len(results) == 1 else None
        made: ast.expr | None = value
        if isinstance(value, ast.Name):
            end = self.index.statement_of(value)
            block = self.index.block_of(end) if end is not None else None
            before = (
                block[block.index(end) - 1] if block and end is not None and end is not block[0] else None
            )
            given = before if isinstance(before, ast.Assign) and len(before.targets) == 1 else None
            is_it = given is not None and getattr(given.targets[0], "id", "") == value.id
            made = self.core(given.value) if given is not None and is_it else None
        if isinstance(made, ast.Call) and self.is_sigmoid(made):
            statement = self.parents[made]
            target = self.stored(made)
            if isinstance(statement, ast.Assign) and ast.dump(self.argument(made)) == _read(target):
                self.check_comment(statement)
                return list(self.file.fixes.remove(self.index.block_of(statement) or [], [statement]))
            return [self.without(made)]
        layers = self.flow.only_origin(made.func) if isinstance(made, ast.Call) else None
        if (
            isinstance(made, ast.Call)
            and isinstance(layers, ast.Call)
            and isinstance(made.func, ast.Attribute)
        ):
            name = self.file.around.qualified(layers.func)
            if name == _SEQUENTIAL and len(self.reads(made.func)) == 1 and layers.args:
                return self.shortened(layers)
        raise Unclear("found no sigmoid at the end of `forward`", line=owner.lineno)

    def shortened(self, layers: ast.Call) -> list[Edit]:
        """`nn.Sequential(..., nn.Sigmoid())` without its end. Raises Unclear."""
        editor, last = CallEditor(self.file.source, layers), layers.args[-1]
        if not self.is_layer(last) or editor.has_comment(last):
            raise Unclear("found no sigmoid at the end of the layers, or a comment next to it", last)
        editor.drop(last)
        return list(editor.edits() or ())

    def check_model(self, name: ast.Name, owner: ast.ClassDef, losses: Sequence[ast.Call]) -> None:
        """Raises Unclear where a model, or its class, is used for anything but the losses."""
        for read in self.reads(name):
            outer = self.parents[read]
            if isinstance(outer, ast.Attribute) and outer.attr in _ASKED:
                continue
            if (
                not isinstance(outer, ast.Call)
                or outer.func is not read
                or not self.is_only_for(outer, losses)
            ):
                raise Unclear(f"`{name.id}` is not only used for the loss", read)
        mentions = [self.parents[read] for read in self.index.named(owner.name)]
        made = [each for each in mentions if getattr(getattr(each, "func", None), "id", "") != "super"]
        if len(made) != 1 or self.file.exports.is_taken(owner.name):
            raise Unclear(f"`{owner.name}` is used elsewhere", name)


def _read(target: ast.AST | None) -> str:
    return ast.dump(ast.Name(target.id, ast.Load())) if isinstance(target, ast.Name) else ""
