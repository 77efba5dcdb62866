"""A page for every rule, and the index. What is said of a rule is that of `torchmigrate explain`."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from docs_site.markdown import cell, code, fenced, prose, table
from torchmigrate.catalogue.builtin import RULES
from torchmigrate.catalogue.groups import groups
from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.store import default_catalogue
from torchmigrate.cli.session import examples
from torchmigrate.report.explanation import Section, about, fix_level, releases, sections
from torchmigrate.report.rule_texts import generic

TOPICS = {
    "TM0": "Core, tensors and removed names",
    "TM1": "Maths, linear algebra and FFT",
    "TM2": "torch.cuda.amp and apex",
    "TM3": "functorch and autograd",
    "TM4": "torch.nn",
    "TM5": "Distributed",
    "TM6": "Data, serialization, JIT, ONNX, profiler, quantization and backends",
    "TM7": "torchvision",
    "TM8": "torchaudio, torchtext, torchdata, and libraries around torch",
    "TM9": "New features, and files that are not Python",
}
_FIXES = {"safe": "safe fix", "unsafe": "unsafe fix", "advice": "suggestion", "none": "report only"}


def all_rules() -> list[Rule]:
    """Every rule of ours, in order of code."""
    return sorted([*default_catalogue().rules, *RULES], key=lambda rule: rule.code)


def page(rule: Rule) -> str:
    """The page of a rule."""
    return "\n\n".join(_page(rule)) + "\n"


def _page(rule: Rule) -> Iterator[str]:
    summary = generic(rule, rule.summary)
    plain = summary.replace("`", "").replace('"', "'")
    yield f'---\ntitle: "{rule.code} {rule.name}"\ndescription: "{escape(plain, quote=False)}"\n---'
    yield f"# {rule.code} {rule.name}"
    yield f"**{prose(summary)}**"
    facts = [*about(rule), _FIXES[fix_level(rule)].capitalize() + "."]
    yield "\n".join(f"- {prose(fact)}" for fact in facts)
    examples_begun = False
    for section in sections(rule, examples(rule)):
        if section.example and not examples_begun:
            examples_begun = True
            yield "## Examples"
        yield f"**{section.title}**" if section.example else f"## {section.title}"
        yield from _content(section)
    yield (
        f"`torchmigrate explain {rule.code}` prints this page. "
        "[Suppressing findings](../suppressing.md) describes comments, `per-file-ignores` and baselines."
    )


def _content(section: Section) -> Iterator[str]:
    if section.prose:
        yield prose(section.prose)
    if section.names:
        yield "\n".join(f"- {_name(name)}" for name in section.names)
    if section.table:
        heads, *rows = section.table
        yield table(heads, [[cell(text) for text in row] for row in rows])
    if section.lines:
        yield "\n".join(f"- {prose(line)}" for line in section.lines)
    if section.code:
        yield fenced(section.code, section.file)


def _name(text: str) -> str:
    if text.startswith(("http://", "https://")):
        return f"<{text}>"
    return " → ".join(code(name) for name in text.split(" -> "))


def index() -> str:
    """The list of all rules, by topic; a script adds a filter."""
    rules = all_rules()
    libraries = sorted({rule.library for rule in rules} - {"torchmigrate"})
    parts = [
        "---\ntitle: Rules\nhide:\n  - toc\n---",
        "# Rules",
        f"torchmigrate has {len(rules)} rules. Use the code or the name of a rule to select or suppress it. "
        "*error*: removed in the target release. *warning*: deprecated there, or its results changed. "
        "*info*: works, but is outdated.",
        '<div class="rule-filter" data-libraries="' + " ".join(libraries) + '"></div>',
    ]
    for prefix, topic in TOPICS.items():
        rows = [_row(rule) for rule in rules if rule.code.startswith(prefix)]
        parts.append(f"## {prefix}: {topic} {{: .rule-topic }}")
        parts.append(table(("code", "name", "releases", "fix", "summary"), rows))
    return "\n\n".join(parts) + "\n"


def groups_table() -> str:
    """How many rules are on, and the groups of those that are not."""
    rules = all_rules()
    rows = []
    for group in groups(rules):
        codes = ", ".join(f"`{rule.code}`" for rule in group.rules)
        rows.append((f'<a id="{group.name}"></a>`{group.name}`', cell(group.purpose or ""), codes))
    on = sum(not rule.opt_in for rule in rules)
    return (
        f"Of {len(rules)} rules, {on} are on by default. The others are in {len(rows)} groups:\n\n"
        + table(("group", "what it is for", "rules"), rows)
    )


def _row(rule: Rule) -> tuple[str, ...]:
    off = ". *Off unless selected.*" if rule.opt_in else ""
    off += f" *Group: [{rule.group}](../which-rules.md#{rule.group}).*" if rule.group else ""
    summary = cell(generic(rule, rule.summary)) + off
    fix = _FIXES[fix_level(rule)]
    return (f"[{rule.code}]({rule.code}.md)", rule.name, releases(rule), fix, summary)
