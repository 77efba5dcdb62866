"""YAML read with the line of every key and value, and without what YAML quietly allows.

Duplicate keys, dates, merge keys and aliases that contain themselves are mistakes here, and numbers with a
point keep their spelling, so that a version that was not quoted can be reported as it was written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, field

from torchmigrate.catalogue.problems import CatalogueError, KeyPath, RuleProblem
from torchmigrate.files.formats import MOST_DEPTH, check_yaml
from torchmigrate.files.reading import UnreadableError, read

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # several times faster, where it is there
MOST_VALUES = 100_000  # in one file; a few aliases can stand for millions
LONGEST_NUMBER = 100
_TAG = "tag:yaml.org,2002:"
_PLAIN = frozenset(_TAG + kind for kind in ("bool", "int", "float", "null", "str"))


class YamlFile(Struct):
    """A parsed file: plain Python data, and where each part of it stands.

    Keys are always strings: `true:` is "True" and `1:` is "1", the Python source of what was written.
    """

    path: Path
    data: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)  # of keys and list items, from 1
    floats: dict[KeyPath, str] = field(default_factory=dict)  # as they were written
    problems: list[RuleProblem] = field(default_factory=list)

    def line(self, path: KeyPath) -> int:
        """The line of a part of the file, or of the nearest part around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def problem(self, path: KeyPath, text: str) -> None:
        self.problems.append(RuleProblem(self.path, self.line(path), " ".join(text.split())))


def read_yaml(path: Path) -> YamlFile:
    """Read one YAML file.

    Raises:
        CatalogueError: it cannot be read, or is not YAML.
    """
    try:
        text = read(path).decode("utf-8")
    except UnreadableError as error:
        raise CatalogueError([RuleProblem(path, 0, error.reason)]) from None
    except UnicodeDecodeError:
        raise CatalogueError([RuleProblem(path, 0, "is not UTF-8")]) from None
    try:
        check_yaml(text, aliases=True)
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # Quoted parts are from the file.
        reason = re.sub(r"\s*(['\"]).*\1", "", " ".join(filter(None, (error.context, error.problem))))
        reason = reason or "not valid YAML"
        raise CatalogueError([RuleProblem(path, mark.line + 1 if mark else 0, f"YAML: {reason}")]) from None
    except yaml.YAMLError:
        raise CatalogueError([RuleProblem(path, 0, "YAML: not valid YAML")]) from None
    except UnreadableError as error:
        raise CatalogueError([RuleProblem(path, 0, error.reason)]) from None
    file = YamlFile(path)
    if node is not None:
        file.data = _Builder(file).build(node, (), ())
    return file


class _Builder:
    def __init__(self, file: YamlFile) -> None:
        self.file = file
        self.room = MOST_VALUES
        self.scalars = yaml.constructor.SafeConstructor()

    def build(self, node: yaml.Node, path: KeyPath, around: tuple[int, ...]) -> Any:
        self.file.lines.setdefault(path, node.start_mark.line + 1)
        self.room -= 1
        if self.room < 0 or len(around) > MOST_DEPTH:
            raise CatalogueError([RuleProblem(self.file.path, 0, "too large for a rule file: not read")])
        if id(node) in around:
            self.file.problem(path, "an alias that contains itself is not allowed")
            return None
        around = (*around, id(node))
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path, around)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, number), around) for number, item in enumerate(node.value)]
        return self.scalar(node, path)

    def mapping(self, node: yaml.MappingNode, path: KeyPath, around: tuple[int, ...]) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.file.lines.setdefault((*path, "?"), line)
                self.file.problem((*path, "?"), "a key must be a plain string")
                continue
            if key_node.tag == _TAG + "str":
                key = str(key_node.value)
            else:
                key = repr(self.scalar(key_node, path)) if key_node.tag in _PLAIN else str(key_node.value)
            if key in built:
                first = self.file.lines[(*path, key)]
                self.file.problems.append(
                    RuleProblem(self.file.path, line, f"duplicate key `{key}`, first on line {first}")
                )
                continue
            self.file.lines[(*path, key)] = line
            built[key] = self.build(value_node, (*path, key), around)
        return built

    def scalar(self, node: yaml.Node, path: KeyPath) -> Any:
        if node.tag not in _PLAIN:
            kind = node.tag.removeprefix(_TAG)
            self.file.problem(path, f"`{node.value}` is read as a {kind}: put it in quotes")
            return str(node.value)
        if node.tag != _TAG + "str" and len(node.value) > LONGEST_NUMBER:
            self.file.problem(path, "a number has too many digits")
            return None
        value = self.scalars.construct_object(node)
        if isinstance(value, float):
            self.file.floats[path] = str(node.value)
        return value
