"""The plugin of flake8: its codes are `TM`, and those of TorchFix for existing configurations.

flake8 decides what is reported: `select`, `ignore`, `per-file-ignores` and `# noqa` are its own. The
configuration of torchmigrate that a file has decides, as for `torchmigrate check`, for which releases it is
checked and which rules are looked for. Rules that are off unless selected are looked for as well where
flake8's `select` or `extend-select` names them by more than `TM`, which everybody writes there who selects at
all.

Every flake8 in the environment loads this module: what is slow is imported when a file needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate import __version__
from torchmigrate.source.trees import walk

if TYPE_CHECKING:
    import argparse
    import ast

    from torchmigrate.baseline.baselines import Baselines
    from torchmigrate.engine.engine import Engine
    from torchmigrate.findings import Finding
    from torchmigrate.run.configurations import Configurations, Scope
    from torchmigrate.source.text import Source

OURS, THEIRS = "TM", "TOR"
NOT_DONE = "TM000"  # what could not be checked, as flake8's own E902
# TorchFix has one code for the use of a name, and another one for its import.
_OF_IMPORTS = ("TOR004", "TOR103", "TOR105")
_PREFIX = "torchmigrate"

Result = tuple[int, int, str, type["Checker"]]  # row, column (0-based), code and message, the plugin


class Selectors(Struct, frozen=True):
    """What the options of flake8 name. chosen: by which codes are selected; None: the default is.

    named: all of them, also those that are ignored, anywhere.
    """

    chosen: tuple[str, ...] | None = None
    extended: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()

    @property
    def wants_some(self) -> bool:
        """Whether anything that this plugin says can be selected."""
        every = (*(self.chosen or ()), *self.extended)
        return self.chosen is None or any(_overlap(each, code) for each in every for code in (OURS, THEIRS))

    def looked_for(self, known: Iterable[str]) -> frozenset[str]:
        """The codes of ours that are selected by more than the name of the plugin."""
        from torchmigrate.config.torchfix_codes import ours

        known = frozenset(known)
        found: frozenset[str] = frozenset()
        for each in (*(self.chosen or ()), *self.extended):
            if each.startswith(THEIRS):
                found |= ours(each)
            elif each.startswith(OURS) and each != OURS:
                found |= {code for code in known if code.startswith(each)}
        return found & known

    def shown(self, code: str, theirs: Sequence[str]) -> str:
        """The code under which flake8 gets a finding: TorchFix's if the options name that, and not ours."""
        if any(each != OURS and each.startswith(OURS) and code.startswith(each) for each in self.named):
            return code
        for other in theirs:
            if any(each.startswith(THEIRS) and other.startswith(each) for each in self.named):
                return other
        return code


class PluginOptions(Struct, frozen=True):
    """What the options of flake8 come to."""

    selectors: Selectors = Selectors()
    target: str | None = None
    minimum: str | None = None
    config: str | None = None
    noqa: bool = True


