"""From hits to findings with fixes: one use at a time, or an import together with everything it binds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from torchmigrate.catalogue.model import Case, Rule
from torchmigrate.config import Settings
from torchmigrate.hits import Hit
from torchmigrate.imports import ImportPlanner, Refusal
from torchmigrate.model import Applicability, Edit, Finding, Fix, Release
from torchmigrate.names.model import Binding, Names, Role
from torchmigrate.source import Source
from torchmigrate.versions.range import VersionRange, applicability, severity

_FIXABLE_VIA = ("import", "alias", "method")


class FixPlanner:
    """Makes the findings of one file."""

    def __init__(
        self, names: Names, source: Source, versions: VersionRange, settings: Settings, *, is_init: bool
    ) -> None:
        self.names = names
        self.source = source
        self.versions = versions
        self.settings = settings
        self.imports = ImportPlanner(names, source, is_init=is_init)

    def findings(self, hits: Sequence[Hit]) -> list[Finding]:
        """Every hit as a finding, with the fix where there is one."""
        fixes: dict[int, Fix | None] = {}
        unchanged: set[int] = set()
        for group in self._groups(hits):
            fix, silent = self._group_fix(*group)
            if fix is not None:
                for hit in group[1]:
                    fixes[id(hit)] = fix
                unchanged.update(id(hit) for hit in silent)
        found = []
        for hit in hits:
            if id(hit) in unchanged:
                continue
            fix = fixes[id(hit)] if id(hit) in fixes else self._single_fix(hit)
            found.append(self._finding(hit, fix))
        return found

    def _finding(self, hit: Hit, fix: Fix | None) -> Finding:
        rule = hit.rule
        level = severity(rule, self.versions)
        assert level is not None, "rules that say nothing at the target are not looked up"
        start, end = hit.match.start, hit.match.end
        return Finding(
            code=rule.code,
            name=rule.name,
            message=fill(rule.summary, hit.name, variables(hit)),
            severity=level,
            start=start,
            end=end,
            help=fill(rule.advice, hit.name, variables(hit)) if rule.advice else None,
            fix=fix,
            url=rule.references[0] if rule.references else None,
            symbol=hit.name,
        )

    # ---- one use -------------------------------------------------------------------------------------

    def _single_fix(self, hit: Hit) -> Fix | None:
        use = hit.use
        if not self._may_fix(hit) or use.role is Role.IMPORT:
            return None
        made = self._rewrite(hit, None, "")
        if made is None:
            return None
        edits, level, reason, title, _ = made
        return self._fix(hit.rule, title, level, reason, edits, self.imports.releases(use))

    def _may_fix(self, hit: Hit) -> bool:
        use = hit.use
        return (
            use.sure
            and hit.sole
            and use.via in _FIXABLE_VIA
            and not (use.via == "alias" and not use.rest)
            and not use.in_fstring
            and use.role is not Role.STRING
        )

    def _rewrite(
        self, hit: Hit, new: str | None, local: str
    ) -> tuple[tuple[Edit, ...], Applicability, str | None, str, str | None] | None:
        """Edits, applicability, reason, title and new callee; `new` is written as `local`."""
        from torchmigrate.match.rewrite import rewrite  # LibCST is loaded only where something is rewritten

        needed: list[Edit] = []

        def spell(qualified: str) -> str | None:
            if qualified == new:
                return local
            spelling = self.imports.spell(qualified, hit.use)
            if isinstance(spelling, Refusal):
                return None
            needed.extend(spelling.edits)
            return spelling.text

        made = rewrite(hit.rule, variables(hit), replace(hit.place, spell=spell), hit.match)
        if made is None:
            return None
        level, reason = applicability(made.case, hit.rule, self.versions)
        if made.applicability < level:
            level, reason = made.applicability, made.reason
        edits = tuple(dict.fromkeys((*made.edits, *needed)))
        return edits, level, reason or made.reason, made.title, made.callee

    def _fix(
        self,
        rule: Rule,
        title: str,
        level: Applicability,
        reason: str | None,
        edits: Iterable[Edit],
        releases: tuple[Release, ...] = (),
    ) -> Fix:
        if level is Applicability.UNSAFE and self.settings.promotes(rule.code):
            level, reason = Applicability.SAFE, None
        elif level is Applicability.SAFE and self.settings.demotes(rule.code):
            level, reason = Applicability.UNSAFE, "made unsafe by the configuration"
        if level is Applicability.SAFE:
            reason = None
        return Fix(title, level, tuple(edits), reason, releases, rule.code)

    # ---- an import and what it binds -----------------------------------------------------------------

    def _groups(self, hits: Sequence[Hit]) -> list[tuple[Hit, list[Hit]]]:
        """Import lines that a rule found, each with all hits of that rule on what it binds."""
        by_binding: dict[tuple[int, str], list[Hit]] = defaultdict(list)
        for hit in hits:
            if hit.use.binding is not None:
                by_binding[hit.use.binding.id, hit.rule.code].append(hit)
        groups = []
        for found in by_binding.values():
            for hit in found:
                if hit.use.role is Role.IMPORT and hit.sole:
                    groups.append((hit, found))
        return groups

    def _group_fix(self, first: Hit, hits: list[Hit]) -> tuple[Fix | None, list[Hit]]:
        binding = first.use.binding
        assert binding is not None
        new = self._new_name(first, hits)
        if new is None:
            return None, []
        users = [hit for hit in hits if hit is not first]
        plain = self._plain_case(first.rule)
        loads = set(binding.uses)
        covered = {hit.use.start for hit in users if self._may_fix(hit)}
        whole = loads <= covered
        if not whole and plain is None:
            return None, []
        swap = self.imports.swap(binding, new, keep_name=not whole)
        if isinstance(swap, Refusal):
            return None, []
        edits: list[Edit] = list(swap.edits)
        level, reason = Applicability.SAFE, None
        title = ""
        silent: list[Hit] = []
        if plain is not None:
            level, reason = applicability(plain, first.rule, self.versions)
            title = plain.title or f"Import `{new}`"
        if swap.lossy and level is Applicability.SAFE:
            level, reason = Applicability.UNSAFE, "a comment would be lost"
        for hit in users:
            if plain is not None and swap.local_name == binding.name:
                silent.append(hit)
                continue
            target = new if not hit.use.rest else f"{new}.{hit.use.rest}"
            local = swap.local_name if not hit.use.rest else f"{swap.local_name}.{hit.use.rest}"
            made = self._rewrite(hit, target, local)
            if made is None or made[4] != target:
                return None, []
            edits.extend(made[0])
            if made[1] < level:
                level, reason = made[1], made[2]
            title = title or made[3]
        if plain is None and not users:
            return None, []
        return self._fix(first.rule, title, level, reason, dict.fromkeys(edits)), silent

    def _plain_case(self, rule: Rule) -> Case | None:
        """The case that makes a rule a plain rename, whatever the arguments are."""
        for case in rule.cases:
            if "import" in case.roles and case.rename and not case.when:
                return case
        return None

    def _new_name(self, first: Hit, hits: list[Hit]) -> str | None:
        """The qualified name that takes the place of what the import binds; None: there is not one."""
        binding = first.use.binding
        if binding is None or first.name != binding.target:
            return None
        if self._plain_case(first.rule) is not None:
            return variables(first).get("new")
        callees: set[str | None] = set()
        for hit in hits:
            if hit is first:
                continue
            if hit.use.rest or not self._may_fix(hit):
                return None
            made = self._rewrite(hit, None, "")
            callees.add(made[4] if made is not None else None)
        return callees.pop() if len(callees) == 1 else None


def variables(hit: Hit) -> Mapping[str, str]:
    """What templates of the rule may name for this symbol: `$new` and its like."""
    rule = hit.rule
    if hit.symbol in rule.modules and hit.symbol not in rule.symbols:
        new = rule.modules[hit.symbol]
        return {"new": new + hit.name[len(hit.symbol) :]} if new else {}
    return rule.symbols.get(hit.symbol, {})


def fill(text: str, name: str, values: Mapping[str, str]) -> str:
    """A rule's text with `{name}` and `{new}` filled in."""
    if "{" not in text:
        return text
    for key, value in (("name", name), *values.items()):
        text = text.replace("{" + key + "}", value)
    return text


