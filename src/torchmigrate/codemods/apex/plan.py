"""The rewrite of one file from apex.amp to torch.amp: the order in which its parts are decided."""

from __future__ import annotations

import ast
from collections.abc import Callable

from msgspec import Struct

from torchmigrate.codemods.apex.conditions import as_bool, conjuncts
from torchmigrate.codemods.apex.forward import Forward, joined
from torchmigrate.codemods.apex.objects import objects_of
from torchmigrate.codemods.apex.presence import Branches, Presence, prune
from torchmigrate.codemods.apex.scaler import Scaler
from torchmigrate.codemods.apex.steps import Steps
from torchmigrate.codemods.apex.uses import (
    Initialize,
    Place,
    Scaled,
    Uses,
    concerned,
    elements,
    in_place,
    is_none,
    read,
    remarks,
    scale_option,
    the_call,
)
from torchmigrate.codemods.base.functions import functions_of
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.findings import Edit
from torchmigrate.rewrite.code import Code, code, code_of, several
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.placing import use_at
from torchmigrate.rewrite.statements import Crowded, Rewriting
from torchmigrate.semantics.flow.functions import Function, key_of, own
from torchmigrate.semantics.model import Role
from torchmigrate.source.trees import walk

AUTOCAST = "torch.autocast"
GRAD_SCALER = "torch.amp.GradScaler"
# The new code of a `Place`, by its kind; the others have code of their own.
_NEW = {
    "number": "$value.item()",
    "saved": "$scaler",
    "scale": "$scaler.get_scale()",
    "state_dict": "$scaler.state_dict",
    "load_state_dict": "$scaler.load_state_dict",
}


class ApexPlan(Struct):
    """The edits of a whole file, and what a person should know of them."""

    uses: Uses
    edits: list[Edit]
    remarks: list[str]
    unused: bool = False  # whether there is nothing but an import to remove


