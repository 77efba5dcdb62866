"""Compares what was read with the library that is installed: names, signatures, and what was not read."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType

from api.link import Linker, is_dunder
from api.signatures import parse
from torchmigrate.versions.surface_model import ApiEntry, EntryKind

Shape = list[tuple[str, str, bool]]  # parameters: name, kind, whether it has a default
_MISSING = object()
_LANGUAGE = re.compile(r"_abc_|_is_(runtime_)?protocol$|_[a-z0-9]\w*_$")  # of abc, typing and enum


@dataclass(slots=True)
class Report:
    """compared: how many names and signatures; the lists: those that disagree, as `name: why`."""

    compared: int = 0
    signatures: int = 0
    absent: list[str] = field(default_factory=list)  # read, but not there
    differing: list[str] = field(default_factory=list)  # signatures
    unread: list[str] = field(default_factory=list)  # there, but not read, in what is not open
    not_imported: list[str] = field(default_factory=list)  # modules, mostly for want of another package
    no_signature: list[str] = field(default_factory=list)  # read without one, though there is one


def check(linker: Linker) -> Report:
    """Compares the entries with the installed library of the same release, which is imported for it."""
    report = Report()
    objects = dict(_modules(linker, report))
    for name, entry in sorted(linker.entries.items()):
        if name in linker.modules and entry.kind is EntryKind.MODULE:
            continue
        found = _find(name, objects, linker)
        if found is None:
            continue
        owner, at = found
        report.compared += 1
        if at is _MISSING:
            if name not in linker.instance_only:
                report.absent.append(name)
            continue
        if entry.signatures or entry.kind in (EntryKind.FUNCTION, EntryKind.CLASS):
            _signature(name, entry, at, owner, report)
        if entry.kind is EntryKind.CLASS and not _is_open(name, linker) and inspect.isclass(at):
            _unread_members(name, at, linker, report)
    for name, module in objects.items():
        if not linker.entries[name].open:
            _unread_names(name, module, linker, report)
    return report


def _modules(linker: Linker, report: Report) -> Iterator[tuple[str, object]]:
    for name, entry in sorted(linker.entries.items()):
        if name in linker.modules and linker.tree.hidden(name) is None:
            try:
                with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                    warnings.simplefilter("ignore")
                    importlib.import_module(name)
                if entry.kind is EntryKind.MODULE:
                    yield name, sys.modules[name]
            # Importing runs what a module wants; whatever it raises, it cannot be compared.
            except (Exception, SystemExit) as error:
                report.not_imported.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[:1]}")


def _is_open(name: str, linker: Linker) -> bool:
    """Whether a class or a base of it may have more members."""
    entry = linker.entries.get(name)
    return entry is None or entry.open or any(_is_open(base, linker) for base in entry.bases)


def _find(name: str, objects: dict[str, object], linker: Linker) -> tuple[object, object] | None:
    """The owner of a name and what it is there, `_MISSING` if it is not; None if the owner is not there."""
    owner_name, _, last = name.rpartition(".")
    if not owner_name:
        return None
    if owner_name in objects:
        owner: object = objects[owner_name]
    elif owner_name in linker.modules and linker.tree.hidden(owner_name) is None:
        module = sys.modules.get(owner_name)
        if module is None:
            return None
        owner = module
    else:
        found = _find(owner_name, objects, linker)
        if found is None or found[1] is _MISSING:
            return None
        owner = found[1]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            at = getattr(owner, last, _MISSING)
            if at is _MISSING:  # a descriptor may want an instance
                at = inspect.getattr_static(owner, last, _MISSING)
            return owner, at
    # A property of a module or class may raise what it likes; it is there.
    except Exception:
        return owner, None


def shape_of_text(signature: str) -> Shape:
    tree = parse(signature)
    assert tree is not None, signature
    found: Shape = []
    positional = [*tree.posonlyargs, *tree.args]
    first_default = len(positional) - len(tree.defaults)
    for index, parameter in enumerate(positional):
        kind = "POSITIONAL_ONLY" if index < len(tree.posonlyargs) else "POSITIONAL_OR_KEYWORD"
        found.append((parameter.arg, kind, index >= first_default))
    if tree.vararg is not None:
        found.append((tree.vararg.arg, "VAR_POSITIONAL", False))
    for parameter, default in zip(tree.kwonlyargs, tree.kw_defaults, strict=True):
        found.append((parameter.arg, "KEYWORD_ONLY", default is not None))
    if tree.kwarg is not None:
        found.append((tree.kwarg.arg, "VAR_KEYWORD", False))
    return found


def _shape(signature: inspect.Signature) -> Shape:
    return [
        (parameter.name, parameter.kind.name, parameter.default is not inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]


def _signature(name: str, entry: ApiEntry, at: object, owner: object, report: Report) -> None:
    if not callable(at):
        return
    try:
        shape = _shape(inspect.signature(at))
    except (ValueError, TypeError):
        return
    if inspect.isclass(owner) and inspect.isfunction(at):
        static = inspect.getattr_static(owner, name.rpartition(".")[2], None)
        if not isinstance(static, staticmethod) and shape and shape[0][1].startswith("POSITIONAL"):
            shape = shape[1:]
    elif inspect.isclass(owner) and shape and shape[0][0] == "self":
        shape = shape[1:]  # behind functools.lru_cache
    if not entry.signatures:
        if entry.kind is EntryKind.FUNCTION:
            report.no_signature.append(name)
        return
    report.signatures += 1
    if not any(shape_of_text(signature) == shape for signature in entry.signatures):
        report.differing.append(f"{name}: read {' '.join(entry.signatures)}, is {_text(shape)}")


def _text(shape: Shape) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
    return "(" + ", ".join(stars.get(kind, "") + name + ("=" if d else "") for name, kind, d in shape) + ")"


def _unread_members(name: str, at: type, linker: Linker, report: Report) -> None:
    for member in vars(at):
        if not is_dunder(member) and not _LANGUAGE.match(member):
            report.compared += 1
            if f"{name}.{member}" not in linker.entries and not _mangled(member, at):
                report.unread.append(f"{name}.{member}")


def _mangled(member: str, at: type) -> bool:
    return member.startswith(f"_{at.__name__.lstrip('_')}__")


def _unread_names(name: str, module: object, linker: Linker, report: Report) -> None:
    for member in dir(module):
        if is_dunder(member):
            continue
        report.compared += 1
        if f"{name}.{member}" not in linker.entries:
            what = getattr(module, member, None)
            kind = "module " + what.__name__ if isinstance(what, ModuleType) else type(what).__name__
            report.unread.append(f"{name}.{member} ({kind})")
