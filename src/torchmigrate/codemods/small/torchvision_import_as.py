"""TM996: `import torchvision.models as models` becomes `from torchvision import models`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import fix_by
from torchmigrate.findings import Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `import ... as ...` among the hits; with a fix where it stands alone."""
    for hit in hits:
        statement, alias = hit.use.statement, hit.use.node
        if isinstance(statement, ast.Import) and isinstance(alias, ast.alias) and alias.asname is not None:
            yield file.fixes.finding(hit, _fix(rule, statement, alias, alias.asname, file))


def _fix(rule: Rule, statement: ast.Import, alias: ast.alias, local: str, file: FileContext) -> Fix | None:
    """The other form, which binds the same name to the same module."""
    if len(statement.names) > 1:
        return None
    module, _, name = alias.name.rpartition(".")
    new = f"from {module} import {name}" + ("" if local == name else f" as {local}")
    template = "from $module import $name" if local == name else "from $module import $name as $local"
    edit = replaced(file.source, statement, code(template, module=module, name=name, local=local))
    return fix_by(rule, file, f"Write `{new}`", edit)
