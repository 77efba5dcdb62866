"""Groups of fixes: which ones a project needs, and how they become commits."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from torchmigrate import __version__
from torchmigrate.catalogue.codes import PINS
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.recorded import recorded_names
from torchmigrate.config.settings import Layer
from torchmigrate.engine.results import FileResult
from torchmigrate.evidence.carried import carry
from torchmigrate.findings import Applicability, Finding, Problem, Severity
from torchmigrate.project.discover import discover_for
from torchmigrate.report.console import Console
from torchmigrate.rewrite.apply import save
from torchmigrate.run.configurations import Configurations, guesses
from torchmigrate.run.engines import Engines, scopes_of
from torchmigrate.run.needs import newest_of
from torchmigrate.run.runner import run
from torchmigrate.source.kinds import read_source
from torchmigrate.source.text import SourceError
from torchmigrate.upgrade.model import Applied, FixGroup, Hunk
from torchmigrate.upgrade.processes import Clock
from torchmigrate.upgrade.tools import Tool
from torchmigrate.upgrade.workspace import Workspace
from torchmigrate.versions.detect import Requirements
from torchmigrate.versions.releases import Version, parse_version, show_version

_OLDEST = "0.1"  # where a project does not say which torch it supports
_PASSES = 5  # fixes make place for others: at most so many times
_NOTEBOOK = ".ipynb"
_PINS = "pins"
_NOTEBOOKS = "notebooks"
_SMALL = "small"  # the folder of codemods that are not a whole migration
_MOST_LINES = 20_000  # of a file whose single lines may be reverted
_MOST_WHY = 300  # characters of what a commit says of a rule
_REPLACE = "Replace with "
_WIDTH = 72  # of the first line of a commit's message


class Exclusion(Struct):
    """What is left out of a group. whole: all of it; paths: files; hunks: lines, by file."""

    whole: bool = False
    paths: set[str] = field(default_factory=set)
    hunks: dict[str, list[Hunk]] = field(default_factory=dict)

    def after(self) -> Exclusion:
        """The same where lines have moved: of a file, all or nothing is left out."""
        return Exclusion(self.whole, self.paths | set(self.hunks))


Exclusions = dict[str, Exclusion]


class Inspection(Struct, frozen=True):
    """What is found in a tree: findings by path, relative to the tree, and what could not be read."""

    findings: dict[str, list[Finding]]
    problems: list[Problem]


class Fixer:
    """Makes the fixes of a project.

    Args:
        target: also used as the minimum: support for older releases does not make a fix unsafe.
        unsafe: unsafe fixes are made, too.
        tools: other tools that the user requested.
        guessed: what rules that only guess say of these files is fixed, too: paths by the code of the rule.
        only: codes and paths; nothing else is fixed. None: everything is.
    """

    def __init__(
        self,
        space: Workspace,
        target: Version,
        console: Console,
        clock: Clock,
        *,
        unsafe: bool,
        jobs: int | None = None,
        tools: Sequence[Tool] = (),
        guessed: Mapping[str, Collection[str]] | None = None,
        only: tuple[Collection[str], Collection[str]] | None = None,
    ) -> None:
        self.space = space
        self.target = show_version(target)
        self.console = console
        self.clock = clock
        self.unsafe = unsafe
        self.jobs = jobs
        self.tools = tools
        self.guessed = guessed or {}
        self.only = only
        self._written_for = self._oldest()
        self._exclude = tuple(f"/{name}/" for name in space.git.submodules())

    def _oldest(self) -> str:
        """The oldest torch that the project supported before, by which its code does not change.

        Noted before anything is done: fixes raise what is required.
        """
        known = self.space.record("written_for")
        if known is None:
            required = Requirements().of(self.space.project / "_").minimum
            known = show_version(required) if required is not None else _OLDEST
            if parse_version(known) > parse_version(self.target):
                known = self.target
            self.space.note("written_for", known)
        return str(known)

    # ---- looking -----------------------------------------------------------------------------------------

    @cached_property
    def _catalogue(self) -> Catalogue:
        return self._configurations(None, fix=False).of(self.space.project).catalogue

    @property
    def names(self) -> frozenset[str]:
        """What a recording looks for: the names that the rules are about."""
        return recorded_names(self._catalogue)

    @property
    def guesses(self) -> frozenset[str]:
        """The codes of the rules that `look` asks only when it is `guessing`."""
        return guesses(self._catalogue)

    @property
    def decided_by_runs(self) -> frozenset[str]:
        """The codes of the rules whose right fix only a recording tells."""
        return frozenset(
            rule.code
            for rule in self._catalogue.rules
            if any(each.kind == "other-shape" for case in rule.cases for each in case.when.values())
        )

    def look(self, *, guessing: bool = False) -> Inspection:
        """What is found in the tree as it is, with the fixes that would be made.

        guessing: with the rules that only guess whether a place is affected.
        """
        configurations = self._configurations(None, fix=False, guessing=guessing)
        results = self._run(configurations, None)
        found = {self._shown(result.path): result.findings for result in results if result.findings}
        return Inspection(found, [problem for result in results for problem in result.problems])

    def runs_from(self) -> str | None:
        """The first torch on which the tree may run, by the names and parameters that it uses; None: any."""
        layer = replace(self._layer(None), minimum=None)
        configurations = Configurations(layer, detect=False, start=self.space.project)
        files = [path for path in self.files() if path.suffix == ".py"]
        if not files:
            return None
        scopes, _ = scopes_of(files, configurations, self.console)
        engines = Engines(configurations, scopes)
        engines.load()
        needs = [result.needs for result in run(files, _Needs(engines), self.jobs) if result.needs]
        return show_version(max(needs)) if needs else None

    def advice(self, group: FixGroup) -> str:
        """What to do by hand where the fixes of a group were taken back."""
        rules = [self._catalogue.find(code) for code in group.codes]
        found = [rule.advice.strip() for rule in rules if rule is not None and rule.advice]
        explained = " and ".join(f"`torchmigrate explain {code}`" for code in group.codes[:3])
        return found[0] if found else (f"{explained} explains the change" if explained else "")

    def kept_by(self, group: FixGroup) -> str | None:
        """What to do where fixes keep the default that the target has, and the old one is wanted; None: they
        do not."""
        if self.old_default(group) is None:
            return None
        rule = self._catalogue.find(group.codes[0])
        return " ".join(rule.advice.split()) if rule is not None and rule.advice else None

    def old_default(self, group: FixGroup) -> str | None:
        """The rule that only guesses, and writes the old default where a fix of a group keeps the new one."""
        rules = [self._catalogue.find(code) for code in group.codes]
        kept = rules[0] if len(rules) == 1 else None
        others = map(self._catalogue.find, sorted(self.guesses)) if kept is not None and kept.changed else ()
        return next(
            (
                rule.code
                for rule in others
                if rule is not None
                and rule.code not in group.codes
                and kept is not None
                and rule.changed == kept.changed
                and not set(rule.symbols).isdisjoint(kept.symbols)
            ),
            None,
        )

    def groups(self, found: Mapping[str, Sequence[Finding]]) -> dict[FixGroup, list[str]]:
        """The groups of fixes that can be made, and the files of each; what is worst comes first.

        What only is outdated may be what shows something worse: an import that is renamed, and what its old
        name is compared with.
        """
        worst: defaultdict[str, Severity] = defaultdict(lambda: Severity.INFO)
        codes: defaultdict[str, set[str]] = defaultdict(set)
        paths: defaultdict[str, dict[str, None]] = defaultdict(dict)
        titles: defaultdict[str, Counter[str]] = defaultdict(Counter)
        symbols: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for path, findings in found.items():
            for finding in findings:
                fix = finding.fix
                if fix is None or fix.applicability < self._least:
                    continue
                key = self._key(fix.code or finding.code, path)
                codes[key] |= {finding.code, fix.code or finding.code}
                paths[key][path] = None
                titles[key][fix.title] += 1
                if finding.symbol:
                    symbols[key][finding.symbol] += 1
                worst[key] = max(worst[key], finding.severity)
        order = sorted(codes, key=lambda key: (key != _PINS, key == _NOTEBOOKS, -worst[key], key))
        return {self._group(key, codes[key], titles[key], symbols[key]): list(paths[key]) for key in order}

    def _key(self, code: str, path: str) -> str:
        if path.endswith(_NOTEBOOK):
            return _NOTEBOOKS
        if code in PINS:
            return _PINS
        rule = self._catalogue.find(code)
        folder = (rule.codemod or "").partition(".")[0] if rule is not None else ""
        return folder if folder and folder != _SMALL else code

    def _group(self, key: str, codes: Iterable[str], titles: Counter[str], symbols: Counter[str]) -> FixGroup:
        listed = tuple(sorted(codes))
        shown = ", ".join(listed) if len(listed) < 4 else f"{len(listed)} rules"
        why = []
        for code in listed:
            rule = self._catalogue.find(code)
            if rule is not None and rule.why and key not in (_PINS, _NOTEBOOKS):
                why.append(f"{_first_sentences(rule.why)} ({code})")
        if key == _PINS:
            title = f"Raise torch and its companion packages to {self.target}"
        elif key == _NOTEBOOKS:
            title = f"Move the notebooks to torch {self.target}"
        else:
            title = _title(list(titles), [name for name, _ in symbols.most_common()])
            if len(f"{title} ({shown})") <= _WIDTH:
                title = f"{title} ({shown})"
        return FixGroup(key, title, "\n\n".join(why[:3]), listed)

    @property
    def _least(self) -> Applicability:
        return Applicability.UNSAFE if self.unsafe else Applicability.SAFE

    # ---- making ------------------------------------------------------------------------------------------

    def make(self, start: str, exclusions: Exclusions) -> list[Applied]:
        """Make all groups from a commit on, a commit for each; the tree is at the last one.

        What was recorded of that commit is used.

        Raises OutOfTime, and UpgradeError where git fails.
        """
        evidence = self.space.evidence_of(start)
        asked = [__version__, start, str(self.unsafe), *(tool.key for tool in self.tools)]
        asked += [f"{code} {path}" for code, paths in self.guessed.items() for path in paths]
        asked += [f"only {name}" for names in self.only or () for name in sorted(names)]
        key = f"made-{_digest(exclusions, asked, evidence)}"
        made = self.space.recalled(key, list[Applied])
        if made is not None and all(
            self.space.git.says("cat-file", "-e", each.commit) is not None for each in made
        ):
            self.space.go_to(made[-1].commit if made else start)
            return made
        self.space.go_to(start)
        self.space.restore_evidence(start)
        made = self._made(exclusions)
        self.space.note(key, to_builtins(made))
        return made

    def _made(self, exclusions: Exclusions) -> list[Applied]:
        made = []
        for tool in self.tools:
            self.clock.check()
            group = FixGroup(tool.key, tool.title, tool.why)
            if not exclusions.get(group.key, _NOTHING).whole:
                made += self._with_tool(tool, group, exclusions.get(group.key, _NOTHING))
        done: set[tuple[str, str]] = set()  # groups and files with something left out
        for _ in range(_PASSES):
            self.clock.check()
            count = len(made)
            for group, paths in self.groups(self._wanted()).items():
                self.clock.check()
                exclusion = exclusions.get(group.key, _NOTHING)
                left = [
                    path for path in paths if path not in exclusion.paths and (group.key, path) not in done
                ]
                if not exclusion.whole and left:
                    made += self._with_rules(group, left, exclusion)
                    done |= {(group.key, path) for path in exclusion.hunks}
            if len(made) == count:
                break
        return made

    def _wanted(self) -> dict[str, list[Finding]]:
        """The findings to fix, by path."""
        found = self.look(guessing=bool(self.guessed)).findings
        guesses = self.guesses if self.guessed else ()
        return {
            path: [
                finding
                for finding in findings
                if finding.code not in guesses or path in self.guessed.get(finding.code, ())
            ]
            for path, findings in self._allowed(found).items()
        }

    def _allowed(self, found: Mapping[str, list[Finding]]) -> Mapping[str, list[Finding]]:
        if self.only is None:
            return found
        codes, paths = self.only
        return {path: [each for each in found[path] if each.code in codes] for path in found if path in paths}

    def _with_rules(self, group: FixGroup, paths: Sequence[str], exclusion: Exclusion) -> list[Applied]:
        configurations = self._configurations(group.codes, fix=True)
        files = [self.space.tree / path for path in paths]
        fixes: Counter[str] = Counter()
        before = {path: (self.space.tree / path).read_bytes() for path in paths}
        for result in self._run(configurations, files):
            if result.new is None:
                continue
            try:
                save(result.path, result.new)
            except SourceError as error:
                self.console.note(f"warning: {self._shown(result.path)}: {error.reason}")
                continue
            fixes[self._shown(result.path)] += sum(result.fixed.values())
        return self._committed(group, before, fixes, exclusion)

    def _with_tool(self, tool: Tool, group: FixGroup, exclusion: Exclusion) -> list[Applied]:
        paths = [self._shown(path) for path in self.files() if path.suffix == ".py"]
        before = {
            path: (self.space.tree / path).read_bytes() for path in paths if path not in exclusion.paths
        }
        tool.run(self.space, list(before), self.clock)
        fixes = Counter(
            {path: 1 for path, old in before.items() if (self.space.tree / path).read_bytes() != old}
        )
        return self._committed(group, before, fixes, exclusion)

    def _committed(
        self, group: FixGroup, before: Mapping[str, bytes], fixes: Counter[str], exclusion: Exclusion
    ) -> list[Applied]:
        for path, hunks in exclusion.hunks.items():
            if path in fixes:
                place = self.space.tree / path
                left = without(before[path], place.read_bytes(), hunks)
                place.write_bytes(left)
        changed = [path for path in fixes if (self.space.tree / path).read_bytes() != before[path]]
        if not changed:
            return []
        commit = self.space.git.commit(message_of(group))
        root = self.space.tree
        carry(root, {path: (before[path], (root / path).read_bytes()) for path in changed})
        return [Applied(group, commit, sum(fixes[path] for path in changed), tuple(sorted(changed)))]

    # ---- running -----------------------------------------------------------------------------------------

    def files(self) -> list[Path]:
        """The files of the project that are checked."""
        return discover_for([self.space.project], self._configurations(None, fix=False).settings_in).files

    def _configurations(
        self, codes: Sequence[str] | None, *, fix: bool, guessing: bool = False
    ) -> Configurations:
        return Configurations(self._layer(codes), fix=fix, start=self.space.project, guessing=guessing)

    def _layer(self, codes: Sequence[str] | None) -> Layer:
        return Layer(
            option="--{}",
            target=self.target,
            minimum=self.target,
            written_for=self._written_for,
            select=tuple(codes) if codes else None,
            extend_select=() if codes else PINS,
            extend_safe_fixes=PINS,
            extend_exclude=self._exclude,
            root=self.space.tree,
            unsafe_fixes=self.unsafe,
        )

    def _run(self, configurations: Configurations, files: Sequence[Path] | None) -> list[FileResult]:
        if files is None:
            files = self.files()
        if not files:
            return []
        scopes, _ = scopes_of(files, configurations, self.console)
        engines = Engines(configurations, scopes)
        if len(files) > 1:
            engines.load()
        return list(run(files, engines.check, self.jobs))

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.space.tree).as_posix()


def message_of(group: FixGroup) -> str:
    """The message of the commit of a group, whose subject has neither codes nor quotes."""
    subject = re.sub(r" \((?:(?:TM\d+(?:, )?)+|\d+ rules)\)$|`", "", group.title)
    return f"{subject}\n" + (f"\n{_wrapped(group.why)}\n" if group.why else "")


class _Needs:
    """The job of `Fixer.runs_from`: what one file needs; can be sent to another process."""

    def __init__(self, engines: Engines) -> None:
        self.engines = engines

    def __call__(self, path: Path) -> FileResult:
        result = FileResult(path)
        with suppress(SourceError, RecursionError):  # already reported when the file was checked
            result.needs = newest_of(self.engines.needing(path).findings(read_source(path), path))
        return result


_NOTHING = Exclusion()


def hunks_of(path: str, old: bytes, new: bytes) -> list[Hunk]:
    """What differs between two contents of a file, line by line; none where that would take too long."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if max(len(before), len(after)) > _MOST_LINES:
        return []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return [
        Hunk(path, start, tuple(before[start:end]), tuple(after[first:last]))
        for kind, start, end, first, last in matcher.get_opcodes()
        if kind != "equal"
    ]


