"""README.md and docs/, executed. `python tests/installed/test_readme.py --update` writes what the commands print."""

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
from jsonschema import Draft202012Validator

from torchmigrate.files.formats import read_toml
from torchmigrate.report.reasons import message_of

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
MIGRATIONS = DOCS / "migrations"
PAGES = (README, *sorted(DOCS.rglob("*.md")))
HOME = "/home/me/project"  # what the directory is called in the text
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Not for their output: these install things. The last one is what .ci/run executes.
SETUP, TESTS = "python3 -m venv", "pip install"


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


def prepare(directory: Path) -> dict[str, str]:
    """Copy the examples into a directory; an environment in which the programs are those that are tested."""
    for name in ("examples", "docs"):
        shutil.copytree(ROOT / name, directory / name)
    programs = directory / ".programs"
    programs.mkdir()
    for name in ("torchmigrate", "flake8"):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {name} "$@"\n')
        program.chmod(0o755)
    path = os.pathsep.join((str(programs), os.environ["PATH"]))
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return {
        **kept,
        "PATH": path,
        "PYTHONIOENCODING": "utf-8",
        "HOME": str(directory),
    }


def output(command: str, directory: Path, environment: dict[str, str]) -> str:
    """What a command prints on both streams, in the order in which it does.

    directory: where it runs, which is HOME or below.
    """
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    text = done.stdout.decode().replace(environment["HOME"], HOME)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def executed(text: str) -> str:
    """The text, with what its commands print now. A page is one session: files stay as they are left."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name).resolve()
        environment = prepare(directory)
        here = directory
        parts, position = [], 0
        for block in blocks(text, "console"):
            parts.append(text[position : block.start])
            position = block.end
            for command in commands(block.content):
                if command.startswith("cd "):
                    here = (here / command.removeprefix("cd ")).resolve(strict=True)
                    printed = ""
                else:
                    printed = _printed_by_setup(command, here, environment)
                parts.append(f"$ {command}\n{printed}")
        return "".join([*parts, text[position:]])


def _printed_by_setup(command: str, directory: Path, environment: dict[str, str]) -> str:
    if command.startswith(TESTS):
        return ""
    if command.startswith(SETUP):  # installed for real by another test; what it prints is what this does
        command = command.rpartition("&& .venv/bin/")[2]
    return output(command, directory, environment)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=() if page == README else pytest.mark.one_python) for page in PAGES],
    ids=map(name_of, PAGES),
)
def test_every_command_prints_what_is_shown(page: Path) -> None:
    text = page.read_text("utf-8")
    assert executed(text) == text, (
        "run `python tests/installed/test_readme.py --update` and read the difference"
    )


def test_every_whole_migration_is_shown() -> None:
    """Every program has a block, in which something changes."""
    shown = "".join(page.read_text("utf-8") for page in MIGRATIONS.glob("*.md"))
    programs = sorted(MIGRATIONS.glob("*.py"))
    assert programs
    for program in programs:
        assert f"+++ b/docs/migrations/{program.name}\n" in shown


def test_the_first_command_sets_up_and_runs(tmp_path: Path) -> None:
    text = README.read_text("utf-8")
    (block,) = [block for block in blocks(text, "console") if block.content.startswith(f"$ {SETUP}")]
    # All that holds Python: what is safe in the examples depends on what other files of a clone say.
    for name in ("src", "rules", "examples", "tests", "tools", "docs", "benchmarks"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "_compiled.rules")
        )
    for name in ("pyproject.toml", "README.md", "hatch_build.py"):
        shutil.copy(ROOT / name, tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1"}
    (command,) = commands(block.content)
    printed = output(command, tmp_path, environment)
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
    assert len(README.read_text("utf-8").splitlines()) <= 200


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("usage: python tests/installed/test_readme.py --update")
    for page in PAGES:
        page.write_text(executed(page.read_text("utf-8")), "utf-8")
