"""TM204: binary cross entropy of probabilities in a region of mixed precision, which raises on CUDA.

Half precision cannot hold probabilities close to 0 and 1 well enough. The loss that takes logits is safe: the
sigmoid that made the probabilities goes, and both places change together. That is possible where it stands in
the function of the loss, or ends the `forward` of a model that is called for this loss alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.autocast.regions import AnyFunction, Region, Regions, regions_of
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.functions import functions_of
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.findings import Edit, Finding, Fix, Reason
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.nodes import has_comment, name_replaced, replaced
from torchmigrate.semantics.model import Role
from torchmigrate.semantics.public_names import public_name
from torchmigrate.source.trees import last_name, walk
from torchmigrate.versions.range import applicability, required

_LOSS = "torch.nn.BCELoss"
_NEW = {
    _LOSS: "torch.nn.BCEWithLogitsLoss",
    "torch.nn.functional.binary_cross_entropy": "torch.nn.functional.binary_cross_entropy_with_logits",
}
_SIGMOIDS = frozenset(
    ("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit", "torch.Tensor.sigmoid")
)
_Named = TypeVar("_Named", ast.Name, ast.Attribute)
_LAYER = "torch.nn.Sigmoid"
_SEQUENTIAL = "torch.nn.Sequential"
# Methods that leave every element as it is, so that a sigmoid before them is one after them.
_SHAPES = frozenset("squeeze unsqueeze view reshape flatten float contiguous".split())
_SAME_OBJECT = frozenset("cuda to cpu train eval float".split())
# Attributes of a model that can be read without calling it.
_ASKED = frozenset(
    "parameters named_parameters train eval state_dict load_state_dict zero_grad cuda to".split()
)


class _Loss(Struct, frozen=True):
    """A call that computes the loss; `made` is where its function or object comes from."""

    call: ast.Call
    made: RuleMatch

    @property
    def input(self) -> ast.expr | None:
        if any(isinstance(item, ast.Starred) for item in self.call.args):
            return None
        named = (item.value for item in self.call.keywords if item.arg == "input")
        return self.call.args[0] if self.call.args else next(named, None)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every such call, those of one loss object with one fix."""
    calls = [hit for hit in hits if hit.use.role is Role.CALL and hit.use.call is not None]
    if not calls:
        return
    search = _Search(file)
    losses = {id(hit): search.losses_of(hit) for hit in calls}
    for hit in calls:
        found = [loss for loss in losses[id(hit)] if search.is_mixed(loss.call)]
        if not found:
            continue
        fix: Fix | None = None
        blocked: tuple[Reason, ...] = ()
        try:
            fix = search.fix(rule, hit, losses[id(hit)])
        except Unclear as unclear:
            blocked = unclear.reasons
        for loss in found:
            span = file.source.span(loss.call.func)
            finding = finding_at(rule, file, span, symbol=hit.symbol, fix=fix)
            yield replace(finding, blocked_by=blocked)


def _is_mixed(region: Region) -> bool:
    return region.device in ("cuda", None) and not (region.disabled or region.on_request)