class _Planner:
    def __init__(self, file: FileContext) -> None:
        self.file = file
        self.objects = objects_of(file)
        self.functions = self.objects.functions
        self.uses = read(file.names, self.objects)
        self.first = the_call(self.uses, self.functions)
        self.rewriting = file.rewriting()
        self.imports: list[Edit] = []
        self.remarks: list[str] = []

    def plan(self) -> ApexPlan:
        """All edits; a file that trains nothing gets no scaler."""
        first, rewriting, every = self.first, self.rewriting, (self.first, *self.first.more)
        self._halves()
        presence = Presence(self.uses, self.objects, rewriting)
        branches = Branches(self.uses, self.functions, presence, rewriting)
        optimizers = [part for item in every for part in item.optimizers]
        steps = None
        if self.uses.scaled:
            steps = Steps(self.uses, self.objects, branches, rewriting, optimizers)
        scaler = Scaler(first, self.uses.receivers, self.objects, presence, rewriting, self.file.names.tree)
        if steps is not None:
            self._reach(scaler, steps, branches, presence)
        ranges = self._forward(scaler)
        condition, made_before = scaler.enabled()
        enabled = code_of(condition) if condition is not None else None
        if steps is not None:
            self._check_branches(branches, condition)
            self._plain_backwards(branches, steps)
            self._losses(scaler.known, branches)
            steps.rewrite(scaler.known)
            scale, told = scale_option(first, self.uses)
            made = self._spell(GRAD_SCALER, scaler.home, made_before)
            call = code('$made("cuda", init_scale=$scale, enabled=$on)', made=made, scale=scale, on=enabled)
            name = scaler.known(scaler.home)
            rewriting.add_before(made_before, code("$scaler = $call", scaler=name, call=call))
            self.remarks += told
        gone: list[ast.stmt] = [*self.uses.gone]
        for each in every:
            self._initialised(each, gone)
        for function, statements in ranges:
            autocast = self._spell(AUTOCAST, function, statements[0])
            on = self._enabled(condition, function, scaler)
            rewriting.wrap(statements, code('$autocast("cuda", enabled=$on)', autocast=autocast, on=on))
        presence.rewrite(scaler.known, branches.dropped | branches.joined)
        prune([*gone, *presence.gone], self.functions, rewriting)
        self.remarks += [*presence.remarks, *(steps.remarks if steps else ()), *remarks(first, self.uses)]
        return self._finished()

    def _reach(self, scaler: Scaler, steps: Steps, branches: Branches, presence: Presence) -> None:
        """Make the scaler known wherever it is used, but for the forward passes."""
        live = [*self.uses.places, *steps.involved]
        live += [(function, function.statements[0]) for function in self.uses.receivers.values()]
        for node in presence.chosen:
            statement = self.functions.statement_of(node)
            if id(statement) not in branches.dropped | branches.joined:
                live.append((self.functions.owners[id(statement)], statement))
        scaler.reach([function for function, _ in live])
        for function, statement in live:
            scaler.need(function, statement)

    def _losses(self, scaler: Callable[[Function], str], branches: Branches) -> None:
        """The code of backward passes, of the parameters of an optimizer, and of all else with the scaler."""
        for scaled in self.uses.scaled:
            self._open(scaled)
            for call in scaled.backward:
                assert isinstance(call.func, ast.Attribute), "read before"
                new = code("$scaler.scale($loss)", scaler=scaler(scaled.function), loss=scaled.loss)
                self.rewriting.replace_node(call.func.value, new)
        for master in self.uses.of("master"):
            plain = self._plain_parameters(master)
            if plain is not None:
                self.rewriting.replace_node(plain[0], code("$parameters", parameters=plain[1]))
            else:
                self.rewriting.replace_node(master.node, self._parameters(master, branches))
        replace_places(self.uses, self.rewriting, scaler)

    def _is_after(self, statement: ast.stmt) -> bool:
        """Whether a statement runs after `amp.initialize`."""
        if self.functions.owners[id(statement)] is not self.first.function:
            return True
        return statement.lineno > self.first.statement.lineno

    def _finished(self) -> ApexPlan:
        edits = self.rewriting.edits()
        for edit in dict.fromkeys(self.imports):
            if any(
                item.start < edit.start < item.end or (edit.start < item.start < edit.end) for item in edits
            ):
                raise Crowded("the new import would be in code that changes")
            edits.append(edit)
        return ApexPlan(self.uses, edits, self.remarks)

    def _open(self, scaled: Scaled) -> None:
        """Leave what is under `amp.scale_loss` in its place."""
        statement, rewriting = scaled.statement, self.rewriting
        inner = statement.body[0]
        if len(statement.body) == 1 and inner.lineno == statement.items[-1].context_expr.end_lineno:
            rewriting.drop_header(statement)
        else:
            rewriting.unwrap(statement, statement.body)

    def _initialised(self, first: Initialize, gone: list[ast.stmt]) -> None:
        """Objects stay what they are: at most they get another name."""
        statement = first.statement
        if not isinstance(statement, ast.Return) and in_place(first):
            gone += first.gone or [statement]
            return
        values = [*first.models, *first.optimizers]
        targets = elements(statement.targets[0]) if isinstance(statement, ast.Assign) else []
        if len(targets) == len(values):
            pairs = [pair for pair in zip(targets, values, strict=True) if key_of(pair[0]) != key_of(pair[1])]
            left, right = (several(side) for side in zip(*pairs, strict=True))
            self.rewriting.replace_node(statement, code("$left = $right", left=left, right=right))
            return
        given = [first.given["models"]]
        if not is_none(first.given.get("optimizers")):
            given.append(first.given["optimizers"])
            made = self.objects.flow.origins(first.given["optimizers"])
            if any(isinstance(step.node, ast.Constant) for step in made):
                line = statement.lineno
                raise Unclear.at(line, "`amp.initialize` returns the model alone where there is no optimizer")
        self.rewriting.replace_node(first.call, several(given))

    # ---- the forward pass -----------------------------------------------------------------------------

    def _forward(self, scaler: Scaler) -> list[tuple[Function, list[ast.stmt]]]:
        """The statements that run models, which go under autocast."""
        literal = not self.uses.scaled or (not scaler.level and not self._conditional())

        def has(function: Function) -> bool:
            return literal or scaler.text(function) is not None

        forward = Forward(self.objects, has)
        for scaled in self.uses.scaled:
            forward.with_loss(scaled)
        if not literal:
            scaler.reach([function for function, _ in forward.ranges])
        for function in self.functions.every:
            if has(function):
                forward.others(function, self._is_after)
            elif not self.objects.calls_to(function) and any(
                forward.is_pass(call) for _, call in function.calls
            ):
                self.remarks.append(f"`{function.name}` runs the model in single precision")
        ranges = []
        for function, statements in forward.ranges:
            optional = function is scaler.home and id(statements[0]) in forward.optional
            if not literal and optional and not scaler.reaches(statements[0]):
                self.remarks.append(f"line {statements[0].lineno} runs the model in single precision")
                continue
            if not literal:
                scaler.need(function, statements[0])
            ranges.append((function, statements))
        if not ranges:
            raise Unclear(
                "the model is initialized here and runs in another file: run it under `torch.autocast`"
            )
        return joined(ranges, self.functions)

    def _conditional(self) -> bool:
        """Whether `amp.initialize` stands under a condition."""
        spot = self.functions.spots[id(self.first.statement)]
        return any(isinstance(item.statement, ast.If) for item in spot.chain()[:-1])

    def _enabled(self, condition: ast.expr | None, function: Function, scaler: Scaler) -> Code | None:
        """What `enabled=` of autocast is in a function."""
        if condition is None or (isinstance(condition, ast.Constant) and condition.value is False):
            return code_of(condition) if condition is not None else None
        home, key = self.functions.home, key_of(condition)
        roots = {node.id for node in walk(condition) if isinstance(node, ast.Name)}
        same = all(home(root, function) is home(root, scaler.home) for root in roots)
        if self.uses.scaled:
            same = same and function.within(scaler.home) and key is not None
            same = same and not self._changes(key or "", scaler)
        text = scaler.text(function) if self.uses.scaled else None
        if not same and text is None:
            raise Unclear(
                f"`{function.name}` runs the model, but does not know whether mixed precision is enabled"
            )
        return code_of(condition) if same else code("$scaler.is_enabled()", scaler=text)

    def _changes(self, key: str, scaler: Scaler) -> bool:
        """Whether what the condition reads is set after `amp.initialize`."""
        return any(
            isinstance(node, (ast.Name, ast.Attribute))
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node) == key
            and node.lineno > scaler.made_before.lineno
            for node in walk(self.file.names.tree)
        )

    # ---- the rest -------------------------------------------------------------------------------------

    def _check_branches(self, branches: Branches, condition: ast.expr | None) -> None:
        """A branch without apex may stay only if the scaler is off there."""
        for statement, inner in branches.kept:
            tests = {ast.dump(statement.test), ast.dump(as_bool(statement.test))}
            spot = self.functions.spots[id(inner)]
            in_body = any(item.block is statement.body for item in spot.chain())
            other = statement.orelse if in_body else statement.body
            trains = any(
                isinstance(node, ast.Attribute)
                and node.attr == "backward"
                and id(node) not in self._scaled_nodes()
                for item in other
                for node in walk(item)
            )
            if trains and not tests & _parts(condition):
                raise Unclear.at(statement.lineno, "the branches with and without apex do different things")

    def _scaled_nodes(self) -> set[int]:
        return {id(node) for item in self.uses.scaled for node in walk(item.statement)}

    def _plain_backwards(self, branches: Branches, steps: Steps) -> None:
        """A backward pass without a scaled loss would be unscaled by the step all the same."""
        inside = self._scaled_nodes() | branches.dropped
        for kept, _ in branches.kept:
            inside |= {id(node) for node in walk(kept)}
        involved = {function for function, _ in [*self.uses.places, *steps.involved]}
        for node, call, statement, function in self.objects.attributes("backward"):
            own_method = call is not None and self.objects.called(call) is not None
            if function not in involved or id(node) in inside or own_method:
                continue
            spot = self.functions.spots[id(statement)]
            rest = spot.block[spot.index + 1 :]
            if not rest or "zero_grad" not in ast.unparse(rest[0]):
                raise Unclear.at(node.lineno, "a backward pass without `amp.scale_loss`")

    def _halves(self) -> None:
        """Weights in half precision cannot be trained with a scaler."""
        for node, call, statement, function in self.objects.attributes("half"):
            if call is None or call.args or self._is_trained(statement, function):
                continue
            made = [node.value, *getattr(statement, "targets", [])]
            if any(self.objects.is_model(item) or "model" in (key_of(item) or "") for item in made):
                raise Unclear.at(
                    node.lineno,
                    "the weights are in half precision, which a scaler does not accept: remove `.half()`",
                )

    def _is_trained(self, statement: ast.stmt, function: Function) -> bool:
        """Whether a statement runs when all of training is over."""
        looped = self.functions.loops(statement)
        ends = [item.statement.end_lineno or 0 for item in self.uses.scaled if item.function is function]
        return bool(ends) and not looped and statement.lineno > max(ends)

    def _plain_parameters(self, master: Place) -> tuple[ast.IfExp, ast.expr] | None:
        """`amp.master_params(optimizer) if fp16 else model.parameters()`, and the part without apex."""
        outer = self.functions.around.get(id(master.node))
        if not isinstance(outer, ast.IfExp) or outer.test is master.node:
            return None
        other = outer.orelse if outer.body is master.node else outer.body
        method = other.func if isinstance(other, ast.Call) and not other.args else None
        given = isinstance(method, ast.Attribute) and method.attr == "parameters"
        return (outer, other) if given else None

    def _parameters(self, master: Place, branches: Branches) -> Code:
        """The code that replaces `amp.master_params(optimizer)`."""
        optimizer = master.value
        parameters = branches.parameters.get(id(master.node))
        if parameters is not None:
            return code("$parameters", parameters=parameters)
        called = {
            key
            for statement in master.function.statements
            for node in own(statement, ast.Call)
            if isinstance(node, ast.Call) and (key := key_of(node.func)) is not None
            if self.objects.is_model(node.func)
        }
        if len(called) == 1 and len(self.first.models) == len(self.first.optimizers) == 1:
            return code("$model.parameters()", model=called.pop())
        assert optimizer is not None, "read before"
        return code('[p for group in $optimizer.param_groups for p in group["params"]]', optimizer=optimizer)

    def _spell(self, name: str, function: Function, statement: ast.stmt) -> str:
        names = self.file.names
        scope = next((item for item in names.scopes if item.node is function.node), names.module)
        around = [spot.block for spot in self.functions.spots[id(statement)].chain()]
        spelling = self.file.imports.spell(name, use_at(name, statement, around, scope, self.file))
        if isinstance(spelling, Refusal):
            raise Unclear(spelling.reason)
        self.imports.extend(spelling.edits)
        return spelling.text


