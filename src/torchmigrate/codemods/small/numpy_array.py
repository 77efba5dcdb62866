"""TM877: `np.array(tensor)`, whose `copy` NumPy 2 passes on to a method that does not take it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced_around
from torchmigrate.source.trees import walk

_NAMES = ("numpy.array", "numpy.asarray")


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every such call with a tensor."""
    formatted = {id(part): text for text in file.names.nodes(ast.JoinedStr) for part in walk(text)}
    for node in file.names.nodes(ast.Call):
        if len(node.args) != 1:
            continue
        name, array = file.around.imported(node.func), node.args[0]
        if name not in _NAMES or isinstance(array, ast.Starred) or not file.facts.is_tensor(array):
            continue
        keywords = {item.arg for item in node.keywords}
        if None in keywords or (name == "numpy.asarray" and "copy" not in keywords):
            continue  # without `copy`, it takes any array
        if file.runs_elsewhere(node):
            continue
        fix, around = None, formatted.get(id(node))
        if around is None:
            edits = replaced_around(file.source, array, code("$array.numpy()", array=array), array)
            fix = fix_by(rule, file, "Add `.numpy()`", *edits)
        yield finding_at(
            rule, file, file.source.span(around or array), symbol="torch.Tensor.__array__", fix=fix
        )
