"""README.md and docs/, executed. `PYTHONPATH=tests python tests/installed/test_readme.py --update [PAGE...]` writes what the commands print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from harness.launcher import shell_line
from jsonschema import Draft202012Validator

from torchmigrate.files.formats import read_toml
from torchmigrate.files.paths import nearest_project
from torchmigrate.report.reasons import message_of

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
MIGRATIONS = DOCS / "migrations"
EXAMPLES = ROOT / "examples"
PAGES = (README, *sorted(DOCS.rglob("*.md")))
CLONE = "/home/me/torchmigrate"  # what the clone is called in the text
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Not for their output: these install things. The last one is what .ci/run executes.
SETUP, TESTS = "python3 -m venv", "pip install"
PLUGIN = "pip install ./"  # of the clone, offline, for the commands that follow


class Block(NamedTuple):
    """A fenced block, and where its content is in the text."""

    language: str
    content: str
    start: int
    end: int


def blocks(text: str, language: str) -> Iterator[Block]:
    for match in BLOCK.finditer(text):
        if match[1] == language:
            yield Block(match[1], match[2], match.start(2), match.end(2))


def commands(content: str) -> list[str]:
    return [line[2:] for line in content.splitlines() if line.startswith("$ ")]


class Clone:
    """A git clone of this checkout, changes that are not committed included.

    Args:
        where: an existing directory, which gets the clone and, beside it, a home and the programs under test.
    """

    def __init__(self, where: Path) -> None:
        self.path = where / "torchmigrate"
        self.home, self.site, programs = where / "home", where / "site", where / "programs"
        self.home.mkdir()
        programs.mkdir()
        for name in ("torchmigrate", "flake8"):
            program = programs / name
            program.write_text(f"#!/bin/sh\n{shell_line(name)}\n")
            program.chmod(0o755)
        kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        self.environment = {
            **kept,
            "TEST_SITE": str(self.site),  # of the packages that a page installs
            "PATH": os.pathsep.join((str(programs), os.environ["PATH"])),
            "PYTHONIOENCODING": "utf-8",
            "HOME": str(self.home),
        }
        git("clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(self.path), at=where)
        listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", at=ROOT)
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():  # else it was removed, and that is not committed
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.path / name)
        git("add", "--all", at=self.path)
        git("commit", "--quiet", "--allow-empty", "--message=What is not committed", at=self.path)

    def restore(self) -> None:
        """Undo what commands have done to the files."""
        git("reset", "--quiet", "--hard", at=self.path)
        git("clean", "--quiet", "-ffdx", at=self.path)
        shutil.rmtree(self.site, ignore_errors=True)


def git(*arguments: str, at: Path) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=at, env=environment, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def the_clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone(tmp_path_factory.mktemp("clone").resolve())


@pytest.fixture
def clone(the_clone: Clone) -> Iterator[Clone]:
    """A clone in which no command has run yet."""
    yield the_clone
    the_clone.restore()


def output(command: str, directory: Path, clone: Clone, environment: dict[str, str] | None = None) -> str:
    """What a command prints on both streams, in the order in which it does.

    directory: where it runs. environment: instead of that of the clone.
    """
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environment or clone.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    text = done.stdout.decode().replace(str(clone.path), CLONE)
    assert done.returncode in (0, 1) and "exit code 2" not in text, f"{command}\n{text}"
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def executed(text: str, clone: Clone) -> str:
    """The text, with what its commands print in a new clone. A page is one session: files stay as they are left."""
    here = clone.path
    parts, position = [], 0
    for block in blocks(text, "console"):
        parts.append(text[position : block.start])
        position = block.end
        for command in commands(block.content):
            if command.startswith("cd "):
                here = (here / command.removeprefix("cd ")).resolve(strict=True)
                printed = ""
            else:
                printed = _printed_by_setup(command, here, clone)
            parts.append(f"$ {command}\n{printed}")
    return "".join([*parts, text[position:]])


def _printed_by_setup(command: str, directory: Path, clone: Clone) -> str:
    if command.startswith(PLUGIN):
        path = directory / command.removeprefix(PLUGIN)
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation")
        subprocess.run(
            [*pip, "--disable-pip-version-check", "--target", str(clone.site), str(path)], check=True
        )
        return ""
    if command.startswith(TESTS):
        return ""
    if command.startswith(SETUP):  # installed for real by another test; what it prints is what this does
        command = command.rpartition("&& .venv/bin/")[2]
    return output(command, directory, clone)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=() if page == README else pytest.mark.one_python) for page in PAGES],
    ids=map(name_of, PAGES),
)
def test_every_command_prints_what_is_shown(page: Path, clone: Clone) -> None:
    """A reader who follows a page to the letter in a clone sees what the page shows."""
    text = page.read_text("utf-8")
    assert executed(text, clone) == text, (
        "run `PYTHONPATH=tests python tests/installed/test_readme.py --update` and read the difference"
    )


@pytest.mark.parametrize("directory", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_every_example_is_a_project_that_a_page_uses(directory: Path) -> None:
    assert nearest_project(directory) == directory
    assert any(name_of(directory) in page.read_text("utf-8") for page in PAGES)


def test_every_whole_migration_is_shown() -> None:
    """Every program has a block, in which something changes."""
    shown = "".join(page.read_text("utf-8") for page in MIGRATIONS.glob("*.md"))
    programs = sorted(EXAMPLES.glob("migrations/*.py"))
    assert programs
    for program in programs:
        assert f"+++ b/examples/migrations/{program.name}\n" in shown


def test_the_first_command_sets_up_and_runs(clone: Clone) -> None:
    text = README.read_text("utf-8")
    (block,) = [block for block in blocks(text, "console") if block.content.startswith(f"$ {SETUP}")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1"}
    (command,) = commands(block.content)
    printed = output(command, clone.path, clone, environment)
    shown = block.content.removeprefix(f"$ {command}\n")
    assert printed.endswith(shown), printed  # pip may have warned of something before


def test_the_tests_are_those_of_ci() -> None:
    (command,) = [
        command
        for block in blocks(README.read_text("utf-8"), "console")
        for command in commands(block.content)
        if "pytest" in command
    ]
    assert command.startswith(TESTS) and command.endswith(" && pytest -n auto")


def configurations(page: Path) -> list[str]:
    """Ours; those of editors are in `tests/server/test_editors.py`."""
    if page.name == "editors.md":
        return []
    return [block.content for block in blocks(page.read_text("utf-8"), "toml")]


@pytest.mark.parametrize("page", [page for page in PAGES if configurations(page)], ids=name_of)
def test_configurations(page: Path, tmp_path: Path) -> None:
    from torchmigrate.authoring.schemas import schema
    from torchmigrate.config.settings import combine, read_config
    from torchmigrate.run.configurations import load_rules

    _, known = load_rules()  # the directory of one's own rules is made up
    for number, content in enumerate(configurations(page)):
        path = tmp_path / str(number) / ("pyproject.toml" if "[tool." in content else "torchmigrate.toml")
        path.parent.mkdir()
        path.write_text(content, "utf-8")
        combine([read_config(path)], known, root=tmp_path)
        name = path.stem
        assert list(Draft202012Validator(schema(name)).iter_errors(read_toml(content.encode()))) == []


def test_the_page_about_configuration_shows_every_key() -> None:
    from torchmigrate.config.keys import KEYS

    content, *_ = configurations(DOCS / "configuration.md")
    keys = set(re.findall(r"^([a-z-]+) =", content, re.MULTILINE))
    assert keys | {"per-file-ignores"} == {key.name for key in KEYS}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_suppressions_and_codes(page: Path) -> None:
    from torchmigrate.catalogue.codes import INVALID_SUPPRESSION
    from torchmigrate.engine.suppressions import Suppressions
    from torchmigrate.flake8_plugin import NOT_DONE
    from torchmigrate.run.configurations import load_rules
    from torchmigrate.source.text import Source

    text = page.read_text("utf-8")
    known = {key: rule.code for rule in load_rules()[1] for key in (rule.code, rule.name)}
    for block in blocks(text, "python"):
        found = Suppressions.of(Source.from_text(block.content, page)).findings([INVALID_SUPPRESSION], known)
        assert [message_of(finding) for finding in found] == []
    assert set(re.findall(r"\bTM\d{3}\b", text)) <= {NOT_DONE, *known.values()}


def test_links_of_the_readme() -> None:
    """Those of the documentation are checked by its build (`tests/installed/test_site.py`)."""
    text = re.sub(BLOCK, "", README.read_text("utf-8"))
    for link in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", text):
        assert (ROOT / link).exists(), link


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 150


if __name__ == "__main__":
    if sys.argv[1:2] != ["--update"]:
        sys.exit("usage: python tests/installed/test_readme.py --update [PAGE...]")
    with tempfile.TemporaryDirectory() as name:
        clone = Clone(Path(name).resolve())
        for page in [Path(name).resolve() for name in sys.argv[2:]] or PAGES:
            page.write_text(executed(page.read_text("utf-8"), clone), "utf-8")
            clone.restore()
