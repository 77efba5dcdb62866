"""The call of `amp.initialize` of a file: what it says of models, optimizers and the loss scale."""

from __future__ import annotations

import ast

from torchmigrate.codemods.apex.scaler import ELSEWHERE
from torchmigrate.codemods.apex.uses import Initialize, Uses, is_none
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.semantics.flow.functions import Functions


def the_call(uses: Uses, functions: Functions) -> Initialize:
    """The (only) call of `amp.initialize`.

    Raises:
        Unclear: there is none, or more than one, or nothing is trained with it.
    """
    if not uses.initialize:
        if not uses.places:
            raise Unclear("this file does not use the import")
        function = uses.places[0][0]
        name = "this file" if isinstance(function.node, ast.Module) else f"`{function.name}`"
        raise Unclear(ELSEWHERE.format(name=name))
    if len(uses.initialize) > 1 and not _one_of_two(uses, functions) and not _in_a_row(uses, functions):
        line = uses.initialize[1].statement.lineno
        raise Unclear(
            f"line {line} calls `amp.initialize` again; both calls need to share one scaler", line=line
        )
    if not uses.scaled and (uses.places or any(item.optimizers for item in uses.initialize)):
        raise Unclear(
            "the model is initialized here and trained in another file: create the scaler here, and pass "
            "it to the code that scales the loss"
        )
    first = uses.initialize[0]
    if uses.scaled and not any(item.optimizers for item in (first, *first.more)):
        raise Unclear.at(first.statement.lineno, "no optimizer is initialized")
    return first


def _in_a_row(uses: Uses, functions: Functions) -> bool:
    """Whether the calls of `amp.initialize` are in one block, with the same options for different objects."""
    first, *more = uses.initialize
    spots = [functions.spots[id(item.statement)] for item in uses.initialize]
    options = [
        {key: ast.dump(value) for key, value in item.given.items() if key not in ("models", "optimizers")}
        for item in uses.initialize
    ]
    objects = [ast.dump(part) for item in uses.initialize for part in (*item.models, *item.optimizers)]
    if len(set(objects)) < len(objects) or any(item != options[0] for item in options):
        return False
    first.more = more
    return all(spot.block is spots[0].block for spot in spots)


def _one_of_two(uses: Uses, functions: Functions) -> bool:
    """Whether two calls of `amp.initialize` are in both branches of one `if`, for the same objects."""
    if len(uses.initialize) > 2:
        return False
    one, other = uses.initialize
    spots = [functions.spots[id(item.statement)] for item in (one, other)]
    outer = spots[0].outer.statement if spots[0].outer is not None else None
    if not isinstance(outer, ast.If) or spots[1].outer is None or spots[1].outer.statement is not outer:
        return False
    if spots[0].block is spots[1].block or not in_place(one):
        return False
    if ast.dump(_target(one.statement)) != ast.dump(_target(other.statement)):
        return False
    free = {"loss_scale", "keep_batchnorm_fp32", "verbosity", "master_weights"}
    if all(
        getattr(item.given.get("opt_level"), "value", "O1") in ("O1", "O2", "O3") for item in (one, other)
    ):
        free.add("opt_level")
    same = {key: ast.dump(value) for key, value in one.given.items() if key not in free}
    if same != {key: ast.dump(value) for key, value in other.given.items() if key not in free}:
        return False
    alone = all(len(spot.block) == 1 for spot in spots)
    one.gone = [outer] if alone else [one.statement, other.statement]
    one.statement = outer
    scales = [ast.unparse(item.given.get("loss_scale", outer.test)) for item in (one, other)]
    if scales[0] != scales[1]:
        one.given["loss_scale"] = outer.test  # for the message about it
    return True


def scale_option(first: Initialize, uses: Uses) -> tuple[str | ast.expr | None, list[str]]:
    """The number that the scaler begins with, if one is given, and what a person should know of it.

    Raises:
        Unclear: the scale is a literal that is none.
    """
    given = first.given.get("loss_scale")
    told: list[str] = []
    for item in uses.of("set"):
        if item.value is not None:
            constant = not any(isinstance(node, (ast.Name, ast.Call)) for node in ast.walk(item.value))
            if constant and item.function is first.function:
                return item.value, told
            told.append(f"line {item.statement.lineno}: the scaler begins with its own scale")
    if given is None or is_none(given) or (isinstance(given, ast.Constant) and given.value == "dynamic"):
        return None, told
    if isinstance(given, ast.Constant):
        try:
            value = float(given.value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise Unclear.at(given.lineno, "the loss scale is not a number") from None
        return str(value), [*told, "the fixed loss scale becomes only the initial scale"]
    return None, [*told, "the scaler determines the loss scale itself, whatever the arguments say"]


def remarks(first: Initialize, uses: Uses) -> list[str]:
    """What a person should know of the rewrite."""
    given = first.given
    found: list[str] = []
    level = given.get("opt_level")
    if isinstance(level, ast.Constant) and level.value in ("O2", "O3"):
        found.append(
            f"{level.value} kept the weights in half precision; under autocast they stay in single precision"
        )
    elif level is not None and not isinstance(level, ast.Constant):
        found.append("O2 and O3, which kept the weights in half precision, now behave like O1")
    if uses.of("saved", "state_dict", "load_state_dict"):
        found.append("the amp state of old checkpoints does not load into the scaler")
    for item in uses.of("saved"):
        found.append(f"line {item.node.lineno}: the called code may only use the state of `amp`")
    options = ("keep_batchnorm_fp32", "loss_scale", "master_weights", "num_losses", "verbosity")
    idle = [
        f"`{ast.unparse(value)}`" for value in map(given.get, options) if isinstance(value, ast.Attribute)
    ]
    if idle:
        found.append(f"the options {' and '.join(idle)} have no use now: remove what is left of them")
    if "max_loss_scale" in given or "min_loss_scale" in given:
        found.append("a scaler does not limit the loss scale")
    if not is_none(given.get("num_losses")):
        found.append("all losses share one scale")
    return found


def _target(statement: ast.stmt) -> ast.AST:
    return statement.targets[0] if isinstance(statement, ast.Assign) else statement


def elements(node: ast.expr) -> list[ast.expr]:
    """The single targets of an assignment."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return [item for part in node.elts for item in elements(part)]
    return [node]


def in_place(first: Initialize) -> bool:
    """Whether the results of `amp.initialize` get the names of its arguments, or none."""
    statement = first.statement
    if not isinstance(statement, ast.Assign):
        return True
    given = [first.given[name] for name in ("models", "optimizers") if not is_none(first.given.get(name))]
    texts = [[*map(ast.unparse, elements(item))] for item in (statement.targets[0], ast.Tuple(given))]
    return texts[0] == texts[1]
