"""What is known of a file that is not Python, and how what finds something in it makes findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from torchmigrate.catalogue.model import Case, Rule
from torchmigrate.catalogue.pages import url_of
from torchmigrate.catalogue.variants import rule_for_symbol
from torchmigrate.config.settings import Settings
from torchmigrate.files.digests import digest_of
from torchmigrate.files.paths import entries
from torchmigrate.files.reading import UnreadableError, is_below, read
from torchmigrate.findings import Applicability, Edit, Finding, Fix, Obstacle, Reason, Severity, Timeline
from torchmigrate.project.listing import project_around
from torchmigrate.project.questions import TEXT, Questions
from torchmigrate.source.other import MARKDOWN, SETUP, OtherSource
from torchmigrate.source.text import Source
from torchmigrate.texts.commands import Command, commands_of
from torchmigrate.texts.cpp import Code
from torchmigrate.texts.pins import PinGroup, groups_of
from torchmigrate.versions.range import VersionRange, applicability, severity, timeline

Read = Callable[[Path], str | None]


class TextFile:
    """One text; what several rules need of it is worked out once.

    kind: one of `source.other.OTHER_KINDS`; what the name of the file says, if it is not given.
    read_other: gives the text of another file of the project, None if it is not there.
    questions: records what was read of other files; None disables recording.
    """

    def __init__(
        self,
        source: Source,
        path: Path,
        versions: VersionRange,
        settings: Settings,
        read_other: Read | None = None,
        kind: str | None = None,
        questions: Questions | None = None,
    ) -> None:
        self.source = source
        self.kind = kind or (source.kind if isinstance(source, OtherSource) else SETUP)
        self.path = path
        self.versions = versions
        self.settings = settings
        self.read_other = read_other or self._read
        self.questions = questions

    @cached_property
    def project(self) -> Path:
        """The root of its repository; without one, the directory that the patterns of the run are for."""
        return project_around(self.path, self.settings.root)

    def _read(self, path: Path) -> str | None:
        try:
            # Most of the files that a command or an import may mean are not there.
            data = read(path, within=self.project) if path.name in entries(path.parent) else None
        except UnreadableError:
            data = None
        if self.questions is not None:
            answer = None if data is None else digest_of(data).hex()
            self.questions.add(TEXT, self.path, (str(path),), answer)
        return None if data is None else data.decode("utf-8", "replace")

    @cached_property
    def commands(self) -> list[Command]:
        """The commands in it."""
        return list(commands_of(self.source.text, self.kind))

    @cached_property
    def code(self) -> Code:
        """Its tokens, if it is C++."""
        return Code(self.source.text, self.path.absolute(), self.read_other)

    @cached_property
    def pins(self) -> list[PinGroup]:
        """The requirements of torch and its companions, by what is installed together."""
        text = self.source.text
        commands = self.commands if "install" in text or "create" in text else ()
        return [group for group in groups_of(text, self.kind, commands) if group.pins]

    def finding(
        self,
        rule: Rule,
        symbol: str,
        span: tuple[int, int],
        *,
        fix: Fix | None = None,
        values: Mapping[str, str] | None = None,
        blocked_by: tuple[Reason, ...] = (),
        advice: str | None = None,
        excluded: str | None = None,
    ) -> Finding | None:
        """What a rule says of a part of the text; None: nothing, in this range of releases.

        symbol: which of those of the rule it is, and its `{name}`. values: more variables of its texts.
        excluded: as in `Timeline`, of what asks for releases.
        """
        own = rule_for_symbol(rule, symbol)
        level = severity(own, self.versions) if own.level is None else Severity[own.level.upper()]
        if level is None:
            return None
        variables = {
            "name": symbol,
            **rule.symbols.get(symbol, {}),
            "target": self.versions.target,
            **(values or {}),
        }
        advice = advice or own.advice
        return Finding(
            code=rule.code,
            name=rule.name,
            message=_filled(rule.summary, variables),
            severity=level,
            start=span[0],
            end=span[1],
            help=_filled(advice, variables) if advice else None,
            blocked_by=blocked_by,
            fix=fix,
            url=url_of(rule),
            symbol=variables["name"],
            timeline=timeline(own, self.versions)
            if own.level is None
            # Instructions for people keep nothing from being installed.
            else Timeline(own.library, excluded=None if self.kind == MARKDOWN else excluded),
        )

    def fix(
        self,
        rule: Rule,
        title: str,
        edits: Iterable[Edit],
        *,
        requires: str | None = None,
        level: Applicability = Applicability.SAFE,
        reasons: tuple[Reason, ...] = (),
    ) -> Fix:
        """A fix of a rule, as safe as the range of releases and the configuration let it be.

        requires: the first release that has the new code; None: what the rule says.
        """
        case = rule.cases[0] if rule.cases else Case()
        if requires is not None:
            case = replace(case, requires=requires)
        found, held_by = applicability(case, rule, self.versions)
        level, held_by = min(level, found), (*held_by, *reasons)
        if level is Applicability.UNSAFE and self.settings.promotes(rule.code):
            level = Applicability.SAFE
        elif level is Applicability.SAFE and self.settings.demotes(rule.code):
            level, held_by = Applicability.UNSAFE, (Reason(Obstacle.CONFIGURATION),)
        needs = () if case.requires is None else (_named(case.requires, rule.library),)
        return Fix(
            title, level, tuple(edits), () if level is Applicability.SAFE else held_by, (), rule.code, needs
        )

    def find_beside(self, name: str) -> str | None:
        """The text of a file of the project that a command of this file may mean by a relative path."""
        if name.startswith("/") or "$" in name or "\\" in name:
            return None
        place = self.path.absolute().parent
        for directory in (place, *place.parents):
            text = self.read_other(directory / name)
            if text is not None:
                return text
            if directory == self.project or not is_below(str(directory), str(self.project)):
                return None
        return None


def _named(requires: str, library: str) -> str:
    return requires if " " in requires else f"{library} {requires}"


def _filled(text: str, values: Mapping[str, str]) -> str:
    for key, value in values.items():
        text = text.replace("{" + key + "}", value)
    return text
