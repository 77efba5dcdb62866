"""Files that are not Python: which kinds there are, by name, and how their text is read."""

from __future__ import annotations

import codecs
from pathlib import Path

from torchmigrate.patterns import pattern
from torchmigrate.source.text import Source, SourceError

SHELL, MAKE, DOCKER, YAML, MARKDOWN = "shell", "make", "docker", "yaml", "markdown"
TOML, INI, REQUIREMENTS, CPP = "toml", "ini", "requirements", "cpp"
SETUP = "setup"  # setup.py, which is Python, for what its strings ask for
OTHER_KINDS = (SHELL, MAKE, DOCKER, YAML, MARKDOWN, TOML, INI, REQUIREMENTS, CPP, SETUP)

_BY_SUFFIX = {
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh", ".slurm", ".sbatch", ".slrm", ".pbs"), SHELL),
    ".mk": MAKE,
    ".dockerfile": DOCKER,
    **dict.fromkeys((".yml", ".yaml"), YAML),
    **dict.fromkeys((".md", ".markdown"), MARKDOWN),
    **dict.fromkeys((".cpp", ".cc", ".cxx", ".cu", ".cuh", ".c", ".h", ".hpp", ".hxx"), CPP),
}
_BY_NAME = {
    **dict.fromkeys(("makefile", "gnumakefile"), MAKE),
    **dict.fromkeys(("dockerfile", "containerfile"), DOCKER),
    "pyproject.toml": TOML,
    "setup.cfg": INI,
    "tox.ini": INI,
    "pipfile": TOML,
}
_DOCKER = ("dockerfile.", "dockerfile-", "dockerfile_", "containerfile.")
_REQUIREMENTS = pattern(r"(?:[\w.-]*[-_.])?(?:requirements?|constraints?)(?:[-_.][\w.-]*)?\.(?:txt|in|pip)")
_LISTS = (".txt", ".in", ".pip")
# How all of them end, or begin: tested for every entry of a directory.
_ENDS = (*_BY_SUFFIX, *_LISTS, ".toml", ".cfg", ".ini", "file")
_ENDS = (*_ENDS, *(end.upper() for end in _ENDS))


def may_be_other(name: str) -> bool:
    """Whether it is worth asking for the kind of a file with this name."""
    return name.endswith(_ENDS) or name.lower().startswith(_DOCKER)


def other_kind(path: Path) -> str | None:
    """The kind of a file that is not Python, by its name; None: it is Python, or of no kind."""
    return kind_of_name(path.name, path.parent.name)


def kind_of_name(name: str, directory: str = "") -> str | None:
    """The same. directory: the name of the one that it is in."""
    folded = name.lower()
    dot = folded.rfind(".")
    kind = _BY_SUFFIX.get(folded[dot:]) if dot > 0 else None
    if kind is None:
        kind = _BY_NAME.get(folded)
    if kind is None and folded.startswith(_DOCKER):
        kind = DOCKER
    if kind is None and folded.endswith(_LISTS):
        listed = directory.lower() in ("requirements", "requirement") and folded.endswith(_LISTS[:2])
        if listed or _REQUIREMENTS.fullmatch(folded):
            kind = REQUIREMENTS
    return kind


class OtherSource(Source):
    """The text of a file that is not Python: UTF-8, or else latin-1, in which every byte is a character."""

    __slots__ = ()

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> OtherSource:
        """Decode the bytes of a file. Raises SourceError as `read` does."""
        if b"\0" in data:
            raise SourceError("contains NUL bytes: not a text file")
        bom = data.startswith(codecs.BOM_UTF8)
        body = data[3:] if bom else data
        try:
            return cls(path, body.decode(), data, "utf-8", bom)
        except UnicodeDecodeError:
            return cls(path, body.decode("latin-1"), data, "latin-1", bom)

    @property
    def kind(self) -> str:
        """One of `OTHER_KINDS`."""
        return other_kind(self.path) or SHELL

    def with_text(self, text: str) -> OtherSource:
        """The same file with another text, as of any source."""
        return type(self)(self.path, text, self.data, self.encoding, self.bom)

    def encode(self, text: str) -> bytes:
        """The bytes of a changed text. Raises SourceError if the encoding cannot express it."""
        try:
            data = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise SourceError(
                f"character {error.object[error.start]!a} does not exist in {self.encoding}"
            ) from None
        return codecs.BOM_UTF8 + data if self.bom else data
