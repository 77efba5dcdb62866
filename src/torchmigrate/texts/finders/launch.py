"""Commands that start `torch.distributed.launch`.

`torchrun` (and `python -m torch.distributed.run`, which is the same) does what the old module does with
`--use_env`. Without that, scripts are given `--local-rank` (before 2.0, `--local_rank`), which `torchrun`
does not pass: then the fix depends on the script, which is looked up in the project.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Applicability, Edit, Finding, Fix, Reason, because
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.spans import replaced
from torchmigrate.source.trees import Nodes
from torchmigrate.texts.commands import Command, Word
from torchmigrate.texts.file import TextFile
from torchmigrate.texts.finders.words import matches

_OLD, _NEW = "torch.distributed.launch", "torch.distributed.run"
_USE_ENV = frozenset(["--use_env", "--use-env"])
_FLAGS = frozenset(["--standalone", "--no_python", "--no-python", "--run_path", "--run-path", *_USE_ENV])
_MODULE = frozenset(["-m", "--module"])
_READS = pattern(r"\bLOCAL_RANK\b")
_TAKES = pattern(r"--local[-_]rank\b|\bargs\.local_rank\b")
_MOST_IMPORTED = 400  # files that are looked for
_NEVER_IN_A_PROJECT = frozenset(["argparse", "json", "math", "numpy", "os", "random", "sys", "time", "torch"])
_PLACEHOLDER = pattern(r"[$<>{}*]|^\.\.\.$|^\[")


class _Script(Struct, frozen=True):
    """What is started.

    found: whether it is a file of the project. reads, takes: whether it, or a module of the project that it
    imports, reads `LOCAL_RANK`, and takes `--local-rank`.
    """

    name: str | None
    found: bool = False
    reads: bool = False
    takes: bool = False


def find(rule: Rule, file: TextFile) -> Iterator[Finding | None]:
    """A finding for every command that starts the launcher."""
    if _OLD not in file.source.text:
        return
    for command in file.commands:
        for index in matches(command.words, ("-m", _OLD)):
            yield _finding(rule, command, index, file)


def _finding(rule: Rule, command: Command, index: int, file: TextFile) -> Finding | None:
    words = command.words
    options = list(_options(words, index + 2))
    script = _script(words, index + 2 + len(options), file)
    flags = [word for word in options if word.text in _USE_ENV]
    blocked_by: tuple[Reason, ...] = ()
    fix: Fix | None = None
    if any(word.text in _USE_ENV for word in words) and not flags:
        blocked_by = because("`--use_env` may not be an argument of the launcher")
    elif flags:
        fix = _fix(rule, command, index, flags, Applicability.SAFE, (), file)
    elif script.reads:
        level, why = Applicability.SAFE, ""
        if script.takes:
            level, why = (
                Applicability.UNSAFE,
                "the script reads `LOCAL_RANK`, but also takes `--local-rank`",
            )
        fix = _fix(rule, command, index, (), level, because(why) if why else (), file)
    else:
        name = script.name
        if name is None:
            what = "the command does not name the script"
        elif not script.found:
            what = f"`{name}` was not found"
        else:
            what = f"`{name}` does not read `LOCAL_RANK`"
        blocked_by = because(f"`torchrun` does not pass `--local-rank`, and {what}")
    start = words[index].start
    return file.finding(rule, _OLD, (start, words[index + 1].end), fix=fix, blocked_by=blocked_by)


def _options(words: Sequence[Word], first: int) -> Iterator[Word]:
    """The words that are surely the launcher's own: its options, each with its value."""
    index = first
    while index < len(words):
        word = words[index]
        if not word.text.startswith("-") or word.text in _MODULE:
            return
        yield word
        index += 1
        if "=" not in word.text and word.text not in _FLAGS:
            if index < len(words):
                yield words[index]
            index += 1


def _script(words: Sequence[Word], index: int, file: TextFile) -> _Script:
    given = [word.text for word in words[index : index + 2]]
    if not given:
        return _Script(None)
    name = given[0]
    if name in _MODULE:
        if len(given) < 2 or _PLACEHOLDER.search(given[1]):
            return _Script(None)
        module = given[1].replace(".", "/")
        text = file.find_beside(f"{module}.py") or file.find_beside(f"{module}/__main__.py")
        return _read(given[1], None if text is None else [text])
    if not name.endswith(".py") or _PLACEHOLDER.search(name):
        return _Script(None)
    text = file.find_beside(name)
    return _read(name, None if text is None else _with_imported(name, text, file))


def _read(name: str, texts: Iterable[str] | None) -> _Script:
    reads = takes = False
    for text in texts or ():
        reads = reads or _READS.search(text) is not None
        takes = takes or _TAKES.search(text) is not None
        if reads and takes:
            break
    return _Script(name, texts is not None, reads, takes)


def _with_imported(name: str, text: str, file: TextFile) -> Iterator[str]:
    """The text of a script, and of the modules of its project that it imports, directly or not."""
    waiting = [(name, text)]
    seen = {name}
    while waiting:
        name, text = waiting.pop()
        yield text
        for other in _imported(name, text, name.count("/")):
            if other not in seen and len(seen) < _MOST_IMPORTED:
                seen.add(other)
                found = file.find_beside(other)
                if found is not None:
                    waiting.append((other, found))


def _imported(name: str, text: str, depth: int) -> Iterator[str]:
    """The files that may hold the modules that a file imports, in its directory and those around it."""
    around = name.split("/")[:-1]
    for level, parts in _modules(text):
        for place in range(depth, -1, -1) if level == 0 else [len(around) - level + 1]:
            if place >= 0:
                path = "/".join([*around[:place], *parts])
                yield f"{path}.py"
                yield f"{path}/__init__.py"


@lru_cache(maxsize=512)  # many commands start the same few scripts
def _modules(text: str) -> list[tuple[int, list[str]]]:
    """The modules that a file may import, with the level of each import, and the parts of the name."""
    try:
        nodes = Nodes(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = [(0, alias.name.split(".")) for node in nodes(ast.Import) for alias in node.names]
    for node in nodes(ast.ImportFrom):
        base = node.module.split(".") if node.module else []
        found += [(node.level, base), *((node.level, [*base, alias.name]) for alias in node.names)]
    return [(level, parts) for level, parts in found if parts and parts[0] not in _NEVER_IN_A_PROJECT]


def _fix(
    rule: Rule,
    command: Command,
    index: int,
    flags: Sequence[Word],
    level: Applicability,
    reasons: tuple[Reason, ...],
    file: TextFile,
) -> Fix | None:
    text, words = file.source.text, command.words
    python, module = words[index - 1] if index else None, words[index + 1]
    if text[module.start : module.end].strip("\"',[]") != _OLD:
        return None
    edits: list[Edit] = []
    plain = python is not None and text[python.start : module.end] == f"python -m {_OLD}"
    if plain and python is not None and not command.listed:
        new, requires = "torchrun", "1.10"
        edits.append(replaced(python.start, module.end, new))
    else:
        new, requires = f"-m {_NEW}", "1.9"
        start = text.index(_OLD, module.start, module.end)
        edits.append(replaced(start, start + len(_OLD), _NEW))
    for flag in flags:
        number = words.index(flag)
        if command.listed:
            return None
        # With the blank, or the end of line, before it.
        edits.append(replaced(words[number - 1].end, flag.end, ""))
    return file.fix(rule, f"Use `{new}`", edits, requires=requires, level=level, reasons=reasons)
