"""Counts: the last line, the list of what was fixed, and the statistics table."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from torchmigrate.findings import Severity
from torchmigrate.printing import json_text
from torchmigrate.report.base import RuleCount, Tally
from torchmigrate.report.style import Style
from torchmigrate.versions.releases import RELEASES, parse_version, show_version


def summary(tally: Tally) -> str:
    """What is left: "Found 3 findings (1 error, 2 warnings). 2 fixable with `--fix`."."""
    if not tally.found:
        return "No findings left." if tally.fixes else "All checks passed!"
    text = f"Found {plural(tally.found, 'finding')} ({_kinds(tally)})."
    if tally.fixable:
        text += f" {tally.fixable} fixable with `--fix`"
        text += f" ({tally.unsafe} more with `--unsafe-fixes`)." if tally.unsafe else "."
    elif tally.unsafe:
        text += f" {tally.unsafe} fixable with `--fix --unsafe-fixes`."
    return text


def baseline_lines(tally: Tally) -> list[str]:
    """What a baseline did: "The baseline hides 12 findings."; and whether it should be pruned."""
    lines = []
    if tally.hidden:
        lines.append(f"The baseline hides {plural(tally.hidden, 'finding')}.")
    if tally.stale:
        exist, them = ("exists", "it") if tally.stale == 1 else ("exist", "them")
        lines.append(
            f"{plural(tally.stale, 'finding')} in the baseline no longer {exist}: run `torchmigrate baseline "
            f"--prune` to remove {them}."
        )
    return lines


def _kinds(tally: Tally) -> str:
    """How many there are of each severity, worst first: "1 error, 2 warnings"."""
    return ", ".join(
        plural(tally.by_severity[severity], severity.label)
        for severity in sorted(Severity, reverse=True)
        if tally.by_severity[severity]
    )


def fixed_line(tally: Tally) -> str:
    """What was done: "Fixed 3 findings in 2 files."."""
    if not tally.fixes:
        return "Nothing to fix."
    return f"Fixed {plural(tally.fixes, 'finding')} in {plural(len(tally.fixed), 'file')}."


def kept_line(tally: Tally, left: int) -> str:
    """What was fixed when the user had enough. left: how many files were not looked at."""
    text = "Nothing was changed."
    if tally.fixes:
        text = f"Kept the fixes of {plural(tally.fixes, 'finding')} in {plural(len(tally.fixed), 'file')}."
    if left:
        text += f" {plural(left, 'file')} {'was' if left == 1 else 'were'} not checked."
    return text


def diff_line(tally: Tally) -> str:
    """What a diff shows, and what it does not: "Would fix 3 findings in 2 files, and leave 1 (1 error)."."""
    text = "Would fix nothing"
    if tally.fixes:
        text = f"Would fix {plural(tally.fixes, 'finding')} in {plural(len(tally.fixed), 'file')}"
    if tally.found:
        text += f", and leave {tally.found} ({_kinds(tally)})"
    if tally.unsafe:
        text += f"; {tally.unsafe} more fixable with `--unsafe-fixes`"
    return text + "."


def fixed_list(tally: Tally, names: dict[str, str]) -> str:
    """What was fixed in each file. names: rule code -> rule name."""
    lines = []
    for path, codes in sorted(tally.fixed.items()):
        lines.append(f"- {path}:")
        lines.extend(f"    {count} × {code} ({names.get(code, '')})" for code, count in sorted(codes.items()))
    return "\n".join(lines)


MOST_MINIMUMS = 4  # that are named one by one


def versions_line(tally: Tally) -> str:
    """For which releases files were checked: "Target torch 2.15, minimum torch 1.8 (requirements.txt)."."""
    targets: Counter[str] = Counter()
    minimums: Counter[str | None] = Counter()
    origins: dict[str | None, dict[str, None]] = {}
    for (target, minimum, origin), count in tally.versions.items():
        targets[target] += count
        minimums[minimum] += count
        origins.setdefault(minimum, {})[origin or ""] = None
    if not targets:
        return ""
    if len(targets) == 1:
        checked = f"torch {next(iter(targets))}"
        text = f"Target {checked}, minimum "
    else:
        named = {f"torch {key}": targets[key] for key in sorted(targets, key=parse_version)}
        checked = _listed(named)
        text = f"Target {checked}; minimum "
    unknown = minimums.pop(None, 0)
    if not minimums:
        return (
            f"Checked for {checked}. No minimum found, so fixes may not work on older releases;"
            " set `minimum` in pyproject.toml."
        )
    known = sorted(minimums, key=lambda version: parse_version(version or ""))
    if len(known) > 1:
        named = {f"torch {key}": minimums[key] for key in known}
        if len(known) > MOST_MINIMUMS:
            named = {f"torch {known[0]} to {known[-1]}": sum(minimums.values())}
        text += _listed(named)
    else:
        first, *others = origins[known[0]]
        where = f"{first} and {len(others)} more" if others else first
        if unknown:
            where += f"; {plural(minimums[known[0]], 'file')}"
        text += f"torch {known[0]} ({where})"
    if unknown:
        text += f", unknown ({plural(unknown, 'file')}, with fixes that are only safe for the target)"
    return text + "."


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} ({plural(count, 'file')})" for name, count in counts.items())


def held_line(tally: Tally) -> str:
    """How many fixes a newer minimum would make safe; empty if there is none.

    If a few of them need a much newer one than most, it names both.
    """
    releases = sorted(tally.held)
    if not releases:
        return ""
    up_to = dict(zip(releases, accumulate(tally.held[release] for release in releases), strict=True))
    every = up_to[releases[-1]]
    first = next(release for release in releases if 2 * up_to[release] >= every)
    text = f"{plural(up_to[first], 'more fix', 'es')} would be safe with `--minimum {show_version(first)}`"
    if first != releases[-1]:
        text += f", {every} with `--minimum {show_version(releases[-1])}`"
    return text + "."


def needs_line(tally: Tally, *, written: bool) -> str:
    """From which torch on the fixed files run; empty where that is any. written: they were fixed."""
    if tally.needs is None or tally.needs <= RELEASES[0]:
        return ""
    would = "" if written else "would "
    text = f"The fixed {_files(tally, would)} torch {show_version(tally.needs)} or newer"
    return text + (", which is newer than the minimum." if tally.beyond else ".")


def _files(tally: Tally, would: str) -> str:
    one = len(tally.fixed) == 1
    return f"{'file' if one else 'files'} {would}need{'s' if one and not would else ''}"


def _mark(count: RuleCount) -> str:
    if count.fixable == count.found:
        return "[*]"
    return "[-]" if count.fixable else "[ ]"


def _rows(tally: Tally) -> list[tuple[str, RuleCount]]:
    """Codes with their counts, most frequent first; what could not be done has codes as well."""
    counts = dict(tally.rules)
    for kind, number in tally.troubles.items():
        counts[kind.value] = RuleCount(kind.value)
        counts[kind.value].found = number
    return sorted(counts.items(), key=lambda item: (-item[1].found, item[0]))


def statistics(tally: Tally, style: Style) -> str:
    """One line per rule, most frequent first: count, code, `[*]` (all fixable), `[-]` (some), `[ ]`, name."""
    rows = _rows(tally)
    width = max((len(str(count.found)) for _, count in rows), default=0)
    return "".join(
        f"{style.bold(f'{count.found:{width}}')}\t{style.bad(code)}\t{style.gutter(_mark(count))}\t{count.name}\n"
        for code, count in rows
    )


_MOST_FILES, _MOST_ROWS = 5, 6  # that are named for a rule, and for a file


def overview(tally: Tally, style: Style) -> str:
    """The findings by rule and file, most frequent first: how many, and the first lines of each file."""
    lines = []
    for code, count in _rows(tally):
        files = sorted(tally.places.get(code, {}).items(), key=lambda item: (-len(item[1]), item[0]))
        where = f" in {plural(len(files), 'file')}" if files else ""
        name = "" if count.name == code else f" {count.name}"
        mark = style.gutter(_mark(count))
        lines.append(f"{style.bad(code)} {mark}{style.bold(name)}: {count.found}{where}")
        for shown, rows in files[:_MOST_FILES]:
            some = list(dict.fromkeys(rows))
            more = ", ..." if len(some) > _MOST_ROWS else ""
            word = "line" if len(some) == 1 else "lines"
            lines.append(f"    {shown}: {len(rows)} ({word} {', '.join(some[:_MOST_ROWS])}{more})")
        if len(files) > _MOST_FILES:
            lines.append(f"    and {plural(len(files) - _MOST_FILES, 'more file')}")
    return "\n".join(lines) + "\n"


def overview_line(tally: Tally) -> str:
    """How to see all findings instead of an overview."""
    return f"Grouped by rule and file; `--output-format full` or `concise` lists all {tally.found} findings."


def statistics_json(tally: Tally) -> str:
    """The same for programs."""
    rows = _rows(tally)
    table = [
        {"code": code, "name": count.name, "count": count.found, "fixable": count.fixable}
        for code, count in rows
    ]
    return json_text(table)


def plural(number: int, word: str, ending: str = "s") -> str:
    """ "1 error", "2 errors", "3 fixes"."""
    return f"{number} {word}" if number == 1 else f"{number} {word}{ending}"
