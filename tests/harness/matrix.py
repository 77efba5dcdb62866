"""Code in which one library name is used, in every way in which Python lets it be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

FIXED, REPORTED, FOUND, SILENT = "fixed", "reported", "found", "silent"


@dataclass(frozen=True, slots=True)
class Shape:
    """A use of a name.

    expect: "fixed" (found, and rewritten), "reported" (found, not rewritten), "found" (rewritten or not) or
        "silent" (not found).
    role: in which syntactic place it is used; a rule that is not about that place is not asked.
    """

    name: str
    code: str
    expect: str = FIXED
    role: str = "call"


def shapes(old: str, new: str, moved: bool = False, in_class: bool = False) -> Iterator[Shape]:
    """Every way to use `old`, which is to become `new` without any change of arguments.

    moved: it is a member of a module that has moved, so that code asks for the module.
    in_class: it is an attribute of a class, so that it cannot be imported.
    """
    if in_class:
        yield from (shape for shape in _shapes(old, new, moved) if not _imports(shape.code, old))
    else:
        yield from _shapes(old, new, moved)


def _imports(code: str, name: str) -> bool:
    """Whether a name, or what it is an attribute of, is imported as if that were a module."""
    module = name.rpartition(".")[0]
    return any(
        text in code
        for text in (f"from {module} ", f"import {module}\n", f"import {module} as", f".{module} ")
    )


def _shapes(old: str, new: str, moved: bool) -> Iterator[Shape]:
    module, _, last = old.rpartition(".")
    root = old.partition(".")[0]
    above, _, below = module.rpartition(".")
    yield Shape("plain", f"import {root}\n\n{old}(1)\n")
    yield Shape("module import", f"import {module}\n\n{old}(1)\n")
    yield Shape("aliased module", f"import {module} as m\n\nm.{last}(1)\n")
    if above:
        yield Shape("module from its parent", f"from {above} import {below}\n\n{below}.{last}(1)\n")
        yield Shape("aliased module from its parent", f"from {above} import {below} as m\n\nm.{last}(1)\n")
    if not moved:  # the module itself, as a value, is not what another module is
        yield Shape("assigned module", f"import {module}\n\nm = {module}\nm.{last}(1)\n")
    yield Shape("from import", f"from {module} import {last}\n\n{last}(1)\n")
    yield Shape("from import as", f"from {module} import {last} as used\n\nused(1)\n")
    yield Shape("from import, two uses", f"from {module} import {last}\n\n{last}(1)\n{last}({last}(2))\n")
    yield Shape("from import in brackets", f"from {module} import (\n    {last},\n)\n\n{last}(1)\n")
    yield Shape("star import", f"from {module} import *\n\n{last}(1)\n", REPORTED)
    yield Shape("in a function", f"import {root}\n\ndef f(x):\n    return {old}(x)\n\nf(1)\n")
    yield Shape(
        "imported in a function",
        f"def f(x):\n    from {module} import {last}\n    return {last}(x)\n\nf(1)\n",
    )
    yield Shape(
        "in a class",
        f"from {module} import {last}\n\nclass C:\n    def f(self):\n        return {last}(1)\n\nC().f()\n",
    )
    yield Shape("class attribute", f"import {root}\n\nclass C:\n    f = {old}\n", role="reference")
    yield Shape("decorator", f"import {root}\n\n@{old}\ndef f():\n    pass\n", role="decorator")
    yield Shape("called decorator", f"import {root}\n\n@{old}(1)\ndef f():\n    pass\n")
    yield Shape("base class", f"import {root}\n\nclass C({old}):\n    pass\n", role="base")
    yield Shape("reference", f"import {root}\n\nf = {old}\n", role="reference")
    yield Shape("default value", f"import {root}\n\ndef f(x={old}):\n    return x\n", role="reference")
    yield Shape("annotation", f"import {root}\n\ndef f(x: {old}):\n    return x\n", role="annotation")
    yield Shape("star arguments", f"import {root}\n\nargs, kw = [1], {{}}\n{old}(*args, **kw)\n")
    yield Shape("comment and spaces", f"# keep\nimport {root}\n\n{old} ( 1 ,)  # keep\n")
    yield Shape("getattr", f"import {module}\n\ngetattr({module}, '{last}')(1)\n", FOUND, "reference")
    yield Shape("string", f"from unittest import mock\n\nmock.patch('{old}')\n", REPORTED, role="string")
    yield Shape(
        "version guard",
        f"import {root}\nimport torch\nfrom packaging import version\n\n"
        f"if version.parse(torch.__version__) < version.parse('1.0'):\n    {old}(1)\n",
        SILENT,
    )
    yield from _handled(old, new, moved)
    yield Shape("parameter", f"def f({root}):\n    return {old}(1)\n", SILENT)
    yield Shape("local variable", f"def f():\n    {root} = load()\n    return {old}(1)\n", SILENT)
    yield Shape("loop variable", f"for {root} in ():\n    {old}(1)\n", SILENT)
    yield Shape("comprehension variable", f"[{old}(1) for {root} in ()]\n", SILENT)
    yield Shape("result of a call", f"import mine\n\nmine.{old}(1)\nmine().{old}(1)\n", SILENT)
    yield Shape("own function", f"def {last}(x):\n    return x\n\n{last}(1)\n", SILENT)
    yield Shape("relative import", f"from .{module} import {last}\n\n{last}(1)\n", SILENT)


def _handled(old: str, new: str, moved: bool) -> Iterator[Shape]:
    """Code that knows both names, and so works on both sides."""
    module, _, last = old.rpartition(".")
    new_module, _, new_last = new.rpartition(".")
    if not new_module:
        return
    whole = moved and "." in new_module
    parent, _, name = new_module.rpartition(".") if whole else (new_module, "", new_last)
    has = f"hasattr({parent}, '{name}')"
    roots = f"import {old.partition('.')[0]}\nimport {new.partition('.')[0]}\n"
    yield Shape(
        "hasattr guard",
        f"{roots}\nif {has}:\n    f = {new}\nelse:\n    f = {old}\n",
        SILENT,
    )
    yield Shape(
        "early return",
        f"{roots}\ndef f(x):\n    if {has}:\n        return {new}(x)\n    return {old}(x)\n",
        SILENT,
    )
    yield Shape(
        "conditional expression",
        f"{roots}\nf = {new} if {has} else {old}\n",
        SILENT,
    )
    yield Shape(
        "try the new one first",
        f"try:\n    from {new_module} import {new_last} as f\n"
        f"except ImportError:\n    from {module} import {last} as f\n\nf(1)\n",
        SILENT,
    )
