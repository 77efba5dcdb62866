"""Markdown of texts that are not Markdown but for code in backticks, as messages and rules are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\*_{}\[\]#])")
_LANGUAGES = {
    ".py": "python",
    ".sh": "bash",
    ".slurm": "bash",
    ".mk": "make",
    ".yml": "yaml",
    ".yaml": "yaml",
    ".md": "markdown",
    ".toml": "toml",
    ".cfg": "ini",
    ".ini": "ini",
    ".cpp": "cpp",
    ".cu": "cuda",
    ".h": "cpp",
    ".cuh": "cuda",
}
_BY_NAME = {"Dockerfile": "docker", "Makefile": "make"}


def prose(text: str) -> str:
    """Text on one line; what is in backticks stays code."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _SPECIAL.sub(r"\\\1", text)
    return re.sub(r"(https?://[^\s),;]+)", lambda match: f"<{match[1]}>".replace("\\", ""), text)


def cell(text: str) -> str:
    """`prose` for a cell of a table."""
    return prose(text).replace("|", "\\|")


def code(text: str) -> str:
    """Text as code in a line."""
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def fenced(text: str, file: str | None = None, language: str = "python") -> str:
    """A block of code. file: its name, which says what it is; it is shown."""
    ticks = "`" * max(3, *(len(found) + 1 for found in re.findall(r"`+", text)), 3)
    if file is None:
        return f"{ticks}{language}\n{text}\n{ticks}"
    suffix = "." + file.rpartition(".")[2]
    language = _BY_NAME.get(file.partition(".")[0]) or _LANGUAGES.get(suffix, "text")
    return f'{ticks}{language} title="{file}"\n{text}\n{ticks}'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