def without(old: bytes, new: bytes, hunks: Iterable[Hunk]) -> bytes:
    """The new content of a file with the old lines in the place of some hunks."""
    left_out = {(hunk.start, hunk.old) for hunk in hunks}
    wanted = [hunk for hunk in hunks_of("", old, new) if (hunk.start, hunk.old) not in left_out]
    return with_hunks(old, wanted)


def with_hunks(old: bytes, hunks: Iterable[Hunk]) -> bytes:
    """The old content of a file with some hunks."""
    lines = old.splitlines(keepends=True)
    for hunk in sorted(hunks, key=lambda each: each.start, reverse=True):
        lines[hunk.start : hunk.start + len(hunk.old)] = hunk.new
    return b"".join(lines)


def _title(titles: Sequence[str], symbols: Sequence[str]) -> str:
    """What fixes change: what all of them do to the old names, else that these change."""
    if not symbols:
        return titles[0]
    start, end = "Update ", ""
    if all(title.startswith(_REPLACE) for title in titles):
        start = "Replace "
        end = f" with {titles[0].removeprefix(_REPLACE)}" if len(titles) == 1 else ""
    elif len(titles) == 1 and "`" in titles[0]:
        start = f"{titles[0]} for "
    if len(f"{start}{_listed(symbols, 1)}{end}") > _WIDTH:
        return titles[0] if len(titles) == 1 else f"{start}{_listed(symbols, 1)}"
    shown = 1
    while shown < len(symbols) and len(f"{start}{_listed(symbols, shown + 1)}{end}") <= _WIDTH:
        shown += 1
    return f"{start}{_listed(symbols, shown)}{end}"


def _listed(symbols: Sequence[str], shown: int) -> str:
    names = [f"`{name}`" for name in symbols[:shown]]
    names += [f"{len(symbols) - shown} more"] if len(symbols) > shown else []
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _first_sentences(text: str) -> str:
    """What fits into the message of a commit."""
    kept = ""
    for sentence in re.split(r"(?<=\.)\s+", text.strip()):
        if kept and len(kept) + len(sentence) > _MOST_WHY:
            break
        kept = f"{kept} {sentence}".strip()
    return kept


def _wrapped(text: str) -> str:
    import textwrap

    return "\n\n".join(textwrap.fill(" ".join(part.split()), _WIDTH) for part in text.split("\n\n"))


def _digest(exclusions: Exclusions, asked: Sequence[str], evidence: bytes) -> str:
    value = to_builtins(exclusions, order="sorted")
    return hashlib.sha256(json.dumps([value, *asked]).encode() + evidence).hexdigest()[:24]
