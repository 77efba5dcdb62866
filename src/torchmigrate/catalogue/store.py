"""Where the rules come from: the compiled file of a wheel, the YAML of a checkout, a user's directories."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchmigrate.catalogue.compiled_file import CompiledFile, RuleName, StaleError, unpack
from torchmigrate.catalogue.files import directory_files, rule_paths
from torchmigrate.catalogue.index import Catalogue, Content
from torchmigrate.catalogue.problems import CatalogueError, RuleProblem
from torchmigrate.files.paths import exists, is_dir, remembered
from torchmigrate.semantics.libraries import LIBRARY_ROOTS

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example
    from torchmigrate.catalogue.loader import LoadedRule
    from torchmigrate.catalogue.model import Rule
    from torchmigrate.config.selection import Selectable

COMPILED = Path(__file__).with_name("_compiled.rules")
PACKAGE = "package:"  # in `rules = [...]`: an installed package, by the name of its entry point
_PACKAGE = Path(__file__).parent.parent
_INSTALLED_RULES = _PACKAGE / "rules"  # where the wheel has them
_CHECKOUT_RULES = _PACKAGE.parent.parent / "rules"


def rules_directory() -> Path:
    """The directory of our own rules.

    Raises:
        CatalogueError: there is none, the installation is broken.
    """
    for directory in (_INSTALLED_RULES, _CHECKOUT_RULES):
        if directory.is_dir():
            return directory
    raise CatalogueError([RuleProblem(_INSTALLED_RULES, 0, "the rules are missing: reinstall torchmigrate")])


def rule_files() -> list[Path]:
    """Our own rule files, in the order of the catalogue."""
    return rule_paths(rules_directory())


def own_rules() -> tuple[Sequence[RuleName], Catalogue]:
    """The names of our own rules, also of those that are code, and the catalogue of the others.

    It is compiled, or from YAML where that is newer (in a checkout).

    Raises:
        CatalogueError: the YAML cannot be loaded.
    """
    file = _compiled_file()
    return file.names, Catalogue(lambda: _content(file.rules))


def default_catalogue() -> Catalogue:
    """The catalogue of `own_rules`.

    Raises:
        CatalogueError: the YAML cannot be loaded.
    """
    return own_rules()[1]


def compile_own(directory: Path, made_from: str) -> bytes:
    """The bytes of the compiled file of all our own rules: those in `directory`, and those that are code.

    The one way in which a checkout and the build of a wheel make it.

    Raises:
        CatalogueError: the YAML cannot be loaded.
    """
    from torchmigrate.catalogue.builtin import RULES
    from torchmigrate.catalogue.compiled import dump
    from torchmigrate.catalogue.loader import load_directory

    return dump([item.rule for item in load_directory(directory, relative=True)], made_from, RULES)


def load_user_rules(paths: Sequence[Path], within: Path | None = None) -> list[LoadedRule]:
    """The rules in a user's directories (or single files), with their examples.

    within: the directory (a real path) that all files have to be in.

    Raises:
        CatalogueError: something in them is wrong, or a directory holds no rules.
    """
    from torchmigrate.catalogue.loader import load_files

    return load_files(user_rule_files(paths, within))


def user_rule_files(paths: Sequence[Path], within: Path | None = None) -> Collection[Path]:
    """The files with the rules in a user's directories, in the order of the catalogue.

    within: as above.

    Raises:
        CatalogueError: a file is not in it, or a directory holds no rules.
    """
    files: dict[Path, Path] = {}  # a file that is reached twice is loaded once
    for path in paths:
        installed = path.name.startswith(PACKAGE)
        if installed:
            from torchmigrate.catalogue.installed import rule_directory

            path = rule_directory(path.name.removeprefix(PACKAGE))
        for file in [path] if exists(path) and not is_dir(path) else directory_files(path):
            real = Path(os.path.realpath(file))
            if within is not None and not installed and not real.is_relative_to(within):
                raise CatalogueError([RuleProblem(file, 0, "points outside of the project: not read")])
            files.setdefault(real, file)
    return files.values()


def merge(catalogue: Catalogue, rules: Iterable[LoadedRule]) -> Catalogue:
    """The catalogue, followed by a user's rules.

    Raises:
        CatalogueError: a code or name is used already, or a group is a code, a prefix or a name.
    """
    more = [item.rule for item in rules]
    check_free([*catalogue.heads, *own_rules()[0]], more)
    return Catalogue.of([*catalogue.rules, *more])


def check_free(known: Sequence[Selectable], rules: Iterable[Rule]) -> None:
    """Check that no rule of a user has the code or the name of a known one, and no group a word for others.

    Raises:
        CatalogueError: a code or name is used already, or a group is a code, a prefix or a name.
    """
    from torchmigrate.catalogue.loader import confused

    taken = {word: each for each in known for word in (each.code, each.name)}
    grouped = {each.group for each in known}
    problems = []
    for rule in rules:
        if rule.group and (why := confused(rule.group, known)):
            problems.append(RuleProblem(Path(rule.path), rule.line, f"group `{rule.group}` {why}"))
        if rule.name in grouped:
            text = f"name `{rule.name}` is the name of a group of rules"
            problems.append(RuleProblem(Path(rule.path), rule.line, text))
        for kind, word in (("code", rule.code), ("name", rule.name)):
            if word in taken:
                other = f"{taken[word].code} ({taken[word].name})"
                text = f"{kind} `{word}` is used already, by torchmigrate's own {other}"
                problems.append(RuleProblem(Path(rule.path), rule.line, text))
    if problems:
        raise CatalogueError(problems)


def own_names(rules: Iterable[Rule]) -> frozenset[str]:
    """The symbols and modules of a user's rules that belong to none of the known libraries."""
    named = (name for rule in rules if not rule.files for name in (*rule.symbols, *rule.modules))
    return frozenset(name for name in named if name.partition(".")[0] not in LIBRARY_ROOTS)


