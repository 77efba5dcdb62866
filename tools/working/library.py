"""What the installed libraries have, and what lines of code give there. Needs torch, nothing of torchmigrate.

Runs in a process of its own, since some modules end the process that imports them:

    python -m working.library names    < JSON list of modules to leave out    > a JSON line for each module
    python -m working.library compare  < a JSON line of what is meant, then one for each pair
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import keyword
import logging
import os
import sys
import types
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from unittest import mock

LIBRARIES = ("torch", "functorch", "torchvision", "torchaudio")


class Pair(NamedTuple):
    """A function before and after its fix.

    before, imports: the lines at the top of the file and of the fixed file whose names the function uses.
    """

    label: str
    old: str
    new: str
    before: str
    imports: str


# ---- importing -----------------------------------------------------------------------------------------


def import_libraries() -> list[str]:
    """Import those that can be; their names.

    The wheels of torchvision and torchaudio on PyPI are made for CUDA: the first needs the operators that it
    describes in Python, the second must not see its own compiled part.
    """
    import torch

    if not hasattr(torch.ops.torchvision, "nms"):
        library: Any = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import_libraries.kept = library  # type: ignore[attr-defined]  # gone with the object otherwise
    glob = Path.glob

    def without_compiled(self: Path, *args: Any, **options: Any) -> Iterator[Path]:
        return iter(()) if self.parts[-2:] == ("torchaudio", "lib") else glob(self, *args, **options)

    with mock.patch.object(Path, "glob", without_compiled):
        return [name for name in LIBRARIES if imported(name) is not None]


def imported(module: str) -> types.ModuleType | None:
    """A module without what it prints; None if it cannot be imported here."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return importlib.import_module(module)
    except BaseException as error:  # some raise SystemExit
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def modules_of(library: str) -> list[str]:
    """All Python modules in the directory of a library, sorted."""
    origin = sys.modules[library].__file__
    assert origin is not None, "a package of files"
    top = Path(origin).parent
    found = []
    for path in top.rglob("*.py"):
        parts = [library, *path.relative_to(top).with_suffix("").parts]
        if all(part.isidentifier() for part in parts) and parts[-1] != "__main__":
            found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return sorted(set(found))


# ---- names ---------------------------------------------------------------------------------------------


class Reader:
    """Reads the names of modules; gives every class of the libraries a number."""

    def __init__(self) -> None:
        self._classes: dict[int, tuple[type, int]] = {}  # with the class, so that no other gets its id

    def names_of(self, module: types.ModuleType) -> tuple[dict[str, int | None], list[str], dict[int, Any]]:
        """What `lines.Members` holds: public names, those of `import *`, attributes of new classes."""
        names: dict[str, int | None] = {}
        classes: dict[int, Any] = {}
        for name in dir(module):
            if not _is_public(name):
                continue
            try:
                value = getattr(module, name)
                own = isinstance(value, type) and _is_own(value)
            except Exception:  # lazy ones whose own import fails
                continue
            names[name] = None
            if own:
                known = len(self._classes)
                _, names[name] = self._classes.setdefault(id(value), (value, known))
                if len(self._classes) > known:
                    classes[known] = attributes_of(value)
        stars = getattr(module, "__all__", names)
        return names, sorted(name for name in names if name in stars), classes


def attributes_of(value: type) -> tuple[list[str], list[str]]:
    """Public attributes of a class: its own, and inherited ones of other classes of the libraries."""
    own = {name for name in vars(value) if _is_public(name)}
    inherited = {name for base in value.__mro__[1:] if _is_own(base) for name in vars(base)}
    return sorted(own), sorted(name for name in inherited - own if _is_public(name))


def _is_public(name: str) -> bool:
    return name[:1] != "_" and name.isidentifier() and not keyword.iskeyword(name)


def _is_own(value: type) -> bool:
    return str(value.__module__).partition(".")[0] in LIBRARIES


