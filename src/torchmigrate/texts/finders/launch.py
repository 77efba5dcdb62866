"""Commands that start `torch.distributed.launch`.

`torchrun` (and `python -m torch.distributed.run`, which is the same) does what the old module does with
`--use_env`. Without that, scripts are given `--local-rank` (before 2.0, `--local_rank`), which is gone: then
it depends on the script, which is looked for in the project.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Applicability, Edit, Finding, Fix, Reason, because
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.spans import replaced
from torchmigrate.texts.commands import Command, Word
from torchmigrate.texts.file import TextFile
from torchmigrate.texts.finders.words import matches

_OLD, _NEW = "torch.distributed.launch", "torch.distributed.run"
_USE_ENV = frozenset(["--use_env", "--use-env"])
_FLAGS = frozenset(["--standalone", "--no_python", "--no-python", "--run_path", "--run-path", *_USE_ENV])
_MODULE = frozenset(["-m", "--module"])
_READS = pattern(r"\bLOCAL_RANK\b")
_TAKES = pattern(r"--local[-_]rank\b|\bargs\.local_rank\b")
_PLACEHOLDER = pattern(r"[$<>{}*]|^\.\.\.$|^\[")


class _Script(Struct, frozen=True):
    """What is started. text: of the file, None if it was not found."""

    name: str | None
    text: str | None


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
    elif script.text is not None and _READS.search(script.text):
        level, why = Applicability.SAFE, ""
        if _TAKES.search(script.text):
            level, why = (
                Applicability.UNSAFE,
                "the script reads `LOCAL_RANK`, but also takes `--local-rank`",
            )
        fix = _fix(rule, command, index, (), level, because(why) if why else (), file)
    else:
        name = script.name
        if name is None:
            what = "the command does not name the script"
        elif script.text is None:
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
        return _Script(None, None)
    name = given[0]
    if name in _MODULE:
        if len(given) < 2 or _PLACEHOLDER.search(given[1]):
            return _Script(None, None)
        module = given[1].replace(".", "/")
        text = file.find_beside(f"{module}.py") or file.find_beside(f"{module}/__main__.py")
        return _Script(given[1], text)
    if not name.endswith(".py") or _PLACEHOLDER.search(name):
        return _Script(None, None)
    return _Script(name, file.find_beside(name))


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
