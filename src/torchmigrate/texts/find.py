"""All that rules find in one file that is not Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.model import Rule
from torchmigrate.config.settings import Settings
from torchmigrate.failures import Failures
from torchmigrate.findings import Finding
from torchmigrate.project.questions import Questions
from torchmigrate.source.text import Source
from torchmigrate.texts.file import Read, TextFile
from torchmigrate.versions.range import VersionRange

# Whatever rules are about: a file without one of these holds nothing.
_WORDS = (
    *(b"torch", b"NCCL_", b"TORCH", b"AT_", b"AOT_", b"_SPMD", b"TVM_", b"ENABLE_", b"ONNXRT_"),
    *(b"at::", b"ATen/", b"TH/", b"THC/", b"THCUNN/", b"THNN/"),  # C++ and its headers
)


def may_hold(data: bytes) -> bool:
    """Whether the bytes of a file that is not Python may hold anything; cheap."""
    return any(word in data for word in _WORDS)


class Finder(Protocol):
    """A module of `texts.finders`."""

    def find(self, rule: Rule, file: TextFile) -> Iterator[Finding | None]:
        """The findings of a rule in a file; None stands for one that says nothing at the target."""


@cache
def _finder(name: str) -> Finder:
    return cast(Finder, import_module(f"torchmigrate.texts.finders.{name}"))


class TextFinder:
    """Finds what the rules of a catalogue are about.

    read_other: gives the text of another file of the project; None: it is read.
    questions: records what was read of other files; None disables recording.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        versions: VersionRange,
        settings: Settings,
        read_other: Read | None = None,
        questions: Questions | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.versions = versions
        self.settings = settings
        self.read_other = read_other
        self.questions = questions

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """The rules that are selected."""
        return self.catalogue.of_other_files

    def findings(self, source: Source, path: Path, failures: Failures) -> list[Finding]:
        """What is found in a text, in no order; equal ones once. Of Python, only what setup.py asks for."""
        file = TextFile(source, path, self.versions, self.settings, self.read_other, questions=self.questions)
        kind = file.kind
        found: dict[tuple[str, int, int], Finding] = {}
        for rule in self.rules:
            if kind in rule.files and rule.finder is not None:
                with failures.caught(rule.code, "every finding"):
                    for finding in _finder(rule.finder).find(rule, file):
                        if finding is not None:
                            found.setdefault((finding.code, finding.start, finding.end), finding)
        return list(found.values())