class Checker:
    """What flake8 makes for every file. The names of the parameters are those that it knows."""

    name = "torchmigrate"
    version = __version__
    given = PluginOptions()

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        self.tree = tree
        self.path = Path(filename)
        self.lines = lines

    @staticmethod
    def add_options(manager: Any) -> None:
        """Add our options, of the command line and the configuration of flake8."""
        for name, meta, text in (
            ("target", "VERSION", "The torch release to move to."),
            ("minimum", "VERSION", "The oldest torch release that the code must still run on."),
        ):
            manager.add_option(f"--{_PREFIX}-{name}", metavar=meta, parse_from_config=True, help=text)
        manager.add_option(
            f"--{_PREFIX}-config",
            metavar="FILE",
            parse_from_config=True,
            normalize_paths=True,
            help="The configuration of torchmigrate instead of the nearest one of each file.",
        )

    @classmethod
    def parse_options(cls, manager: Any, options: argparse.Namespace, files: Sequence[str]) -> None:
        """Take the options of flake8; each of its processes does."""
        _session.cache_clear()  # another run of a process that goes on
        selectors = _selectors(options)
        cls.given = PluginOptions(
            selectors,
            _version(manager, "target", options.torchmigrate_target),
            _version(manager, "minimum", options.torchmigrate_minimum),
            options.torchmigrate_config,
            not options.disable_noqa,
        )
        # flake8 selects the names of its plugins; TorchFix's codes are not among them.
        options.extended_default_select = [*options.extended_default_select, THEIRS]
        if selectors.wants_some and selectors.chosen is not None:
            options.extend_select = [*(options.extend_select or ()), NOT_DONE]

    def run(self) -> Iterator[Result]:
        """What is found in the file, in order of place."""
        from torchmigrate.semantics.libraries import mentions_library

        if not self.given.selectors.wants_some:
            return
        text = "".join(self.lines)
        # A comment that hides nothing is found in any file.
        some = mentions_library(text) or _PREFIX in text or "noqa" in text.lower()
        if some or _session(self.given).mentions_own(self.path, text):
            if not self.given.noqa:
                text = _without_noqa(self.lines)
            for row, column, said in _session(self.given).check(self.path, text, self.tree):
                yield row, column, said, type(self)


class _Session:
    """What a process of flake8 keeps from one file to the next."""

    def __init__(self, given: PluginOptions) -> None:
        from torchmigrate.config.settings import Layer
        from torchmigrate.files.paths import forget, project_directory
        from torchmigrate.report.console import Console
        from torchmigrate.run.configurations import Configurations

        self.given = given
        forget()
        # flake8 names every file, whether a person named it or a directory that it is in.
        options = Layer(
            option=f"--{_PREFIX}-{{}}",
            target=given.target,
            minimum=given.minimum,
            force_exclude=True,
            root=Path.cwd(),
        )
        config = None if given.config is None else Path(given.config)
        self.configurations: Configurations = Configurations(
            options, config=config, start=project_directory(Path.cwd())
        )
        self.console = Console("never", quiet=True)
        self.engines: list[Engine] = []
        self.baselines: Baselines | None = None

    def mentions_own(self, path: Path, text: str) -> bool:
        """Whether a text may hold something for the user's own rules."""
        from torchmigrate.config.settings import ConfigError

        try:
            return self.configurations.settings_in(path.parent).mentions_own(text)
        except ConfigError:
            return True  # `check` reports it

    def check(self, path: Path, text: str, tree: ast.AST) -> Iterator[tuple[int, int, str]]:
        """Row, column (0-based) and message of everything in the text of a file, in order of place."""
        from torchmigrate.baseline.file import BaselineError
        from torchmigrate.config.settings import ConfigError
        from torchmigrate.printing import printable
        from torchmigrate.project.discover import is_excluded
        from torchmigrate.run.engines import scopes_of
        from torchmigrate.run.results import texts_in
        from torchmigrate.run.runner import attempt
        from torchmigrate.source.text import Source, SourceError

        try:
            if is_excluded(path, self.configurations.settings_in):
                return
            scopes, problems = scopes_of([path], self.configurations, self.console)
            engine = self.engine(scopes[path])
            source = Source.from_text(text, path)
            result = attempt(lambda _: engine.check_source(source, path), path)
            found = [(each, finding) for each, some in texts_in(result, source) for finding in some]
            found = self.not_accepted(path, found, engine.settings.baseline)
        except (BaselineError, ConfigError) as error:
            yield 1, 0, f"{NOT_DONE} {printable(' '.join(str(error).split()))}"
            return
        except SourceError as error:
            yield error.line or 1, 0, f"{NOT_DONE} {printable(error.reason)}"
            return
        for problem in (*problems, *result.problems):
            yield problem.line or 1, 0, f"{NOT_DONE} {printable(problem.reason)}"
        yield from sorted(self.shown(each, finding, tree) for each, finding in found)

    def engine(self, scope: Scope) -> Engine:
        """What checks files for which this holds; all share what they know of the project."""
        from torchmigrate.engine.engine import MOST_FINDINGS, Engine
        from torchmigrate.engine.options import EngineOptions

        settings = scope.settings
        more = self.given.selectors.looked_for(rule.code for rule in scope.known)
        settings = replace(settings, codes=settings.codes | more)
        for engine in self.engines:
            if engine.whole is scope.catalogue and engine.settings == settings:
                return engine
        if self.engines:
            made = self.engines[0].sibling(settings, scope.catalogue)
        else:
            around = self.configurations.settings_around
            made = Engine(scope.catalogue, settings, EngineOptions(settings_in=around, most=MOST_FINDINGS))
        self.engines.append(made)
        return made

    def not_accepted(
        self, path: Path, found: list[tuple[Source, Finding]], baseline: Path | None
    ) -> list[tuple[Source, Finding]]:
        """What the baseline of the file does not hide. Raises BaselineError where it cannot be read."""
        if baseline is None:
            return found
        from torchmigrate.baseline.baselines import Baselines

        self.baselines = self.baselines or Baselines()
        found.sort(key=lambda each: each[1].start)
        return self.baselines.of(baseline).new(path, found)

    def shown(self, source: Source, finding: Finding, tree: ast.AST) -> tuple[int, int, str]:
        """A finding, under the code that the options of flake8 have for it."""
        from torchmigrate.printing import printable
        from torchmigrate.report.reasons import message_of

        _, row, column = source.place(finding.start)
        code, message = finding.code, printable(message_of(finding))
        # Most configurations name no code of TorchFix.
        if any(each.startswith(THEIRS) for each in self.given.selectors.named):
            imported = row in _rows_of_imports(tree)
            code = self.given.selectors.shown(code, _theirs(code, finding.symbol, imported=imported))
        other = "" if code == finding.code else f" ({finding.code})"
        return row, column - 1, f"{code} {message}{other}"


