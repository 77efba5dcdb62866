"""Loads rules from YAML, strictly: what is not understood is an error, with file, line and what is allowed.

Reading happens in three steps: `yaml_source` (text to data with lines), `shape` (the schema), and `convert`
with `cases` and `examples` (rules, and what their parts say about each other). docs/develop/rules.md
describes the format for authors. Runs use the compiled form (`store`) and import none of this.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from torchmigrate.catalogue.convert import read_rule
from torchmigrate.catalogue.examples import Example, check_kinds, read_examples
from torchmigrate.catalogue.files import directory_files
from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.problems import CatalogueError, RuleProblem
from torchmigrate.catalogue.shape import check_shape
from torchmigrate.catalogue.yaml_source import read_yaml
from torchmigrate.source.other import CPP, DOCKER, INI, MAKE, MARKDOWN, REQUIREMENTS, SHELL, TOML, YAML

# What a file of each kind may be called: an example is one.
EXAMPLE_NAMES = {
    SHELL: "train.sh",
    MAKE: "Makefile",
    DOCKER: "Dockerfile",
    YAML: "train.yaml",
    MARKDOWN: "README.md",
    TOML: "pyproject.toml",
    INI: "setup.cfg",
    REQUIREMENTS: "requirements.txt",
    CPP: "kernel.cu",
}


class Named(Protocol):
    """A rule, or the head of one."""

    @property
    def code(self) -> str: ...
    @property
    def name(self) -> str: ...


class LoadedRule(NamedTuple):
    """A rule and its examples."""

    rule: Rule
    examples: tuple[Example, ...]


def load_directory(directory: Path, *, relative: bool = False) -> list[LoadedRule]:
    """Load every rule file below a directory.

    Args:
        directory: where the rules are.
        relative: whether `Rule.path` is counted from `directory` (with `/`) instead of as given.

    Raises:
        CatalogueError: one of them cannot be loaded; holds the mistakes of all files.
    """
    return load_files(directory_files(directory), directory if relative else None)


def load_files(paths: Iterable[Path], base: Path | None = None) -> list[LoadedRule]:
    """Load rule files; with `base`, `Rule.path` is counted from there.

    Raises:
        CatalogueError: one of them cannot be loaded; holds the mistakes of all files.
    """
    loaded: list[LoadedRule] = []
    problems: list[RuleProblem] = []
    places: list[Path] = []
    for path in paths:
        try:
            rules = load_file(path, path.relative_to(base).as_posix() if base else str(path))
        except CatalogueError as error:
            problems += error.problems
            continue
        loaded += rules
        places += [path] * len(rules)
    problems += duplicates(zip(places, (item.rule for item in loaded), strict=True))
    if problems:
        raise CatalogueError(problems)
    return loaded


def load_file(path: Path, shown_path: str | None = None) -> list[LoadedRule]:
    """Load one rule file; `shown_path` is the path that its rules give as theirs.

    Raises:
        CatalogueError: it cannot be loaded; holds everything that is wrong with it.
    """
    file = read_yaml(path)
    broken = check_shape(file)
    loaded: list[LoadedRule] = []
    if isinstance(file.data, list):
        for number, raw in enumerate(file.data):
            if number in broken or not isinstance(raw, dict):
                continue
            rule = read_rule(raw, number, file, shown_path or str(path))
            default = EXAMPLE_NAMES.get(rule.files[0]) if rule.files else None
            examples = read_examples(raw.get("examples", []), (number, "examples"), file, default)
            if "examples" in raw:
                check_kinds(rule, examples, (number, "examples"), file)
            loaded.append(LoadedRule(rule, examples))
    problems = [*file.problems, *duplicates((path, item.rule) for item in loaded)]
    if problems:
        raise CatalogueError(problems)
    return loaded


def confused(group: str, rules: Iterable[Named]) -> str | None:
    """Why a group cannot have this name: it selects some of these rules otherwise. None: it can.

    Case does not count, because `explain` ignores it.
    """
    if group == "all":
        return "cannot be distinguished from `ALL`"
    for rule in rules:
        if group == rule.name:
            return f"is the name of the rule {rule.code}"
        if rule.code.startswith(group.upper()):
            return f"is the beginning of the code {rule.code}"
    return None


def duplicates(rules: Iterable[tuple[Path, Rule]]) -> list[RuleProblem]:
    """A problem for every rule whose code or name an earlier one has, placed at the later one.

    And for every rule whose group also selects rules as a code, a prefix or a name.
    """
    rules = list(rules)
    problems = [
        RuleProblem(path, rule.line, f"group `{rule.group}` {why}")
        for path, rule in rules
        if rule.group and (why := confused(rule.group, (each for _, each in rules)))
    ]
    first: dict[str, tuple[Path, Rule]] = {}
    for path, rule in rules:
        for kind, word in (("code", rule.code), ("name", rule.name)):
            if not word:
                continue
            if word in first:
                where, other = first[word]
                place = f"line {other.line}" if where == path else f"{where}:{other.line}"
                problems.append(RuleProblem(path, rule.line, f"{kind} `{word}` is used already, by {place}"))
            else:
                first[word] = (path, rule)
    return problems
