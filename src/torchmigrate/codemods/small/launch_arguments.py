"""TM573 and TM574: scripts for `torch.distributed.launch`, and commands that start them.

Neither is a use of a name: the launcher hands the local rank to the script as an argument, and is itself
named in command lines.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.prefilter import has_word
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.quotes import quoted_like

_OLD, _NEW = "--local_rank", "--local-rank"
_LAUNCH = "torch.distributed.launch"
# At the beginning of a text, or after another command; in a sentence it is for people. A program that is put
# into an f-string, or before a text, is not seen.
_COMMAND = pattern(
    r"(?:^|&&|[;|(])\s*(?:(?:\w+=\S*|env|exec|nohup|srun|sudo|time)\s+)*(?:\S*python[\d.]*\s+|\$\S+\s+)?"
    r"(?:-\w+\s+)*-m\s+torch\.distributed\.launch\b"
)
_SCRIPT = pattern(_COMMAND.pattern, re.MULTILINE)
# Text for people: in calls of these functions and methods, and as these arguments of an option parser.
_SAYS = frozenset("print warn warning info debug error critical exception log echo skip fail".split())
_TOLD = frozenset(("help", "usage", "description", "epilog", "msg", "message", "reason"))


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """Every argument of an option parser that is the old one, or every command; as the rule says.

    Uses of the launcher's name are for another rule, TM560.
    """
    yield from _LOOK[rule.name](rule, file)


def _arguments(rule: Rule, file: FileContext) -> Iterator[Finding]:
    """`parser.add_argument("--local_rank")` that does not take the new spelling too.

    The launcher of DeepSpeed still passes the old one; those of accelerate and `torchrun` pass none, so that
    the script reads it from the environment.
    """
    if has_word(file.source.text, "deepspeed") or _starts_otherwise(file):
        return
    for node in file.names.nodes(ast.Call):
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("add_argument", "add_option"):
            continue
        flags = {item.value: item for item in node.args if isinstance(item, ast.Constant)}
        old = flags.get(_OLD)
        if old is None or _NEW in flags:
            continue
        source = file.source
        fix = None
        if not any(isinstance(item, ast.Starred) for item in node.args):
            call = CallEditor(source, node)
            call.add_behind(old, quoted_like(old, _NEW, source))
            edits = call.edits()
            fix = fix_by(rule, file, f"Also take `{_NEW}`", *edits) if edits is not None else None
        symbol = f"{_LAUNCH}({_OLD})"
        yield finding_at(rule, file, source.span(old), symbol=symbol, fix=fix)


def _starts_otherwise(file: FileContext) -> bool:
    """Whether a file uses accelerate, or reads `LOCAL_RANK` from the environment."""
    roots = {(binding.target or "").partition(".")[0] for binding in file.names.imports}
    if "accelerate" in roots:
        return True
    for call in file.names.nodes(ast.Call):  # os.environ.get("LOCAL_RANK"), os.getenv, env_int, ...
        if any(map(_is_variable, call.args)):
            return True
    return any(
        isinstance(item.ctx, ast.Load) and _is_variable(item.slice)
        for item in file.names.nodes(ast.Subscript)
    )


def _is_variable(node: ast.expr) -> bool:
    return _text(node) == "LOCAL_RANK"


def _commands(rule: Rule, file: FileContext) -> Iterator[Finding]:
    """`python -m torch.distributed.launch` in a string, or as two items of a list."""
    names = file.names
    strings = names.nodes(ast.JoinedStr)
    # Those that stand alone say how to start the script, and do not do so; texts of f-strings have positions
    # of their own that are not reliable.
    passed = {id(node.value) for node in names.nodes(ast.Expr) if isinstance(node.value, ast.Constant)}
    passed.update(id(value) for node in strings for value in node.values)
    found: list[ast.expr] = [node for node in strings if any(map(_is_command, node.values))]
    lists = [node.elts for node in names.nodes(ast.List)]
    lists += [node.elts for node in names.nodes(ast.Tuple)]
    for items in lists:
        pairs = pairwise(items)
        found += [other for one, other in pairs if _text(one) == "-m" and _text(other) == _LAUNCH]
    found += [node for node in names.nodes(ast.Constant) if id(node) not in passed and _is_command(node)]
    for item in found:
        if not _is_said(item, names.parents):
            yield finding_at(rule, file, file.source.span(item), symbol=_LAUNCH, fix=None)


def _is_said(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a text is for people: of an error, of a log, of the help of the program."""
    while not isinstance(node, ast.stmt):
        if isinstance(node, ast.keyword) and node.arg in _TOLD:
            return True
        inner, node = node, parents[node]
        if isinstance(node, ast.Call) and inner is not node.func:
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in _SAYS:
                return True
    return isinstance(node, (ast.Raise, ast.Assert))


def _text(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _is_command(node: ast.expr) -> bool:
    text = _text(node)
    if not isinstance(text, str) or _LAUNCH not in text:
        return False
    return (_SCRIPT if text.startswith("#!") else _COMMAND).search(text) is not None


_LOOK: dict[str, Callable[[Rule, FileContext], Iterator[Finding]]] = {
    "local-rank-argument": _arguments,
    "launch-command": _commands,
}
