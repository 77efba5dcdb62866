"""Every rule that is a plain rename, in every way in which Python lets a name be used."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.metadata
import re
import types

import pytest
from harness.catalogue import example_id, loaded_rules
from harness.fakes import Fake, fake_libraries
from harness.matrix import FIXED, REPORTED, SILENT, shapes
from harness.program import FIX_ALL, only, run
from harness.summary import HAS_TORCH

from torchmigrate.authoring.examples import EXAMPLE_PATH
from torchmigrate.semantics.public_names import public_name
from torchmigrate.semantics.walk.resolver import LIBRARY_ROOTS
from torchmigrate.versions.releases import RELEASES, parse_version, show_version
from torchmigrate.versions.surface import surface_of
from torchmigrate.versions.surface_model import EntryKind, Status


def plain_case(rule):
    """The case by which every use of the rule's symbols becomes another name, whatever the arguments are."""
    if rule.match or rule.parameters or rule.missing or rule.codemod or not rule.cases:
        return None
    case = rule.cases[0]
    changes = (
        case.when,
        case.result,
        case.pattern,
        case.map,
        case.drop,
        case.keywords,
        case.add,
        case.insert,
        case.set,
    )
    if case.rename is None or case.template or case.to_keyword or any(changes):
        return None
    return (
        case if {"call", "import", "reference"} <= set(case.roles) & set(rule.roles or case.roles) else None
    )


def renames():
    """(rule, old name, new name) of every plain rename; one member stands for all of a moved module."""
    for item in loaded_rules():
        rule = item.rule
        case = plain_case(rule)
        if case is None:
            continue
        for symbol, variables in rule.symbols.items():
            new = variables.get("new") if case.rename == "$new" else case.rename
            if new and not symbol.startswith("torch.Tensor.") and not is_of_objects(symbol, new):
                yield item, symbol, new
        for module, new in rule.modules.items():
            if new and "." in new and case.rename == "$new":  # nothing looks for a package by a name in it
                member = moved_member(rule, module, new)
                yield item, f"{module}.{member}", f"{new}.{member}"


def is_of_objects(old, new):
    """Whether objects have it, and the class need not: reached through that, it is not rewritten."""
    surface = surface_of(new)
    if surface is None:
        return False
    entries = [surface.entry(name, surface.versions[-1]) for name in (new, new.rpartition(".")[0])]
    return [entry and entry.kind for entry in entries] == [EntryKind.VALUE, EntryKind.CLASS] and is_class(
        old.rpartition(".")[0]
    )


def is_class(name):
    return name.rpartition(".")[2][:1].isupper()


def moved_member(rule, module, new):
    """A function or class of the old module that the newest release has in the new place."""
    surface = surface_of(new)
    if surface is not None and surface.partial and rule.members is None:
        return "Anything"  # what is in the new place is not known
    if surface is None or surface.partial:
        members = rule.members or ["Member"]  # any
        return min(name for name in members if f"{module}.{name}" not in rule.symbols)  # these went elsewhere
    newest = surface.versions[-1]
    found = rule.members or {
        name for version in surface.versions for name in surface.members(module, version)
    }
    kinds = {name: surface.entry(f"{new}.{name}", newest) for name in found if name[0] != "_"}
    good = (EntryKind.CLASS, EntryKind.FUNCTION)
    return min(name for name, entry in kinds.items() if entry is not None and entry.kind in good)


RENAMES = [pytest.param(*entry, id=f"{example_id(entry[0])}-{entry[1]}") for entry in renames()]


def test_there_are_renames():
    assert len(RENAMES) > 20


@pytest.mark.parametrize(("item", "old", "new"), RENAMES)
def test_every_use(item, old, new):
    rule, case = item.rule, plain_case(item.rule)
    roles = set(case.roles) & set(rule.roles or case.roles) | ({"string"} if not rule.roles else set())
    faults = []
    for shape in shapes(old, new, moved=is_moved(rule, old), in_class=old.rpartition(".")[0] in rule.symbols):
        if shape.role in roles or shape.expect == SILENT:
            faults += [f"{shape.name}: {fault}\n{shape.code}" for fault in use_faults(rule, old, new, shape)]
    assert not faults, "\n\n".join(faults)


def at_last(rule):
    """Options for the last release in which a rule says something."""
    if rule.until is None:
        return ()
    before = max(release for release in RELEASES if release < parse_version(rule.until))
    return ("--target", show_version(before))


def is_moved(rule, old):
    return old not in rule.symbols