def replace_places(uses: Uses, rewriting: Rewriting, scaler: Callable[[Function], str]) -> None:
    """Write what has the same code wherever it is."""
    for place in uses.of(*_NEW):
        parts = {"value": place.value} if place.kind == "number" else {"scaler": scaler(place.function)}
        rewriting.replace_node(place.node, code(_NEW[place.kind], **parts))


def make_plan(file: FileContext) -> ApexPlan:
    """How a file is rewritten.

    Raises:
        Unclear, Crowded: it cannot be rewritten.
    """
    return _without_import(file) or _Planner(file).plan()


def _without_import(file: FileContext) -> ApexPlan | None:
    """The rewrite of a file that uses at most `to_python_float` of its imports; None: it is another one."""
    every = concerned(file.names)
    if any(use.role is not Role.IMPORT and use.call is None for use in every):
        return None
    tree = file.names.tree
    functions = functions_of(file)
    uses = read(file.names, objects_of(file))
    if not uses.imports or len(uses.imports) + len(uses.of("number")) < len(uses.every):
        return None
    parts = [use.node for use in uses.imports if isinstance(use.node, ast.alias)]
    bound = {(part.asname or part.name).partition(".")[0] for part in parts}
    numbers = {id(node) for item in uses.others for node in walk(item.node.func)}  # type: ignore[attr-defined]
    for node in walk(tree):
        named = isinstance(node, ast.Name) and node.id in bound and id(node) not in numbers
        if named or getattr(node, "value", None) in bound:
            return None
    rewriting = file.rewriting()
    presence = Presence(uses, objects_of(file), rewriting)
    if presence.flags:
        return None
    presence.rewrite(lambda function: "", ())
    replace_places(uses, rewriting, lambda function: "")
    prune(presence.gone, functions, rewriting)
    return ApexPlan(uses, rewriting.edits(), [], unused=True)


def _parts(condition: ast.expr | None) -> set[str]:
    """The parts of a condition that all have to hold, itself too."""
    if condition is None:
        return set()
    return {ast.dump(condition), *map(ast.dump, conjuncts(condition))}
