"""The stable interface of torchmigrate for codemods in installed packages.

The package names a module by an entry point of the group `torchmigrate.codemods`, and a rule names that entry
point: `codemod: acme.amp_step`. The module has one function, as the built-in codemods have:

    def find(rule: Rule, hits: Sequence[Hit], file: File) -> Iterable[Finding]

It is called once for each file with uses of the symbols of the rule. If it raises an exception, the uses are
reported without a fix.

Of `Rule`, these attributes are stable: `code`, `name`, `symbols`. Of `Hit`: `symbol` (of the rule), `name`
(the qualified name that was found), `use.node`, `use.call` (the `ast.Call`, or None), `use.statement`. Of
`File`: `path`, `tree` (an `ast.Module`), `source.text`, `names.nodes(*classes)` (all nodes of some classes).
"""

from __future__ import annotations

import ast

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import fix_by
from torchmigrate.findings import Edit, Finding
from torchmigrate.match.rule_matches import RuleMatch as Hit
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.context import FileContext as File
from torchmigrate.rewrite.imports.swaps import Refusal
from torchmigrate.rewrite.nodes import name_replaced, replaced

__all__ = ["CallEditor", "Code", "Edit", "File", "Finding", "Hit", "Rule", "code", "finding", "replace"]


def replace(file: File, node: ast.expr | ast.stmt, new: Code) -> Edit:
    """The edit that writes new code in the place of an expression or a simple statement.

    Args:
        node: a node of `file.tree`.
        new: made by `code("$f($x, dim=-1)", f="torch.foo", x=node)`, which quotes the source and adds
            parentheses where they are needed.

    Raises:
        CannotFix: the new code binds a name of what it quotes; the use is then reported without a fix.
    """
    return replaced(file.source, node, new)


def finding(
    rule: Rule, hit: Hit, file: File, *edits: Edit, title: str = "", new_name: str | None = None
) -> Finding:
    """The finding for a use, with a fix if there are edits and the use surely is what the rule is about.

    Args:
        edits: all that the fix changes, without imports. None: the use is only reported.
        title: what the fix does, in the imperative: "Pass `weights_only=True`".
        new_name: a qualified name; the use is replaced by it, and the file imports it if necessary.

    Raises:
        ValueError: there is a fix, and the rule does not say how safe it is (`applicability`).
    """
    if not (edits or new_name) or not file.fixes.may_fix(hit):
        return file.fixes.finding(hit, None)
    if not rule.cases:
        raise ValueError(f"rule {rule.code} needs `applicability`, because its codemod makes a fix")
    spelling = file.imports.spell(new_name, hit.use) if new_name is not None else None
    if isinstance(spelling, Refusal):
        return file.fixes.finding(hit, None)
    if spelling is not None:
        edits = (*edits, name_replaced(hit.use, spelling.text), *spelling.edits)
    title = title or (f"Replace with `{new_name}`" if new_name else "Rewrite the call")
    return file.fixes.finding(hit, fix_by(rule, file, title, *edits))
