"""TM076: flags that ask for an older C++ than the headers of PyTorch need."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext

_FLAG = pattern(r"[-/]+std[:=](?:c|gnu)\+\+(?:98|03|0x|11|1y|14|(1z|17))")
_WITHOUT_17 = "2.1"  # the first torch with headers that reject what is older than C++17


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every such flag of a file that makes an extension by `torch.utils.cpp_extension`."""
    older = replace(rule, outdated=None, removed=_WITHOUT_17)
    if any(hit.use.call is not None for hit in hits):
        for node in _texts(file):
            text = file.around.text(node)
            if text is not None and (flag := _FLAG.fullmatch(text)) is not None:
                own = rule if flag[1] else older
                yield finding_at(own, file, file.source.span(node), symbol=text, fix=None)


def _texts(file: FileContext) -> Iterator[ast.expr]:
    """The strings of a file, and the expressions that put one together."""
    yield from file.names.nodes(ast.Constant)
    yield from file.names.nodes(ast.JoinedStr)
    for node in file.names.nodes(ast.BinOp):
        if isinstance(node.op, (ast.Add, ast.Mod)) and not isinstance(
            file.names.parents.get(node), ast.BinOp
        ):
            yield node
    for call in file.names.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "format":
            yield call
