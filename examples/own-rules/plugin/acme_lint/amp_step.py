"""ACM003: `train_utils.amp_step(loss, optimizer)` becomes `step(loss, optimizer, scaler)`."""

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.plugins import CallEditor, File, Finding, Hit, Rule, code, finding


def find(rule: Rule, hits: Sequence[Hit], file: File) -> Iterator[Finding]:
    scaler = scaler_of(file)
    for hit in hits:
        call = hit.use.call
        if call is None or scaler is None or len(call.args) != 2 or call.keywords:
            yield finding(rule, hit, file)  # reported, not fixed
            continue
        arguments = CallEditor(file.source, call)
        arguments.add(code("$scaler", scaler=scaler))
        yield finding(rule, hit, file, *(arguments.edits() or ()), new_name="train_utils.step")


def scaler_of(file: File) -> str | None:
    """The only name in the file that holds the result of `make_scaler()`."""
    names = {
        node.targets[0].id
        for node in file.names.nodes(ast.Assign)
        if isinstance(node.targets[0], ast.Name) and "make_scaler()" in ast.unparse(node.value)
    }
    return names.pop() if len(names) == 1 else None
