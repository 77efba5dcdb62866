"""TM721: `model_urls` of torchvision's files, all uses of one dict together.

Where one use has no new form, the dict has to live on, and the others stay as they are. Statements that only
gave an URL in the dict another protocol go.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Applicability, DroppedUse, Finding, Fix, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.lines import remove_statements
from torchmigrate.semantics.model import Binding, Role

_PROTOCOL = "loads the weights from the published URL, with https"
_REEXPORTED = "another file may import the name from this one"
_KEPT = "`{name}` is also used in line {line}, and that use cannot be rewritten; "


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The findings, with fixes where every use of the same dict has one."""
    found = {finding.start: finding for finding in file.fixes.findings(hits)}
    groups: dict[str, list[RuleMatch]] = defaultdict(list)
    for hit in hits:
        if hit.match.start in found and hit.use.role is not Role.IMPORT:
            groups[hit.symbol].append(hit)
    for group in groups.values():
        dropped = [hit for hit in group if _changes_protocol(hit)]
        gone = {id(hit.use.statement) for hit in dropped}
        stays = [
            hit for hit in group if id(hit.use.statement) not in gone and found[hit.match.start].fix is None
        ]
        kept = [hit.match.start for hit in stays] or _unseen(group)
        if kept:
            _strip(group, kept[0], found, file)
        elif dropped:
            fix = _together(rule, group, dropped, found, file)
            for hit in group:
                found[hit.match.start] = replace(found[hit.match.start], fix=fix)
    for hit in hits:
        binding, finding = hit.use.binding, found.get(hit.match.start)
        if hit.use.role is not Role.IMPORT or binding is None or finding is None:
            continue
        if not binding.uses and not binding.exported and finding.fix is None:
            found[hit.match.start] = replace(finding, fix=_removal(rule, binding, file))
    yield from found.values()


def _removal(rule: Rule, binding: Binding, file: FileContext) -> Fix | None:
    """The end of an import that nothing in the file uses; None where it stays, as for its comments."""
    edits = file.imports.removals([DroppedUse(binding.id, ())])
    if not edits:
        return None
    return file.fixes.fix(rule, "Remove the import", Applicability.UNSAFE, because(_REEXPORTED), edits)


def _unseen(group: Sequence[RuleMatch]) -> list[int]:
    """The offsets of uses of an imported dict that are not hits, because guards or comments hide them."""
    seen = {hit.use.start for hit in group}
    own = (hit.use.binding for hit in group if not hit.use.attribute_path)
    return sorted(use for binding in own if binding is not None for use in binding.uses if use not in seen)


def _strip(group: Sequence[RuleMatch], kept_at: int, found: dict[int, Finding], file: FileContext) -> None:
    line = file.source.position(kept_at)[0]
    for hit in group:
        finding = found[hit.match.start]
        if finding.fix is not None:
            kept = _KEPT.format(name=hit.symbol.rpartition(".")[2], line=line)
            found[hit.match.start] = replace(finding, fix=None, help=kept + (finding.help or ""))


def _together(
    rule: Rule,
    group: Sequence[RuleMatch],
    dropped: Sequence[RuleMatch],
    found: dict[int, Finding],
    file: FileContext,
) -> Fix:
    """One fix that removes the statements and rewrites all other uses."""
    statements = {id(hit.use.statement): hit for hit in dropped}
    blocks: dict[int, list[RuleMatch]] = defaultdict(list)
    for hit in statements.values():
        blocks[id(hit.use.block)].append(hit)
    edits = [
        edit
        for hits in blocks.values()
        for edit in remove_statements(
            file.source,
            hits[0].use.block,
            [hit.use.statement for hit in hits],
            module=hits[0].use.block is file.names.tree.body,
        )
    ]
    others = (found[hit.match.start].fix for hit in group if id(hit.use.statement) not in statements)
    fixes = [fix for fix in others if fix is not None]
    level = min([Applicability.UNSAFE, *(fix.applicability for fix in fixes)])
    return file.fixes.fix(
        rule,
        "Load the weights from their own URL",
        level,
        because(_PROTOCOL),
        dict.fromkeys([*edits, *(edit for fix in fixes for edit in fix.edits)]),
        tuple(dict.fromkeys(release for hit in group for release in file.imports.releases(hit.use))),
        {name for fix in fixes for name in fix.requires},
    )


def _changes_protocol(hit: RuleMatch) -> bool:
    """Whether a use is in `model_urls[k] = model_urls[k].replace("https://", "http://")`."""
    statement = hit.use.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target, value = statement.targets[0], statement.value
    return (
        isinstance(target, ast.Subscript)
        and isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "replace"
        and ast.unparse(value.func.value) == ast.unparse(target)
        and [_protocol(argument) for argument in value.args] == ["https", "http"]
        and hit.use.node in (target.value, getattr(value.func.value, "value", None))
    )


def _protocol(node: ast.expr) -> str:
    return str(node.value).rstrip(":/") if isinstance(node, ast.Constant) else ""
