"""What a release changed, item by item, and what the program makes of each: the lists in `tools/releases/`.

A list is a YAML file for one release of one library:

    release: torch 2.12
    read:                     # the texts that the items come from
      - "the release notes of 2.12.0, whole"
      - "`tools/api_data.py changes torch 2.11 2.12`"
    items:
      - change: "`F.cosine_similarity` refuses integer tensors"   # one sentence, in our own words
        kind: behaviour                                           # see KINDS
        from: notes                                               # notes, sources, or both
        found: TM123                                              # one code or several
        code: |
          import torch
          y = torch.nn.functional.cosine_similarity(a.long(), b)  # here
      - change: "..."
        kind: removed
        from: sources
        left_out: "why no user's code can hold it, or why nothing is said"

`code` is a small program as a person would have written it. The lines that end with `# here`, or else the
last one, hold the change: one of the codes in `found` must be reported at each of them. An item with `found`
and without `code` is one that the examples of the rule itself show. `target` is another release of torch than
the newest that the program is checked for.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from torchmigrate.catalogue.builtin import RULES
from torchmigrate.catalogue.store import default_catalogue
from torchmigrate.config.settings import Settings
from torchmigrate.engine.engine import Engine
from torchmigrate.findings import Finding
from torchmigrate.source.text import Source

DIRECTORY = Path(__file__).parent.parent / "releases"
KINDS = ("removed", "deprecated", "default", "argument", "behaviour", "moved", "requirement")
ORIGINS = ("notes", "sources", "both")
_KEYS = {"change", "kind", "from", "found", "code", "left_out", "target"}
_MARK = "# here"


class Outcome(enum.Enum):
    """What became of an item."""

    RULE = "rule"
    DATA = "API data"
    OPT_IN = "only if selected"
    LEFT_OUT = "left out"
    MISSED = "not found"


@dataclass(frozen=True, slots=True)
class Item:
    """One change. found: the codes that are due; empty if `left_out` has the reason why there is none."""

    change: str
    kind: str
    origin: str
    found: tuple[str, ...]
    code: str | None
    left_out: str | None
    target: str | None

    @property
    def lines(self) -> tuple[int, ...]:
        """The 1-based lines of `code` that hold the change."""
        lines = (self.code or "").splitlines()
        marked = tuple(number for number, line in enumerate(lines, 1) if line.endswith(_MARK))
        return marked or (len(lines),)


@dataclass(frozen=True, slots=True)
class ReleaseList:
    """The changes of one release. read: the texts that they were taken from."""

    release: str
    read: tuple[str, ...]
    items: tuple[Item, ...]


class Checker:
    """The program with every rule, for one target after the other."""

    def __init__(self) -> None:
        catalogue = default_catalogue()
        opt_in = {head.code: head.opt_in for head in catalogue.heads}
        opt_in |= {rule.code: rule.opt_in for rule in RULES}
        self.codes = frozenset(opt_in)
        self.opt_in = frozenset(code for code in opt_in if opt_in[code])
        self._newest = Engine(catalogue, self._settings(None))

    def check(self, text: str, target: str | None = None) -> tuple[Source, list[Finding]]:
        """All findings in a program, of every rule, also of those that are off unless selected."""
        engine = self._newest if target is None else self._newest.sibling(self._settings(target))
        source = Source.from_text(text, Path("use.py"))
        return source, engine.check_source(source, Path("use.py")).findings

    def _settings(self, target: str | None) -> Settings:
        settings = Settings(codes=self.codes, known={code: code for code in self.codes})
        return settings if target is None else replace(settings, target=target)


def lists(paths: tuple[Path, ...] = ()) -> Iterator[ReleaseList]:
    """The lists in these files, or all of them, oldest release first for each library.

    Raises ValueError for a list that is not in the form above.
    """
    found = [_read(path) for path in (paths or sorted(DIRECTORY.glob("*.yaml")))]
    yield from sorted(found, key=lambda each: _order(each.release))


def outcome(item: Item, checker: Checker) -> Outcome:
    """What the program makes of an item; see the text of this module.

    Raises ValueError if a code of `found` is not that of a rule.
    """
    unknown = [code for code in item.found if code not in checker.codes]
    if unknown:
        raise ValueError(f"{item.change}: there is no rule {', '.join(unknown)}")
    if item.left_out is not None:
        return Outcome.LEFT_OUT
    codes = set(item.found)
    if item.code is not None:
        places = [codes & found for found in _reported(item, checker)]
        codes = set().union(*places) if all(places) else set()
    if not codes:
        return Outcome.MISSED
    default = codes - checker.opt_in
    if not default:
        return Outcome.OPT_IN
    return Outcome.DATA if all(code.startswith("TM00") for code in default) else Outcome.RULE


def _reported(item: Item, checker: Checker) -> Iterator[set[str]]:
    """The codes that are reported at each line that holds the change."""
    source, findings = checker.check(item.code or "", item.target)
    spans = [
        (finding.code, source.position(start)[0], source.position(end)[0])
        for finding in findings
        for start, end in ((finding.start, finding.end), *finding.places)
    ]
    for line in item.lines:
        yield {code for code, first, last in spans if first <= line <= last}


def _order(release: str) -> tuple[str, list[int]]:
    library, _, version = release.partition(" ")
    return library, [int(part) for part in version.split(".")]


def _read(path: Path) -> ReleaseList:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    if not isinstance(data, dict) or set(data) != {"release", "read", "items"}:
        raise ValueError(f"{path.name}: wants `release`, `read` and `items`")
    if path.stem != str(data["release"]).replace(" ", "-"):
        raise ValueError(f"{path.name}: is about {data['release']}")
    if not data["read"] or not all(isinstance(text, str) for text in data["read"]):
        raise ValueError(f"{path.name}: `read` names the texts that were read")
    items = tuple(_item(each, path.name) for each in data["items"] or ())
    twice = sorted({item.change for item in items if [each.change for each in items].count(item.change) > 1})
    if twice:
        raise ValueError(f"{path.name}: twice in the list: {twice[0]}")
    return ReleaseList(data["release"], tuple(data["read"]), items)


def _item(data: dict[str, Any], name: str) -> Item:
    where = f"{name}: {data.get('change', data)}"
    if unknown := set(data) - _KEYS:
        raise ValueError(f"{where}: unknown: {', '.join(sorted(unknown))}")
    if not isinstance(data.get("change"), str):
        raise ValueError(f"{where}: wants `change`")
    if data.get("kind") not in KINDS:
        raise ValueError(f"{where}: `kind` is one of {', '.join(KINDS)}")
    if data.get("from") not in ORIGINS:
        raise ValueError(f"{where}: `from` is one of {', '.join(ORIGINS)}")
    if ("found" in data) == ("left_out" in data):
        raise ValueError(f"{where}: wants either `found` or `left_out`")
    found = data.get("found", ())
    return Item(
        change=data["change"],
        kind=data["kind"],
        origin=data["from"],
        found=(found,) if isinstance(found, str) else tuple(found),
        code=data.get("code"),
        left_out=data.get("left_out"),
        target=data.get("target"),
    )
