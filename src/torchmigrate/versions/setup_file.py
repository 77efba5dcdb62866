"""What a setup.py says: the arguments of `setup`, and strings that are put together of others."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from torchmigrate.files.formats import FormatError
from torchmigrate.files.reading import UnreadableError
from torchmigrate.source.trees import walk
from torchmigrate.versions.requirement_lists import LONGEST

MOST_STEPS = 200_000  # in working out the strings of a setup.py
_DEEPEST = 20


class SetupFile(Struct, frozen=True):
    """A setup.py.

    values: what names are bound to. keywords: those of the calls of `setup`. texts: works out its strings.
    """

    tree: ast.Module
    values: dict[str, list[ast.expr]]
    keywords: list[ast.keyword]
    texts: _Texts

    def strings(self, keyword: str) -> list[str]:
        """The strings that an argument of `setup` holds."""
        found = (item.value for item in self.keywords if item.arg == keyword)
        return [text for value in found for text in _strings(value, self.values, self.texts)]

    def text(self, node: ast.expr) -> str | None:
        """A string that is put together of others; None: not known."""
        return self.texts.text(node)


def read_setup(data: bytes) -> SetupFile:
    """A setup.py, which is not run.

    Raises FormatError if it is not Python, UnreadableError if it is nested too deeply.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except SyntaxError as error:
        raise FormatError(f"not Python 3 (line {error.lineno})" if error.lineno else "not Python 3") from None
    except ValueError:
        raise FormatError("not Python 3") from None
    except (RecursionError, MemoryError):
        raise UnreadableError("nested too deeply: not read") from None
    values: dict[str, list[ast.expr]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            held = node.func.value
            if node.func.attr in ("append", "extend", "update") and isinstance(held, ast.Name) and node.args:
                values.setdefault(held.id, []).append(node.args[0])
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                values.setdefault(target.id, []).append(value)
            elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                values.setdefault(target.value.id, []).append(value)  # extras["a"] = [...]
    calls = [node for node in walk(tree) if isinstance(node, ast.Call) and _last_name(node.func) == "setup"]
    return SetupFile(tree, values, [keyword for call in calls for keyword in call.keywords], _Texts(values))


class _Texts:
    """Works out strings that are put together of others, in a bounded number of steps.

    values: what names are bound to; of a name that is bound several times, the last one counts.
    """

    def __init__(self, values: Mapping[str, list[ast.expr]]) -> None:
        self.values = values
        self.left = MOST_STEPS

    def text(self, node: ast.expr, depth: int = 0) -> str | None:
        """None: not known, or too long."""
        self.left -= 1
        if self.left < 0 or depth > _DEEPEST:
            return None
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        found: str | None = None
        if isinstance(node, ast.Name) and node.id in self.values:
            found = self.text(self.values[node.id][-1], depth + 1)
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
            # An unknown part cannot match anything that is looked for.
            found = "".join(self.text(part, depth + 1) or "?" for part in parts)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div, ast.Mod)):
            found = self._operation(node, depth)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found = self._call(node, node.func, depth)
        elif isinstance(node, ast.Call) and _last_name(node.func) in ("Path", "str") and node.args:
            found = self.text(node.args[-1], depth + 1)
        return found if found is not None and len(found) <= LONGEST else None

    def _operation(self, node: ast.BinOp, depth: int) -> str | None:
        left, right = self.text(node.left, depth + 1), self.text(node.right, depth + 1)
        if isinstance(node.op, ast.Div):  # a path below one that is not known
            return right if left is None or right is None else f"{left}/{right}"
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else left.replace("%s", right, 1)

    def _call(self, node: ast.Call, function: ast.Attribute, depth: int) -> str | None:
        """`">=".join([a, b])`, `"torch>={}".format(a)` and `os.path.join(here, a, b)`."""
        between = self.text(function.value, depth + 1)
        arguments: Sequence[ast.expr] = node.args
        if function.attr == "join" and between is not None and len(arguments) == 1:
            items = arguments[0].elts if isinstance(arguments[0], (ast.List, ast.Tuple)) else []
            texts = [self.text(item, depth + 1) for item in items]
            known = [text for text in texts if text is not None]
            return between.join(known) if known and len(known) == len(texts) else None
        if function.attr == "join":
            parts = [self.text(item, depth + 1) for item in arguments]
            return "/".join(part for part in parts if part) or None
        if function.attr == "format" and between is not None and len(arguments) == 1:
            value = self.text(arguments[0], depth + 1)
            return None if value is None else re.sub(r"\{0?\}", lambda _: value, between)
        return None


def _strings(node: ast.expr, values: dict[str, list[ast.expr]], texts: _Texts) -> Iterator[str]:
    """The strings of a literal list, sum of lists or dict of lists; names are looked up once each."""
    seen = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.splitlines()
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            waiting += node.elts
        elif isinstance(node, ast.Dict):
            waiting += node.values
        elif isinstance(node, ast.BinOp) and (text := texts.text(node)) is not None:
            yield from text.splitlines()
        elif isinstance(node, ast.BinOp):
            waiting += node.left, node.right
        elif isinstance(node, (ast.Starred, ast.Subscript)):
            waiting.append(node.value)
        elif isinstance(node, ast.IfExp):
            waiting += node.body, node.orelse
        elif isinstance(node, ast.JoinedStr):
            yield texts.text(node) or ""
        elif isinstance(node, ast.Call):
            text = texts.text(node)
            if text is not None:
                yield text
            elif isinstance(node.func, ast.Attribute) and node.func.attr in ("split", "splitlines", "strip"):
                waiting.append(node.func.value)
            elif _last_name(node.func) in ("list", "sorted", "tuple", "set", "dict"):
                waiting += [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            waiting += values.get(node.id, ())


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
