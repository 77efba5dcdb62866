"""Drafts from facts: which become rules, which change a rule that is there, and which are only listed."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from drafts import yaml_rules
from drafts.facts import CALLED, Fact, Facts
from torchmigrate.authoring.examples import check_rule
from torchmigrate.authoring.layouts import check_layouts
from torchmigrate.catalogue.builtin import RULES
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.loader import load_file
from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.problems import CatalogueError
from torchmigrate.catalogue.store import default_catalogue
from torchmigrate.engine.api_rules.finder import owned_parameters
from torchmigrate.match.rule_matches import RuleMatcher, about_arguments
from torchmigrate.report.summary import plural
from torchmigrate.versions.range import VersionRange
from torchmigrate.versions.releases import Version, show_version
from torchmigrate.versions.surface import Surface

_REPOSITORIES = {"torchvision": "vision", "torchaudio": "audio", "torchtext": "text", "torchdata": "data"}
# The changes of a list in `tools/releases/`, by kind of fact.
_KINDS = {"removed": "removed", "deprecated": "deprecated", "default": "default"}


@dataclass(slots=True)
class Draft:
    """A rule that loads and whose examples hold."""

    code: str
    title: str
    facts: Sequence[Fact]
    text: str


@dataclass(slots=True)
class Drafts:
    """What is written.

    updates: what was changed in rules that are there, by code; known: what such rules are about as well.
    covered: changed names, with the code of the rule that reports them.
    listed: changes without a draft, by what reports them; failed: rules that did not pass, and why.
    """

    rules: list[Draft] = field(default_factory=list)
    updates: dict[str, str] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)
    covered: list[tuple[str, Fact]] = field(default_factory=list)
    listed: dict[str, list[Fact]] = field(default_factory=lambda: defaultdict(list))
    failed: list[str] = field(default_factory=list)


class Writer:
    """Makes the drafts of one release of a library. rules: the directory with the rules."""

    def __init__(self, surface: Surface, version: Version, rules: Path, torch: str) -> None:
        self.surface = surface
        self.release = show_version(version)
        self.version = version
        self.rules = rules
        self.catalogue = default_catalogue()
        self.matcher = RuleMatcher(self.catalogue, VersionRange(target=torch))
        self.taken = {head.code for head in self.catalogue.heads} | {rule.code for rule in RULES}
        self.names = {head.name for head in self.catalogue.heads} | {rule.name for rule in RULES}

    def drafts(self, facts: Facts, scratch: Path) -> Drafts:
        """scratch: a file for rules that are tried out."""
        found = Drafts()
        groups: defaultdict[tuple[Any, ...], list[Fact]] = defaultdict(list)
        for fact in facts.facts:
            rules = self._rules_about(fact)
            if rules:
                self._known(fact, rules, found)
            elif fact.kind == "kept":
                pass  # nothing was said about it
            elif not _says_something(fact):
                found.listed[_reported_by(fact)].append(fact)
            else:
                groups[_key(fact)].append(fact)
        for same in groups.values():
            self._draft(same, found, scratch)
        return found

    # ---- rules that are there ------------------------------------------------------------------------

    def _rules_about(self, fact: Fact) -> list[Rule]:
        rules = {rule.code: rule for name in fact.names for rule, _ in self.matcher.rules_for(name)}
        return [
            rule
            for rule in rules.values()
            if not rule.opt_in
            and (fact.parameter in owned_parameters(rule) if fact.parameter else not about_arguments(rule))
        ]

    def _known(self, fact: Fact, rules: list[Rule], found: Drafts) -> None:
        if not fact.parameter and fact.kind != "kept":
            found.covered.append((rules[0].code, fact))
        for rule in rules:
            status = {"removed": "removed", "parameter removed": "removed", "kept": "outdated"}.get(fact.kind)
            if status is None or getattr(rule, status) is not None:
                found.known.append(f"{rule.code}: {sentence(fact)}")
            elif not self._holds_for_all(rule, fact):
                found.known.append(f"{rule.code}: {sentence(fact)}; this is not so for all names of the rule")
            else:
                self._set(rule, status)
                found.updates.setdefault(rule.code, f'`{status}: "{self.release}"`, since {sentence(fact)}')

    def _holds_for_all(self, rule: Rule, fact: Fact) -> bool:
        """Whether all names of a rule changed as this one did."""
        entries = [self.surface.entry(name, self.version) for name in rule.symbols]
        if fact.kind == "removed":
            return all(entry is None or entry.gone for entry in entries)
        return bool(fact.parameter) or not any(entry is not None and entry.warns for entry in entries)

    def _set(self, rule: Rule, status: str) -> None:
        """Write this release into a rule as that of a status."""
        path = self.rules / rule.path
        lines = path.read_text("utf-8").splitlines(keepends=True)
        start = next(n for n, line in enumerate(lines) if line.startswith(f"- code: {rule.code}"))
        end = next((n for n in range(start + 1, len(lines)) if lines[n].startswith("- ")), len(lines))
        if any(line.startswith(f"  {status}:") for line in lines[start:end]):
            return
        after = [
            n for n in range(start, end) if re.match(r"  (library|outdated|deprecated|changed):", lines[n])
        ]
        lines.insert(after[0 if status == "outdated" else -1] + 1, f'  {status}: "{self.release}"\n')
        path.write_text("".join(lines), "utf-8")

    # ---- new rules -----------------------------------------------------------------------------------

    def _draft(self, facts: list[Fact], found: Drafts, scratch: Path) -> None:
        first = facts[0]
        code, name = self._code(first.names[0]), self._name(facts)
        text = yaml_rules.rule(facts, code, name, self.release, self._requires(facts), self._url())
        problem = _problem(text, scratch)
        if problem is None:
            self.taken.add(code)
            self.names.add(name)
            found.rules.append(Draft(code, yaml_rules.title(first), facts, text))
        else:
            shown = ", ".join(f"`{name}`" for fact in facts for name in fact.names)
            found.failed.append(f"{first.kind}: {shown}: {problem}")

    def _code(self, name: str) -> str:
        """A free code of the topic of the rules that are about names most like this one."""
        prefix = name.rpartition(".")[0]
        while prefix:
            topics = Counter(
                head.code[2]
                for head in self.catalogue.heads
                if re.match("TM[0-8]", head.code)
                and any(each.startswith(f"{prefix}.") for each in head.symbols)
            )
            for topic, _ in topics.most_common():
                code = self._free(topic)
                if code is not None:
                    return code
            prefix = prefix.rpartition(".")[0]
        code = next(filter(None, map(self._free, "012345678")), None)
        assert code is not None, "there are codes left"
        return code

    def _free(self, topic: str) -> str | None:
        first = 20 if topic == "0" else 0  # the first ones are of rules that are code
        codes = (f"TM{topic}{number:02}" for number in range(first, 100))
        return next((code for code in codes if code not in self.taken), None)

    def _name(self, facts: Sequence[Fact]) -> str:
        parts = facts[0].names[0].split(".")
        parts = parts[-3:-1] if len(facts) > 1 else parts[-2:]
        parts += [facts[0].parameter] if facts[0].parameter else []
        words = re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+", "-", "-".join(parts)).lower().strip("-")
        name = re.sub("-+", "-", words)
        while name in self.names:
            name += "-again"
        return name

    def _requires(self, facts: Sequence[Fact]) -> str | None:
        """The first release that has all new names; None: every release of the data has."""
        since = max(
            (
                self.surface.spans(fact.new)[-1][0]
                for fact in facts
                if fact.new and self.surface.spans(fact.new)
            ),
            default=self.surface.versions[0],
        )
        return show_version(since) if since > self.surface.versions[0] else None

    def _url(self) -> str:
        repository = _REPOSITORIES.get(self.surface.library, "pytorch")
        return f"https://github.com/pytorch/{repository}/releases/tag/v{self.release}.0"


def _says_something(fact: Fact) -> bool:
    """Whether a rule would say more than those from the API data do."""
    if fact.kind == "default":
        try:
            ast.literal_eval(fact.default or "")
        except (ValueError, SyntaxError):
            return False
        return fact.was.kind in CALLED
    return fact.kind not in ("required", "kept") and bool(fact.new or fact.said)


def _reported_by(fact: Fact) -> str:
    by = {"removed": "TM001", "parameter removed": "TM003", "required": "TM003"}
    return by.get(fact.kind, "no rule")


def _key(fact: Fact) -> tuple[Any, ...]:
    """What facts have in common that one rule is about."""
    said = re.sub(r"`[^`]*`", "", fact.said)
    renames = yaml_rules.renames(fact)
    owner = fact.names[0].rpartition(".")[0]
    return (fact.kind, owner, renames or fact.new, fact.how, fact.parameter, fact.default, renames or said)


def _problem(text: str, scratch: Path) -> str | None:
    """Why a rule does not load, or does not pass its examples; None: it does."""
    scratch.write_text(text, "utf-8")
    try:
        loaded = load_file(scratch)
    except CatalogueError as error:
        return str(error).splitlines()[0].partition(": ")[2]
    catalogue = Catalogue.of([item.rule for item in loaded])
    for item in loaded:
        for failure in list(check_rule(item, catalogue)) or list(check_layouts(item, catalogue)):
            return f"{failure.check}: {failure.detail.splitlines()[0]}"
    return None


# ---- the list of the release, and the report ----------------------------------------------------------


def release_list(library: str, old: str, new: str, drafts: Drafts) -> str:
    """The changes as a list of `tools/releases/`, each with a program in which it must be found."""
    items = []
    for draft in drafts.rules:
        for fact in draft.facts:
            items.append(_item(fact, draft.code, yaml_rules.marked(fact)))
    items += [_item(fact, code, yaml_rules.dotted(fact)) for code, fact in drafts.covered]
    for code in ("TM001", "TM003"):
        items += [_item(fact, code, yaml_rules.dotted(fact)) for fact in drafts.listed[code]]
    head = {
        "release": f"{library} {new}",
        "read": [f"`tools/api_data.py changes {library} {old} {new}`; the release notes are not read yet"],
        "items": items,
    }
    return yaml.dump(head, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


def _item(fact: Fact, code: str, program: str) -> dict[str, str]:
    kind = _KINDS.get(fact.kind, "argument")
    return {"change": sentence(fact), "kind": kind, "from": "sources", "found": code, "code": program}


def sentence(fact: Fact) -> str:
    """A fact in words."""
    name = f"`{fact.names[0]}`"
    if fact.kind == "default":
        return f"`{fact.parameter}` of {name} is `{fact.now}` by default, was `{fact.default}`"
    if fact.kind == "required":
        return f"{name} requires `{fact.parameter}`"
    subject = f"`{fact.parameter}` of {name}" if fact.parameter else name
    words = {"deprecated": "is deprecated", "renamed": "was renamed", "kept": "does not warn any longer"}
    what = words.get(fact.kind.split(" ")[-1], "was removed")
    return f"{subject} {what}" + (f"; use `{fact.new}`" if fact.new is not None else "")


def report(library: str, new: str, facts: Facts, drafts: Drafts, rules: str) -> str:
    """What was done, and what a person has to do, in Markdown: the text of the pull request."""
    lines = [f"# {library} {new}", ""]
    if drafts.rules:
        lines.append(
            f"{plural(len(drafts.rules), 'draft')} of rules in `{rules}`: the examples hold. Check each "
            "against the sources and the release notes, write its `why`, and move it to its topic."
        )
    else:
        lines.append("No rule was drafted.")

    def section(title: str, items: Collection[str]) -> Iterator[str]:
        if items:
            yield from ("", f"## {title} ({len(items)})", "", *(f"- {item}" for item in items))

    lines += section(
        "Drafts",
        [
            f"{draft.code}: {'; '.join(sentence(fact) + _why(fact) for fact in draft.facts)}"
            for draft in drafts.rules
        ],
    )
    lines += section("Rules that were changed", [f"{code}: {line}" for code, line in drafts.updates.items()])
    lines += section("Rules to look at: they are about what changed", drafts.known)
    lines += section("Drafts that failed: write these rules yourself", drafts.failed)
    for code, listed in drafts.listed.items():
        title = f"Reported by {code} without advice" if code != "no rule" else "Reported by no rule"
        lines += section(f"{title}: is there a replacement?", [sentence(fact) for fact in listed])
    lines += section("Settings, reported by TM001 and TM006", facts.settings)
    lines += section("Names that may be gone: their module cannot be read whole", facts.unsure)
    lines += section("To do", _TO_DO)
    return "\n".join(lines) + "\n"


def _why(fact: Fact) -> str:
    return f" (by {fact.how})" if fact.how else ""


_TO_DO = (
    "Read the release notes: no draft is about changed results.",
    "Complete the list of the release in `tools/releases/`.",
    "Run `pytest tests/versions/test_api_data.py tests/authoring`, and correct the rules that contradict the "
    "data.",
    "Where the release is installed, run `python tools/api_data.py check torch`, `python tools/api_data.py "
    "binary torch` and `python tools/severity.py`.",
    "Run `PYTHONPATH=tests python tests/installed/test_readme.py --update`, and add a line to "
    "`CHANGELOG.md`.",
)
