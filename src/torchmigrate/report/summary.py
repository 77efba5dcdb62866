"""Counts: the last line, the list of what was fixed, and the statistics table."""

from __future__ import annotations

from torchmigrate.findings import Severity
from torchmigrate.report.base import RuleCount, Tally
from torchmigrate.report.style import Style


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


def _kinds(tally: Tally) -> str:
    """How many there are of each severity, worst first: "1 error, 2 warnings"."""
    return ", ".join(
        plural(tally.by_severity[severity], severity.label)
        for severity in sorted(Severity, reverse=True)
        if tally.by_severity[severity]
    )


def fixed_line(tally: Tally) -> str:
    """What was done: "Fixed 3 findings in 2 files."."""
    return f"Fixed {plural(tally.fixes, 'finding')} in {plural(len(tally.fixed), 'file')}."


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


def _mark(count: RuleCount) -> str:
    if count.fixable == count.found:
        return "[*]"
    return "[-]" if count.fixable else "[ ]"


def statistics(tally: Tally, style: Style) -> str:
    """One line per rule, most frequent first: count, code, `[*]` (all fixable), `[-]` (some), `[ ]`, name."""
    rows = sorted(tally.rules.items(), key=lambda item: (-item[1].found, item[0]))
    width = max((len(str(count.found)) for _, count in rows), default=0)
    return "".join(
        f"{style.bold(f'{count.found:{width}}')}\t{style.bad(code)}\t{style.gutter(_mark(count))}\t{count.name}\n"
        for code, count in rows
    )


def statistics_json(tally: Tally) -> str:
    """The same for programs."""
    import json

    rows = sorted(tally.rules.items(), key=lambda item: (-item[1].found, item[0]))
    table = [
        {"code": code, "name": count.name, "count": count.found, "fixable": count.fixable}
        for code, count in rows
    ]
    return json.dumps(table, indent=2) + "\n"


def plural(number: int, word: str, ending: str = "s") -> str:
    """ "1 error", "2 errors", "3 fixes"."""
    return f"{number} {word}" if number == 1 else f"{number} {word}{ending}"
