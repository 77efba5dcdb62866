"""TM600: `torch.load` without `weights_only`: what the file must hold, by how the result is used.

`torch.load` with `weights_only=True` reads tensors, plain containers and numbers. Code that passes the result
to `load_state_dict`, or reads its usual keys, needs no more than this.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.torch_load.held import LoadCase, Loads
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.project.one_project import Project
from torchmigrate.rewrite.context import FileContext

# Files that use these already handle `weights_only`. (torch/serialization.py)
_SETTLED = ("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "safe_globals")
# What is in a text in which `torch.load` is assigned.
_REPLACED = ("torch.load=", "torch.load =", "torch.load  ", "torch.load\t", "torch.load\\", "torch.load \\")
_WHOLE = "`torch.load` without `weights_only` raises since torch 2.6: the file holds a whole object"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The findings; where a state dict is read, the code is only outdated: the new default reads it, too."""
    text = file.source.text
    if any(word in text for word in _SETTLED) or _is_replaced(file):
        return
    if bool(hits) and file.project.ask(Project.decides_loading, file.path):
        return
    loads = Loads(file, [hit.use.call for hit in hits if hit.use.call is not None])
    cases = loads.cases()
    chosen = []
    for hit in hits:
        case, call = LoadCase.UNKNOWN, hit.use.call
        if call is not None:
            case = cases[call]
        one = replace(rule, cases=(rule.cases[case],))
        if case in (LoadCase.STATE, LoadCase.OWN_STATE, LoadCase.PLAIN_FILE):
            one = replace(one, outdated=rule.changed, deprecated=None, changed=None)
        elif call is not None and loads.reads_whole_object(call):
            one = replace(one, summary=_WHOLE)
        chosen.append(replace(hit, rule=one))
    yield from file.fixes.findings(chosen)


def _is_replaced(file: FileContext) -> bool:
    """Whether the file gives `torch.load` another default for all."""
    return any(word in file.source.text for word in _REPLACED) and any(
        isinstance(target, ast.Attribute) and ast.unparse(target) == "torch.load"
        for node in file.names.nodes(ast.Assign)
        for target in node.targets
    )