def use_faults(rule, old, new, shape):
    options = (*only([rule.code]), *at_last(rule))
    if shape.expect == SILENT:
        return ["reported"] if run(shape.code, *options, path=EXAMPLE_PATH).findings else []
    result = run(shape.code, *options, *FIX_ALL, path=EXAMPLE_PATH)
    if result.new_text is None:
        if not result.findings:
            return ["not found"]
        return ["not rewritten"] if shape.expect == FIXED else []
    if shape.expect == REPORTED:
        return ["rewritten to\n" + result.new_text]
    return [f"{fault}, in\n{result.new_text}" for fault in text_faults(result, old, new)]


def text_faults(result, old, new):
    text = result.new_text
    if result.findings:
        yield "found again after the fix"
    yield from unused_imports(text)
    if text.count("# keep") != result.old_text.count("# keep"):
        yield "a comment was lost"
    if new.partition(".")[0] not in LIBRARY_ROOTS:
        return  # a name of the standard library: it is compared as a reference, below
    with fake_libraries(LIBRARY_ROOTS) as used:
        space = {"__name__": "example"}
        try:
            exec(compile(text, "example.py", "exec", dont_inherit=True), space)
        except Exception as error:
            yield f"running it raised {type(error).__name__}: {error}"
            return
    names = {*used, *(value.name for value in values_of(space))}
    wanted = {name for name in names if public_name(name) == public_name(new) or name == new}
    if not wanted:
        yield f"`{new}` is not used, but {sorted(names)}"
    if old in names and old != new:
        yield f"`{old}` is still used"


def values_of(space):
    """The fakes that code left behind: as variables, defaults, annotations and class attributes."""
    for value in list(space.values()):
        if isinstance(value, Fake):
            yield value
        elif isinstance(value, type):
            yield from (item for item in vars(value).values() if isinstance(item, Fake))
        elif callable(value):
            held = [
                *(getattr(value, "__defaults__", None) or ()),
                *getattr(value, "__annotations__", {}).values(),
            ]
            yield from (item for item in held if isinstance(item, Fake))


def unused_imports(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = (alias.asname or alias.name).partition(".")[0]
                if len(re.findall(rf"\b{name}\b", text)) < 2:
                    yield f"`{name}` is imported and not used"


def resolve(name):
    """The object of a qualified name, importing as much of it as is a module."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(name)


def is_testable(new):
    """Whether the new name can be imported here: of the standard library, or of an installed torch that has it."""
    root = new.partition(".")[0]
    if root == "torch" and HAS_TORCH:
        release = parse_version(".".join(importlib.import_module("torch").__version__.split(".")[:2]))
        if surface_of(new).status(new, release) is Status.ABSENT:
            return False
    # Attributes that `__init__` makes are on no class; the examples of their rules have objects.
    made = new in {"torch.utils.data.ConcatDataset.cumulative_sizes"} or ".FunctionEventAvg." in new
    return not made and (root not in LIBRARY_ROOTS or (HAS_TORCH and root == "torch"))


def is_here(rule):
    """Whether the installed torch is as new as what the rule renames to."""
    needed = plain_case(rule).requires
    if rule.library != "torch" or needed is None or not HAS_TORCH:
        return True
    return parse_version(needed) <= parse_version(importlib.metadata.version("torch"))


@pytest.mark.parametrize(
    ("item", "old", "new"),
    [entry for entry in RENAMES if is_testable(entry.values[2]) and is_here(entry.values[0].rule)],
)
def test_the_new_name_is_reached_by_the_imports(item, old, new):
    module = old.rpartition(".")[0]
    module = module if module in item.rule.modules else old.partition(".")[0]
    code = f"import {module}\nf = {old}\n"
    if "reference" not in (item.rule.roles or plain_case(item.rule).roles):
        module, _, last = old.rpartition(".")
        code = f"from {module} import {last} as f\n"
    text = run(code, *only([item.rule.code]), *at_last(item.rule), *FIX_ALL, path=EXAMPLE_PATH).new_text
    assert text is not None
    if old.startswith("torch."):
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(old.rpartition(".")[0])  # not every module is loaded with its package
    space = {}
    exec(text, space)
    assert space["f"] is resolve(new)


MOVED = [
    pytest.param(old, new, id=old)
    for item in loaded_rules()
    for old, new in item.rule.modules.items()
    if HAS_TORCH and new and plain_case(item.rule) and old.startswith("torch.") and new.startswith("torch.")
]


@pytest.mark.parametrize(("old", "new"), MOVED)
def test_moved_modules_hold_the_same_objects(old, new):
    after = resolve(new)
    try:
        before = resolve(old)
    except (ModuleNotFoundError, AttributeError):  # only the old one may be gone
        return
    # what the old module imports from elsewhere, or holds as a submodule, says nothing
    objects = {
        name: item
        for name, item in vars(before).items()
        if isinstance(item, type | types.FunctionType) and item.__module__.startswith(new) and name[0] != "_"
    }
    assert objects
    assert [name for name, item in objects.items() if getattr(after, name, None) is not item] == []