def examples_of(rule: Rule) -> tuple[Example, ...]:
    """The examples of a rule, read from where it was defined.

    Raises:
        CatalogueError: its file was removed or broken since it was loaded.
    """
    path, _ = source_of(rule)
    for loaded in _loaded_file(path):
        if loaded.rule.code == rule.code:
            return loaded.examples
    raise CatalogueError([RuleProblem(path, 0, f"rule {rule.code} no longer exists")])


def source_of(rule: Rule) -> tuple[Path, int]:
    """The file in which a rule was defined, and the line on which it starts."""
    own = rules_directory() / rule.path
    return (own if own.is_file() else Path(rule.path)), rule.line


@remembered
def _loaded_file(path: Path) -> list[LoadedRule]:
    from torchmigrate.catalogue.loader import load_file

    return load_file(path)


def _compiled_file() -> CompiledFile:
    """What the compiled file says, or would say if it were not missing, damaged or out of date."""
    try:
        file = unpack(COMPILED.read_bytes())
    except (OSError, StaleError):
        file = None
    installed = _INSTALLED_RULES.is_dir()
    stamp = "" if installed else _stamp()
    if file is not None and (installed or file.made_from == stamp):
        return file
    data = compile_own(rules_directory(), stamp)
    if not installed:
        # Where nothing can be written (a read-only checkout), every run reads the YAML again.
        _write(COMPILED, data)
    return unpack(data)


def _content(rules: bytes) -> Content:
    from torchmigrate.catalogue.compiled import content  # every run loads this module, few read the rules

    try:
        return content(rules)
    except StaleError:
        return Catalogue.of(_rules_from_yaml()).content


def _rules_from_yaml() -> list[Rule]:
    from torchmigrate.catalogue.loader import load_directory

    return [item.rule for item in load_directory(rules_directory(), relative=True)]


def _stamp() -> str:
    """What the compiled file of a checkout depends on: rules, and the code that makes it of them.

    Name, mtime in ns and size of every file.
    """
    packages = ("catalogue", "versions")
    code = [path for name in packages for path in sorted((_PACKAGE / name).glob("*.py"))]
    parts = []
    for path in [*rule_files(), *code, *sorted(_PACKAGE.glob("codemods/*/"))]:
        found = path.stat()
        parts.append(f"{path.parent.name}/{path.name}:{found.st_mtime_ns}:{found.st_size}")
    return " ".join(parts)


def _write(path: Path, data: bytes) -> None:
    """Write a file at once or not at all, so that no other run reads half of it."""
    import tempfile  # costs 10 ms, and most runs write nothing

    from torchmigrate.files.signals import held

    temporary = None
    with held():
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
                temporary = Path(file.name)
                file.write(data)
            temporary.chmod(0o644)
            temporary.replace(path)
        except OSError:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
