"""The JSON Schemas for editors, as the program prints them, on what users write."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.project import Project
from jsonschema import Draft202012Validator

from torchmigrate.authoring.schemas import SCHEMAS
from torchmigrate.catalogue.store import rule_files
from torchmigrate.config.keys import KEYS
from torchmigrate.config.settings import read_config

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def printed(project: Project, name: str) -> Any:
    return json.loads(project.run("config", "--schema", name, code=0).stdout)


def errors(schema: Any, value: object) -> list[str]:
    return [
        f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(value)
    ]


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from parts(part)


@pytest.mark.parametrize("name", SCHEMAS)
def test_it_is_a_schema_for_any_editor(project: Project, name: str) -> None:
    schema = printed(project, name)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"https://torchmigrate.github.io/torchmigrate/schemas/{name}.json"
    for part in parts(schema):
        assert "allowed" not in part or isinstance(part["allowed"], dict)
        if isinstance(pattern := part.get("pattern"), str):
            assert not re.search(r"\\[AZ]|\(\?[a-z]", pattern), "only Python knows this"


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_the_example_of_every_key(project: Project, key: Any) -> None:
    text = f"{key.name} = {key.example}\n"
    read_config(project.write("torchmigrate.toml", text))
    table = tomllib.loads(text)
    assert errors(printed(project, "torchmigrate"), table) == []
    assert errors(printed(project, "pyproject"), {"tool": {"torchmigrate": table, "other": 1}}) == []


@pytest.mark.parametrize(
    "text",
    [
        "target = 2.6",
        'target = "newest"',
        'tagret = "2.6"',
        'select = "TM1"',
        'select = ["TM1,TM2"]',
        "embedded = 1",
        'per-file-ignores = ["TM1"]',
        "baseline = []",
    ],
)
def test_what_the_program_refuses(project: Project, text: str) -> None:
    project.write("torchmigrate.toml", text)
    project.run("check", code=2)
    table = tomllib.loads(text)
    assert errors(printed(project, "torchmigrate"), table)
    assert errors(printed(project, "pyproject"), {"tool": {"torchmigrate": table}})


def test_all_rule_files(project: Project) -> None:
    validator = Draft202012Validator(printed(project, "rules"))
    for path in rule_files():
        rules = yaml.load(path.read_text("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        assert [error.json_path for error in validator.iter_errors(rules)] == [], path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('removed: "2.0"', "removed: 2.0"),
        ('removed: "2.0"', 'remvoed: "2.0"'),
        ("name: symeig", "name: Symeig"),
        ("why:", "reason_why:"),
    ],
)
def test_what_the_loader_refuses(project: Project, old: str, new: str) -> None:
    schema = printed(project, "rules")
    text = next(text for path in rule_files() if "code: TM100" in (text := path.read_text("utf-8")))
    assert errors(schema, yaml.safe_load(text.replace(old, new, 1)))