def print_names(left_out: set[str], out: TextIO) -> None:
    """Begin a line before a module is imported, and end it with its names: the last one may be the end."""
    reader = Reader()
    for library in import_libraries():
        for name in modules_of(library):
            if name in left_out:
                continue
            out.write(f'{{"module": "{name}", ')
            out.flush()
            module = imported(name)
            out.write(f'"names": {json.dumps(reader.names_of(module) if module else None)}}}\n')
            out.flush()


# ---- comparing -----------------------------------------------------------------------------------------


def value_of(function: str, imports: str) -> Any:
    """What a function without parameters returns, in a module with only these imports."""
    space: dict[str, Any] = {"__name__": "example"}
    exec(imports, space)
    exec(function, space)
    (made,) = (space[node.name] for node in ast.parse(function).body if isinstance(node, ast.FunctionDef))
    return made()


def same(old: Any, new: Any) -> bool:
    """Whether two values are the same thing; what is bound to an object is made anew at every access."""
    bound = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)
    return old is new or (isinstance(old, bound) and isinstance(new, bound) and bool(old == new))


def object_of(name: str) -> Any:
    """What a qualified name is; None where it is not there."""
    parts = name.split(".")
    for number in range(len(parts), 0, -1):
        value: Any = imported(".".join(parts[:number]))
        if value is not None:
            for part in parts[number:]:
                value = getattr(value, part, None)
            return value
    return None


def difference(pair: Pair, meant: Sequence[Sequence[str]]) -> str | None:
    """What is wrong with the new code; None where it gives what the old one gives, or that does not work.

    meant: old and new names of what is another object on purpose.
    """
    try:
        new = value_of(pair.new, pair.imports)
    except Exception as error:
        try:
            value_of(pair.old, pair.before)
        except Exception:
            return None
        return f"{type(error).__name__}: {error}"
    try:
        old = value_of(pair.old, pair.before)
    except Exception:
        return None
    if same(old, new) or any(object_of(first) is old and object_of(second) is new for first, second in meant):
        return None
    return f"{old!r:.80} is not {new!r:.80}"


def needs(pair: Pair) -> tuple[str, ...]:
    """What new code imports, and what it takes attributes of: two that need the same fail alike."""
    tree = ast.parse(f"{pair.imports}\n{pair.new}")
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.append(ast.unparse(node.value))
    return tuple(sorted(set(found)))


def in_child(pairs: list[Pair], meant: Sequence[Sequence[str]]) -> dict[int, str | None] | None:
    """The differences, by number, as a child process sees them; None if it did not live to the end."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with os.fdopen(writer, "w") as out, contextlib.redirect_stdout(io.StringIO()):
            json.dump([difference(pair, meant) for pair in pairs], out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return dict(enumerate(json.loads(text))) if text.endswith("]") else None


def print_differences(pairs: list[Pair], meant: Sequence[Sequence[str]], out: TextIO) -> None:
    """Print label and difference of the pairs that differ.

    Of those that need the same module which is not imported yet, the first runs in a process of its own,
    since another line may have imported what this one lacks; so does what fails, since another line may have
    done harm.
    """
    libraries = import_libraries()
    later = {name for library in libraries for name in modules_of(library)} - sys.modules.keys()
    groups: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(tuple(name for name in needs(pair) if name.rstrip(".") in later), []).append(pair)
    together = groups.pop((), [])
    alone = [group[0] for group in groups.values()]
    together += [pair for group in groups.values() for pair in group[1:]]
    answers = (in_child(together, meant) if together else {}) or dict.fromkeys(range(len(together)), "died")
    alone += [together[number] for number, said in answers.items() if said is not None]
    for pair in alone:
        said = (in_child([pair], meant) or {0: "the process ended"})[0]
        if said is not None:
            print(json.dumps({"label": pair.label, "difference": said}), file=out)


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable()
    if sys.argv[1] == "names":
        print_names(set(json.load(sys.stdin)), sys.stdout)
    else:
        meant = json.loads(sys.stdin.readline())
        print_differences([Pair(*json.loads(line)) for line in sys.stdin], meant, sys.stdout)


if __name__ == "__main__":
    main()
