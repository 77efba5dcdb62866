"""What IPython takes in a cell besides Python: `%magic`, `!shell`, `name?`. It is masked, never edited.

A mask has as many characters and lines as the text that it covers, so that every place stays where it was,
and is valid Python without a known meaning: `%matplotlib inline` is a name of underscores.
"""

from __future__ import annotations

import ast
import re
import warnings

from msgspec import Struct

from torchmigrate.patterns import pattern

# After these, the rest of the cell is Python that shares the names of the notebook: ruff's list.
_PYTHON_CELLS = frozenset(
    ["capture", "debug", "ipytest", "prun", "pypy", "python", "python3", "time", "timeit"]
)
# Cells of other languages; of those that are not named here, the words may be names of the notebook.
_OTHER_LANGUAGES = frozenset(
    """
    bash sh script cmd system sx html HTML javascript js latex svg SVG markdown perl ruby python2 cython
    writefile file R julia sql
    """.split()
)
# What IPython runs as a magic without `%`, where nothing of the notebook has that name.
_AUTOMAGIC = frozenset(
    """
    alias cat cd clear conda cp dhist dirs env history ldir less lf lk ll load load_ext ls lsmagic lx mamba
    man matplotlib micromamba mkdir more mv pdoc pinfo pip popd pushd pwd pylab quickref reload_ext rm rmdir
    run time timeit uv who whos
    """.split()
)
_MAY_BE_COMMAND = pattern(rf"^[ \t]*(?:[/,;]|(?:{'|'.join(sorted(_AUTOMAGIC))})[ \t])", re.MULTILINE)
_FIRST_WORD = pattern(r"([^\W\d]\w*)(?:[ \t]+([^\s]*))?")
# As IPython has it: `ls -l` and `cd ../data` are commands.
_OPERATOR = pattern(
    r"(?:[-+*/%&|^@<>=!:]|//|\*\*|<<|>>)?=|-(?![A-Za-z-])|\.(?!\.|/)|[+*/%&|^@<>,:]"
    r"|and\b|or\b|in\b|is\b|if\b|not\b"
)
_LINE = pattern(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_INDENT = pattern(r"[ \t\f]*")
# All of a command: lines that a backslash joins are one.
_COMMAND = pattern(r"(?:[^\\\r\n]|\\(?!\r?\n|\r)|\\(?:\r\n|\r|\n))*")
_ASSIGNED = pattern(r"[^\W\d][\w \t.,*\[\]()'\"]*=[ \t]*(?=[%!])(?!!=)")
_HELP = pattern(r"\??\??[ \t]*%{0,2}[\w.*\[\]'\"-]+\?\??[ \t]*(?:#[^\r\n]*)?")
_TIME = pattern(r"%time[ \t]+(?=[^-\s])")
# Strings, comments, brackets and the ends of lines: all that says where a statement ends.
_TOKEN = pattern(
    r"""(?P<string>(?:'''|\"""))|'(?:[^'\\\r\n]|\\(?:\r\n|.))*'|"(?:[^"\\\r\n]|\\(?:\r\n|.))*"|\#[^\r\n]*"""
    r"""|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<joined>\\(?:\r\n|\r|\n))|(?P<end>\r\n|\r|\n)""",
    re.DOTALL,
)
_LONG_ENDS = {quotes: pattern(rf"(?:[^\\]|\\.)*?{quotes}", re.DOTALL) for quotes in ("'''", '"""')}
_WORD = pattern(r"[^\W\d]\w*")
_IN_SHELL = pattern(r"\$\{?([^\W\d]\w*)|\{([^{}\r\n]*)\}")


class Masked(Struct, frozen=True):
    """A cell with everything masked that is not Python.

    text: Python, as long as the cell. spans: offsets of what is masked. taken: names that it may use.
    """

    text: str
    spans: tuple[tuple[int, int], ...]
    taken: frozenset[str]


class _Mask(Struct, frozen=True):
    start: int
    end: int
    text: str


def masked(text: str) -> Masked | None:
    """A cell as Python; None if it is none: of another language, or run by a magic that is not known."""
    if not _may_have_magics(text):
        return Masked(text, (), frozenset())
    masks: list[_Mask] = []
    place = 0
    while place < len(text):
        start = _indented(text, place)
        if start == len(text) or text[start] in "\r\n#":  # nothing on this line, or a comment
            place = _end_of_line(text, start)
            continue
        if text.startswith("%%", start):
            name = re.compile(r"%%(\w*)").match(text, start)
            if name is None or name[1] not in _PYTHON_CELLS:
                return None
        mask = _mask_at(text, start)
        if mask is not None:
            masks.append(mask)
            start = mask.end
        place = _end_of_statement(text, start)
    taken = frozenset(name for mask in masks for name in _names(text[mask.start : mask.end]))
    return Masked(_with_masks(text, masks), tuple((mask.start, mask.end) for mask in masks), taken)


def names_in_other(text: str) -> frozenset[str]:
    """The names that a cell may use that `masked` takes for no Python."""
    magic = re.match(r"\s*%%(\w*)", text)
    if magic is not None and magic[1] in _OTHER_LANGUAGES:
        return frozenset(_names("!" + text))
    return frozenset(_WORD.findall(text))


def blank(text: str) -> str:
    """A mask for a whole cell."""
    start = len(text) - len(text.lstrip())
    return text[:start] + _underscores(text[start:])


def _may_have_magics(text: str) -> bool:
    return "%" in text or "!" in text or "?" in text or _MAY_BE_COMMAND.search(text) is not None


def _indented(text: str, place: int) -> int:
    found = _INDENT.match(text, place)
    return found.end() if found else place


def _end_of_line(text: str, place: int) -> int:
    found = _LINE.match(text, place)
    return max(found.end() if found else 0, place + 1)


def _end_of_statement(text: str, place: int) -> int:
    """Where the line begins that is after the statement that goes on at a place."""
    depth = 0
    while (found := _TOKEN.search(text, place)) is not None:
        place = found.end()
        kind = found.lastgroup
        if kind == "string":
            closed = _LONG_ENDS[found[0]].match(text, place)
            place = closed.end() if closed else len(text)
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(0, depth - 1)
        elif kind == "end" and not depth:
            return place
    return len(text)


def _mask_at(text: str, start: int) -> _Mask | None:
    """The mask for the parts that are not Python in the statement that begins at a place."""
    line = text[start : _end_of_line(text, start)].rstrip("\r\n")
    if text.startswith("%%", start):
        return _Mask(start, start + len(line), _underscores(line))
    if text[start] in "%!?/,;":
        timed = _TIME.match(line)
        if timed is not None and _parses("_;" + line[timed.end() :]):  # the rest is a statement
            return _Mask(start, start + timed.end(), "_;" + " " * (timed.end() - 2))
        return _command(text, start)
    if "?" in line and _HELP.fullmatch(line.rstrip()) is not None:
        return _Mask(start, start + len(line), _underscores(line))
    assigned = _ASSIGNED.match(line)
    if assigned is not None and _parses(
        assigned[0] + "_"
    ):  # not in a string or a call: `print("n = %d" % n)`
        return _command(text, start + assigned.end())
    word = _FIRST_WORD.match(line)
    if (
        word is not None
        and word[1] in _AUTOMAGIC
        and word[2]
        and not _OPERATOR.match(word[2])
        and not _parses(line)
    ):
        return _Mask(start, start + len(line), _underscores(line))
    return None


def _command(text: str, start: int) -> _Mask:
    end = _end_of_command(text, start)
    return _Mask(start, end, _underscores(text[start:end]))


def _end_of_command(text: str, start: int) -> int:
    found = _COMMAND.match(text, start)
    return found.end() if found else len(text)


def _parses(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _names(command: str) -> list[str]:
    """The names of the notebook that a command may use; in a shell line, those after `$` or in braces."""
    if not command.startswith("!"):
        return _WORD.findall(command)
    return [word for pair in _IN_SHELL.findall(command) for part in pair for word in _WORD.findall(part)]


def _with_masks(text: str, masks: list[_Mask]) -> str:
    parts: list[str] = []
    place = 0
    for mask in masks:
        parts += (text[place : mask.start], mask.text)
        place = mask.end
    parts.append(text[place:])
    return "".join(parts)


def _underscores(command: str) -> str:
    """A name of as many characters; lines after the first are empty."""
    ends = re.search(r"[\r\n]", command)
    first = ends.start() if ends else len(command)
    return "_" * first + re.sub(r"[^\r\n]", " ", command[first:])