class _Search:
    """The search of one file."""

    def __init__(self, file: FileContext) -> None:
        self.file = file
        self.parents = file.names.parents
        self.regions: Regions = regions_of(file)
        self.functions = functions_of(file)
        self._below: dict[tuple[int, type], dict[str, list[ast.Name | ast.Attribute]]] = {}

    # ---- which losses --------------------------------------------------------------------------------

    def is_mixed(self, call: ast.Call) -> bool:
        """Whether a call surely stands in a region, or in a function that is called in one."""
        here = self.regions.around(call)
        if here is not None:
            return _is_mixed(here)
        around = self.function_of(call)
        for _, _, other, called in self.functions.calls:
            if called.node is around and called.name != "__init__":
                region = self.regions.around(other)
                if region is not None and _is_mixed(region):
                    return True
        return False

    def function_of(self, node: ast.AST) -> ast.AST:
        """The function, or the module, that an expression is evaluated in."""
        inner, here = node, self.parents[node]
        while not isinstance(here, (ast.Module, ast.Lambda)):
            if isinstance(here, AnyFunction) and any(inner is item for item in here.body):
                break
            inner, here = here, self.parents[here]
        return here

    def home(self, name: ast.Name) -> ast.AST:
        """The function, or the module, whose variable a name is."""
        here = self.function_of(name)
        while not _binds(here, name.id):
            here = self.function_of(here)
        return here

    def losses_of(self, hit: RuleMatch) -> list[_Loss]:
        """The calls of the function, or of the object that a call makes, as far as they are known."""
        call = hit.use.call
        assert call is not None, "only calls were taken"
        if hit.symbol != _LOSS:
            return [_Loss(call, hit)]
        made = self.whole(call)
        outer = self.parents[made]
        if isinstance(outer, ast.Call) and outer.func is made:
            return [_Loss(outer, hit)]
        held: ast.expr = made
        while isinstance(outer, ast.IfExp) and held is not outer.test:  # chosen, and so not to be rewritten
            held, outer = outer, self.parents[outer]
        target = self.sole_target(held)
        if target is None:
            return []
        calls: list[ast.Call] = []
        for use in self.uses_of(target):
            calls += [use] if isinstance(use, ast.Call) else self.handed_on(use)
        return [_Loss(item, hit) for item in calls]

    def handed_on(self, read: ast.AST) -> list[ast.Call]:
        """The calls of an object in a function of the file that it is passed to, or in the class of one."""
        outer = self.parents[read]
        call = self.parents[outer] if isinstance(outer, ast.keyword) else outer
        if not isinstance(call, ast.Call) or any(isinstance(item, ast.Starred) for item in call.args):
            return []
        functions = self.functions
        called = functions.called(call, functions.owners[id(functions.statement_of(call))])
        if called is None:
            return []
        names = called.parameters
        place = next((number for number, item in enumerate(call.args) if item is read), len(names))
        name = outer.arg if isinstance(outer, ast.keyword) else next(iter(names[place:]), None)
        mentions = self.names_in(called.node, name) if name is not None else []
        if not all(map(_loads, mentions)):
            return []
        found: list[ast.AST] = [self.called(item) for item in mentions]
        if called.name == "__init__":
            targets = (self.sole_target(item) for item in mentions)
            kept = [target for target in targets if isinstance(target, ast.Attribute)]
            found += [use for target in kept for use in self.uses_of(target)]
        return [item for item in found if isinstance(item, ast.Call)]

    def whole(self, call: ast.Call) -> ast.Call:
        """A call that makes an object, with the `.cuda()` and `.to(device)` after it."""
        while True:
            attribute = self.parents[call]
            outer = self.parents.get(attribute)
            if not isinstance(attribute, ast.Attribute) or attribute.attr not in _SAME_OBJECT:
                return call
            if not isinstance(outer, ast.Call) or outer.func is not attribute:
                return call
            call = outer

    def sole_target(self, value: ast.expr) -> ast.Name | ast.Attribute | None:
        """The variable or `self.x` that a value is assigned to, if nothing else is."""
        statement = self.parents[value]
        targets: list[ast.expr] = []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        elif isinstance(statement, ast.Assign):
            targets = statement.targets
        if len(targets) != 1:
            return None
        target = targets[0]
        if isinstance(target, ast.Name):
            home = self.function_of(statement)
            bound = [item for item in self.names_in(home, target.id) if not _loads(item)]
            in_class = isinstance(self.parents[statement], ast.ClassDef)
            return target if len(bound) == 1 and not in_class else None
        if not isinstance(target, ast.Attribute) or not _is_self(target.value):
            return None
        owner = self.class_of(statement)
        if owner is None:
            return None
        mentions = self.below(owner, ast.Attribute).get(target.attr, ())
        others = [item for item in mentions if _is_own(item, target.attr) and not _loads(item)]
        return target if len(others) == 1 else None

    def names_in(self, home: ast.AST, name: str) -> list[ast.Name]:
        """Every mention of a variable of a function, also in functions inside of it that have none of their
        own."""
        found: list[ast.Name] = []
        for node in self.below(home, ast.Name).get(name, ()):
            here = self.function_of(node)
            while here is not home and not _binds(here, name):
                here = self.function_of(here)
            if here is home:
                found.append(node)
        return found

    def below(self, node: ast.AST, kind: type[_Named]) -> dict[str, list[_Named]]:
        """The names or attributes in a function or class, each under what it is called; found once."""
        key = (id(node), kind)
        if key not in self._below:
            found: dict[str, list[ast.Name | ast.Attribute]] = {}
            for item in walk(node):
                if isinstance(item, kind):
                    found.setdefault(item.id if isinstance(item, ast.Name) else item.attr, []).append(item)
            self._below[key] = found
        return self._below[key]  # type: ignore[return-value]  # grouped by class

    def uses_of(self, target: ast.Name | ast.Attribute) -> list[ast.AST]:
        """What is around every read of a variable or of `self.x`: the call, where it is called."""
        reads: list[ast.Name] | list[ast.Attribute]
        if isinstance(target, ast.Name):
            reads = [item for item in self.names_in(self.function_of(target), target.id) if _loads(item)]
        else:
            owner = self.class_of(target)
            assert owner is not None, "it was looked for in a class"
            reads = [
                item
                for item in self.below(owner, ast.Attribute).get(target.attr, ())
                if _is_own(item, target.attr) and _loads(item)
            ]
        return [self.called(item) for item in reads]

    def called(self, read: ast.expr) -> ast.AST:
        outer = self.parents[read]
        return outer if isinstance(outer, ast.Call) and outer.func is read else read

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        here: ast.AST | None = node
        while here is not None and not isinstance(here, ast.ClassDef):
            here = self.parents.get(here)
        return here

    # ---- sigmoids ------------------------------------------------------------------------------------

    def sigmoid_in(self, node: ast.expr) -> ast.Call | None:
        """The sigmoid that an expression is, or begins with, before methods that change its shape."""
        if not isinstance(node, ast.Call):
            return None
        function = node.func
        name = self.file.around.qualified(function)
        if name is not None and public_name(name) in _SIGMOIDS:
            return node
        if (
            isinstance(function, ast.Attribute)
            and function.attr == "sigmoid"
            and name is None
            and not node.args
        ):
            return node
        if self.is_layer(function):
            return node
        if isinstance(function, ast.Attribute) and function.attr in _SHAPES:
            return self.sigmoid_in(function.value)
        return None

    def is_layer(self, function: ast.expr) -> bool:
        """Whether a function is an `nn.Sigmoid()`: on the spot, of a variable, or of `self`."""
        if isinstance(function, ast.Call):
            name = self.file.around.qualified(function.func)
            return name is not None and public_name(name) == _LAYER
        stores: Sequence[ast.AST] = ()
        if isinstance(function, ast.Attribute) and _is_self(function.value):
            owner = self.class_of(function)
            every = walk(owner) if owner is not None else []
            stores = [item for item in every if _is_own(item, function.attr)]
        elif isinstance(function, ast.Name):
            stores = self.names_in(self.function_of(function), function.id)
        given = [self.parents[item] for item in stores if not _loads(item)]
        return len(given) == 1 and isinstance(given[0], ast.Assign) and self.is_layer_call(given[0].value)

    def is_layer_call(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self.is_layer(node)

    def argument(self, sigmoid: ast.Call) -> ast.expr:
        """What the sigmoid is taken of. Raises Unclear."""
        given = [*sigmoid.args, *(item.value for item in sigmoid.keywords if item.arg == "input")]
        if not given and isinstance(sigmoid.func, ast.Attribute) and not sigmoid.keywords:
            return sigmoid.func.value
        if len(given) != 1 or isinstance(given[0], ast.Starred) or len(sigmoid.args + sigmoid.keywords) != 1:
            raise Unclear("the sigmoid has other arguments", sigmoid)
        return given[0]

    # ---- the fix -------------------------------------------------------------------------------------

    def fix(self, rule: Rule, hit: RuleMatch, losses: Sequence[_Loss]) -> Fix | None:
        """All places of a loss at once. Raises Unclear."""
        if not self.file.fixes.may_fix(hit):
            return None
        if hit.symbol == _LOSS:
            self.check_only_called(hit)
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

    def check_only_called(self, hit: RuleMatch) -> None:
        """Raises Unclear where a loss object is used in another way than by a call."""
        assert hit.use.call is not None, "only calls were taken"
        made = self.whole(hit.use.call)
        outer = self.parents[made]
        if isinstance(outer, ast.Call) and outer.func is made:
            return
        target = self.sole_target(made)
        if target is None:
            raise Unclear("the loss is not stored in a single variable", made)
        for use in self.uses_of(target):
            if not isinstance(use, ast.Call):
                raise Unclear("the loss is passed on", line=getattr(use, "lineno", None))
        if isinstance(target, ast.Attribute):
            name = target.attr
            owner = self.class_of(target)
            inside = {id(item) for item in walk(owner)} if owner is not None else set()
            for node in self.file.names.nodes(ast.Attribute):
                if node.attr == name and id(node) not in inside:
                    raise Unclear(f"`{name}` may be used outside of the class", node)
        elif isinstance(self.function_of(target), ast.Module) and self.file.exports.is_taken(target.id):
            raise Unclear(f"another file may use `{target.id}`", target)

    def logits(self, loss: _Loss, losses: Sequence[_Loss]) -> list[Edit]:
        """The edits by which a loss gets logits. Raises Unclear."""
        given = loss.input
        if given is None:
            raise Unclear("cannot tell what the loss is computed from", loss.call)
        sigmoid = self.sigmoid_in(given)
        if sigmoid is not None:
            return [self.without(sigmoid)]
        if isinstance(given, ast.Name):
            return self.of_variable(given, losses)
        model = self.model_in(given)
        if model is not None:
            return self.of_model(model, losses)
        raise Unclear("found no sigmoid before the loss", given)

    def without(self, sigmoid: ast.Call) -> Edit:
        self.check_comment(sigmoid)
        given = self.argument(sigmoid)
        atom = isinstance(given, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        held = isinstance(self.parents[sigmoid], ast.Attribute)
        return replaced(self.file.source, sigmoid, code("$x" if atom or not held else "($x)", x=given))

    def of_variable(self, read: ast.Name, losses: Sequence[_Loss]) -> list[Edit]:
        """For a variable that holds the probabilities. Raises Unclear."""
        home = self.function_of(read)
        mentions = self.names_in(home, read.id)
        bound = [item for item in mentions if not _loads(item)]
        statement = self.parents[bound[0]] if len(bound) == 1 else None
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            raise Unclear(f"found no sigmoid before the loss: `{read.id}` comes from elsewhere", read)
        sigmoid = self.sigmoid_in(statement.value)
        model = self.model_in(statement.value) if sigmoid is None else None
        if sigmoid is None and model is None:
            raise Unclear("found no sigmoid before the loss", statement.value)
        ours = {id(loss.input) for loss in losses}
        alone = all(id(item) in ours for item in mentions if _loads(item))
        if sigmoid is None:
            assert model is not None, "one of them is there"
            if not alone:
                raise Unclear(f"`{read.id}` is not only used for the loss", read)
            return self.of_model(model, losses)
        if alone:
            return [self.without(sigmoid)]
        logits = self.argument(sigmoid)
        if sigmoid is not statement.value or not isinstance(logits, ast.Name):
            raise Unclear(f"`{read.id}` is not only used for the loss", read)
        changed = [item for item in self.names_in(home, logits.id) if not _loads(item)]
        if len(changed) > 1 or (changed and isinstance(home, AnyFunction) and logits.id in _parameters(home)):
            raise Unclear(f"`{logits.id}` may have changed before the loss", logits)
        return [replaced(self.file.source, read, code("$x", x=logits))]

    # ---- models --------------------------------------------------------------------------------------

    def model_in(self, node: ast.expr) -> ast.Call | None:
        """The call of a variable that an expression is, or begins with."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SHAPES:
            return self.model_in(node.func.value)
        return None

    def of_model(self, call: ast.Call, losses: Sequence[_Loss]) -> list[Edit]:
        """The edits at the end of `forward` of the model that a call calls. Raises Unclear."""
        assert isinstance(call.func, ast.Name), "so it was found"
        owner = self.class_behind(call.func)
        self.check_calls(call.func, losses)
        none = Unclear("found no sigmoid at the end of `forward`", line=owner.lineno)
        methods = [item for item in owner.body if isinstance(item, ast.FunctionDef)]
        forward = [item for method in methods if method.name == "forward" for item in walk(method)]
        returns = [item for item in forward if isinstance(item, ast.Return)]
        value = returns[0].value if len(returns) == 1 else None
        before: ast.stmt | None = None
        if isinstance(value, ast.Name):
            spot = self.functions.spots[id(returns[0])]
            before = spot.block[spot.index - 1] if spot.index else None
            given = before if isinstance(before, ast.Assign) and len(before.targets) == 1 else None
            if given is None or getattr(given.targets[0], "id", None) != value.id:
                raise none
            value = given.value
        if value is None:
            raise none
        sigmoid = self.sigmoid_in(value)
        if sigmoid is None:
            return self.of_layers(value, owner, none)
        if sigmoid is value and before is not None:
            (target,) = before.targets if isinstance(before, ast.Assign) else (None,)
            if ast.unparse(self.argument(sigmoid)) == getattr(target, "id", None):
                self.check_comment(before)
                return list(self.file.fixes.remove(self.functions.spots[id(before)].block, [before]))
        return [self.without(sigmoid)]

    def of_layers(self, value: ast.expr, owner: ast.ClassDef, none: Unclear) -> list[Edit]:
        """For `self.layers(x)`, which is a `nn.Sequential` with a sigmoid at its end. Raises Unclear."""
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if _is_self(value.func.value):
                break
            if value.func.attr not in _SHAPES:
                raise none
            value = value.func.value
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            raise none
        name = value.func.attr
        mentions = [item for item in self.file.names.nodes(ast.Attribute) if item.attr == name]
        inside = {id(item) for item in walk(owner) if _is_own(item, name)}
        stores = [self.parents[item] for item in mentions if id(item) in inside and not _loads(item)]
        reads = [item for item in mentions if id(item) in inside and _loads(item)]
        made = stores[0].value if len(stores) == 1 and isinstance(stores[0], ast.Assign) else None
        if len(reads) != 1 or not isinstance(made, ast.Call) or not made.args:
            raise none
        if self.file.around.qualified(made.func) != _SEQUENTIAL or not self.is_layer(made.args[-1]):
            raise none
        call = CallEditor(self.file.source, made)
        if call.has_comment(made.args[-1]):
            raise Unclear("there is a comment next to the sigmoid", made.args[-1])
        call.drop(made.args[-1])
        edits = call.edits()
        if edits is None:
            raise none
        return list(edits)

    def check_comment(self, node: ast.expr | ast.stmt) -> None:
        if has_comment(self.file.source, node):
            raise Unclear("there is a comment in the sigmoid", line=node.lineno)

    def class_behind(self, name: ast.Name) -> ast.ClassDef:
        """The class of the file that a variable surely is the only object of. Raises Unclear."""
        none = Unclear("found no sigmoid before the loss", name)
        home = self.home(name)
        stores = [item for item in self.names_in(home, name.id) if not _loads(item)]
        statement = self.parents[stores[0]] if len(stores) == 1 else None
        value = statement.value if isinstance(statement, ast.Assign) else None
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr not in _SAME_OBJECT:
                raise none
            value = value.func.value
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
            raise none
        made = value.func.id
        classes = [item for item in self.file.names.nodes(ast.ClassDef) if item.name == made]
        if len(classes) != 1 or self.file.exports.is_taken(made):
            raise none
        reads = [
            item for item in self.file.names.nodes(ast.Name) if item.id == made and item is not value.func
        ]
        if any(not self.is_super(item) for item in reads):
            raise Unclear(f"`{made}` is used elsewhere", reads[0])
        return classes[0]

    def is_super(self, read: ast.Name) -> bool:
        outer = self.parents[read]
        return isinstance(outer, ast.Call) and getattr(outer.func, "id", "") == "super"

    def check_calls(self, name: ast.Name, losses: Sequence[_Loss]) -> None:
        """Raises Unclear where a model is used for anything but the losses."""
        home = self.home(name)
        for read in self.names_in(home, name.id):
            if not _loads(read):
                continue
            use = self.called(read)
            outer = self.parents[read]
            if isinstance(outer, ast.Attribute) and outer.attr in _ASKED:
                continue
            if not isinstance(use, ast.Call) or not self.feeds(use, losses):
                raise Unclear(f"`{name.id}` is not only used for the loss", read)

    def feeds(self, call: ast.Call, losses: Sequence[_Loss]) -> bool:
        """Whether what a model gives is read by losses alone."""
        inputs = [loss.input for loss in losses]
        if any(item is not None and self.model_in(item) is call for item in inputs):
            return True
        statement = self.parents[call]
        while isinstance(statement, (ast.Attribute, ast.Call)) and last_name(statement) != "":
            statement = self.parents[statement]
        if not isinstance(statement, ast.Assign) or self.model_in(statement.value) is not call:
            return False
        target = statement.targets[0]
        return isinstance(target, ast.Name) and any(
            isinstance(item, ast.Name)
            and item.id == target.id
            and self.function_of(item) is self.function_of(call)
            for item in inputs
        )


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_own(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and _is_self(node.value)


def _loads(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    arguments = function.args
    return {item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _binds(home: ast.AST, name: str) -> bool:
    """Whether a function has a variable or a parameter of this name of its own."""
    if isinstance(home, ast.Module):
        return True
    if isinstance(home, AnyFunction) and name in _parameters(home):
        return True
    if isinstance(home, ast.Lambda):
        return any(item.arg == name for item in home.args.args)
    nodes = walk(home)
    if any(isinstance(item, (ast.Global, ast.Nonlocal)) and name in item.names for item in nodes):
        return False
    return any(isinstance(item, ast.Name) and item.id == name and not _loads(item) for item in nodes)
