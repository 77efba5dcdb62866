"""Whether what the old code computed is what the new code computes, of values in their plain form."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

DOUBLE = ("torch.float64", "torch.complex128", "float64", "complex128")
PRINTING = ("verbose",)  # attributes that say what is printed, and nothing of what is computed
RTOL_DOUBLE, RTOL = 1e-9, 1e-5
RAISED = "raised"  # the value of a variable whose statement raised: of an old side, it is not compared


# Classes whose objects are the same under a new name, which is what the rule that renames them says.
RENAMED = {
    "BoundingBox": "BoundingBoxes",
    "SanitizeBoundingBox": "SanitizeBoundingBoxes",
    "ConvBNActivation": "Conv2dNormActivation",
    "_DeprecatedConvBNAct": "Conv2dNormActivation",
}


def _today(name: str) -> str:
    """What the last part of a qualified name is called now."""
    last = name.rpartition(".")[2]
    return RENAMED.get(last, last)


def differences(old: Any, new: Any, where: str, requires_grad: bool = True) -> Iterator[str]:
    """Every respect in which two values differ, one line each; nothing if they are the same.

    Args:
        where: how the value is called in the lines.
        requires_grad: compare that flag of tensors as well.
    """
    if not isinstance(old, dict) or not isinstance(new, dict):
        if type(old) is not type(new) or old != new:
            yield f"{where}: {shown(old)} became {shown(new)}"
        return
    if old["kind"] != new["kind"]:
        yield f"{where}: {shown(old)} became {shown(new)}"
        return
    compare = _COMPARE.get(old["kind"])
    if compare is not None:
        yield from compare(old, new, where, requires_grad)
    elif old != new:
        yield f"{where}: {shown(old)} became {shown(new)}"


def shown(form: Any) -> str:
    """A value in its plain form, for a person."""
    if not isinstance(form, dict):
        return repr(form)
    kind = form["kind"]
    if kind == "tensor":
        return f"a {form['class']} of {form['dtype']} and shape {form['shape']}"
    for key in ("name", "value", "text"):
        if key in form:
            return str(form[key])
    return form["classes"][0] if "classes" in form else f"a {kind}"


def _tensors(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    if _today(old.get("class", "")) != _today(new.get("class", "")):
        yield f"{where}: {shown(old)} became {shown(new)}"
        return
    for name in ("dtype", "shape", "layout", "device"):
        if old.get(name) != new.get(name):
            yield f"{where}: {name} {old.get(name)} became {new.get(name)}"
            return
    if requires_grad and old.get("requires_grad") != new.get("requires_grad"):
        yield f"{where}: requires_grad {old['requires_grad']} became {new['requires_grad']}"
    rtol = RTOL_DOUBLE if old.get("dtype") in DOUBLE else RTOL
    for key in ("values", "sums"):
        a, b = old.get(key), new.get(key)
        if a != b and not (a and b and _close(a, b, rtol)):
            yield f"{where}: other values: {str(a)[:200]} became {str(b)[:200]}"


def _close(old: list[Any], new: list[Any], rtol: float) -> bool:
    a, b = list(_flat(old)), list(_flat(new))
    if len(a) != len(b):
        return False
    numbers = [abs(item) for item in a if isinstance(item, (int, float))]
    scale = max([*numbers, 1.0])
    return all(_near(x, y, rtol * scale) for x, y in zip(a, b))


def _flat(values: list[Any]) -> Iterator[Any]:
    for item in values:
        if isinstance(item, list):
            yield from item
        else:
            yield item


def _near(old: Any, new: Any, tolerance: float) -> bool:
    if isinstance(old, str) or isinstance(new, str):
        return bool(old == new)
    return bool(abs(old - new) <= tolerance)


def _floats(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    a, b = (item["value"] if isinstance(item["value"], list) else [item["value"]] for item in (old, new))
    same = all(
        x == y
        if isinstance(x, str) or isinstance(y, str)
        else math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-12)
        for x, y in zip(a, b)
    )
    if not same:
        yield f"{where}: {shown(old)} became {shown(new)}"


def _sequences(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    a, b = old["items"], new["items"]
    if len(a) != len(b):
        yield f"{where}: {len(a)} items became {len(b)}"
        return
    for index, name in enumerate(old["fields"]):
        if new["fields"][index : index + 1] != [name]:
            yield f"{where}: there is no field `{name}` any more"
    for index, (x, y) in enumerate(zip(a, b)):
        yield from differences(x, y, f"{where}[{index}]", requires_grad)


def _mappings(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    yield from _pairs(old["items"], new["items"], where, requires_grad)


def _pairs(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    keys = [[item for item, _ in pairs] for pairs in (old, new)]
    if keys[0] != keys[1]:
        yield f"{where}: keys {keys[0]} became {keys[1]}"
        return
    for (key, x), (_, y) in zip(old, new):
        yield from differences(x, y, f"{where}[{key!r}]", requires_grad)


def _modules(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    yield from _classes(old, new, where)
    if old["training"] != new["training"]:
        yield f"{where}: training {old['training']} became {new['training']}"
    yield from differences(old["state"], new["state"], f"{where}.state_dict()")


def _states(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    yield from _pairs(old["items"], new["items"], where, requires_grad)


def _sums(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    if old["names"] != new["names"]:
        yield f"{where}: other names or shapes ({old['entries']} entries became {new['entries']})"
    elif not _close(old["sums"], new["sums"], RTOL):
        yield f"{where}: other values: {old['sums']} became {new['sums']}"


def _classes(old: Any, new: Any, where: str) -> Iterator[str]:
    """Classes may differ where one is a subclass of the other; they may move, and may not be renamed."""
    a, b = ([_today(name) for name in item["classes"]] for item in (old, new))
    if not (a and b and (a[0] in b or b[0] in a)):
        yield f"{where}: {shown(old)} became {shown(new)}"


def _named(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    """What has a name of its own may have moved: to another module, or from Python to C."""
    if _today(old["name"]) != _today(new["name"]):
        yield f"{where}: {old['name']} became {new['name']}"


def _objects(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    yield from _classes(old, new, where)
    for key, value in old["state"].items():
        if key in new["state"] and not key.startswith("_") and key not in PRINTING:
            yield from differences(value, new["state"][key], f"{where}.{key}", requires_grad)


def _groups(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    """The settings of an optimiser: what both releases know."""
    if len(old["items"]) != len(new["items"]):
        yield f"{where}: {len(old['items'])} groups became {len(new['items'])}"
        return
    for index, (a, b) in enumerate(zip(old["items"], new["items"])):
        for key in a:
            if key in b:
                yield from differences(a[key], b[key], f"{where}[{index}].{key}", requires_grad)


_COMPARE = {
    "tensor": _tensors,
    "array": _tensors,
    "picture": _tensors,
    "float": _floats,
    "complex": _floats,
    "tuple": _sequences,
    "list": _sequences,
    "dict": _mappings,
    "module": _modules,
    "state": _states,
    "sums": _sums,
    "named": _named,
    "object": _objects,
    "groups": _groups,
}


def outcomes(old: Any, new: Any) -> Iterator[str]:
    """In what two sides differ, one line each: their values, and gradients where the old side had some.

    Args:
        old, new: `values` (plain forms by name) and, where they were asked for, `gradients`.
    """
    both = [name for name in old["values"] if name in new["values"]]
    for name in both:
        if name.startswith("value ") and old["values"][name] is None:
            continue  # a statement, whose effect counts
        if old["values"][name] == RAISED:
            continue
        yield from differences(old["values"][name], new["values"][name], name)
    a, b = old.get("gradients"), new.get("gradients")
    if a is None or "raised" in a:
        return  # not differentiable on the old side
    if b is None or "raised" in b:
        yield f"only the new side fails with inputs that require gradients: {b and b['raised']}"
        return
    for name, flag in a["flags"].items():
        if name in b["flags"] and b["flags"][name] != flag:
            yield f"{name}: requires_grad {flag} became {b['flags'][name]}"
    for name, form in a["of"].items():
        yield from differences(form, b["of"][name], f"gradient of {name}", False)