@lru_cache(maxsize=1)
def _session(given: PluginOptions) -> _Session:
    return _Session(given)


def _theirs(code: str, symbol: str | None, *, imported: bool) -> list[str]:
    """What TorchFix calls a finding; nothing if it does not report it."""
    from torchmigrate.config.torchfix_codes import CODES

    listed = [name for name, entry in CODES.items() if code in entry.ours]
    exact = [name for name in listed if symbol is not None and code in CODES[name].rules.get(symbol, ())]
    found = exact or listed
    return [name for name in found if (name in _OF_IMPORTS) is imported] or found


@lru_cache(maxsize=1)
def _rows_of_imports(tree: ast.AST) -> frozenset[int]:
    import ast

    rows: set[int] = set()
    for node in walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            rows.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(rows)


def _without_noqa(lines: Sequence[str]) -> str:
    """The text with as many characters, and comments in which `noqa` means nothing (`--disable-noqa`)."""
    import tokenize

    changed = list(lines)
    for token in tokenize.generate_tokens(iter(lines).__next__):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            line = changed[row - 1]
            changed[row - 1] = line[:column] + re.sub("(?i)noqa", "n qa", line[column:])
    return "".join(changed)


def _selectors(options: argparse.Namespace) -> Selectors:
    from flake8.utils import parse_files_to_codes_mapping  # type: ignore[import-untyped]

    chosen = options.select
    extended = tuple(options.extend_select or ())
    ignored = (*(options.ignore or ()), *(options.extend_ignore or ()))
    of_files = parse_files_to_codes_mapping(options.per_file_ignores or "")
    named = (*(chosen or ()), *extended, *ignored, *(code for _, codes in of_files for code in codes))
    return Selectors(None if chosen is None else tuple(chosen), extended, frozenset(named))


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _version(manager: Any, name: str, value: str | None) -> str | None:
    """A release that is known; flake8 ends with exit code 2 for another one.

    A `type` of argparse would not convert values from the configuration of flake8.
    """
    from torchmigrate.config.settings import check_version

    try:
        return None if value is None else check_version(value)
    except ValueError as error:
        manager.parser.error(f"--{_PREFIX}-{name}: {error}")
        raise
