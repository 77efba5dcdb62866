"""Whether a finding is as bad as it says, against the releases that are installed; see tools/severity.py."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from harness.catalogue import ROOT, loaded_rules
from harness.summary import HAS_TORCH
from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Severity, Timeline
from torchmigrate.planning.compute import since
from torchmigrate.planning.model import Effect
from torchmigrate.versions.range import VersionRange, severity

TABLES = ROOT / "tests" / "severities"


def level(target: str, **releases: str) -> Severity | None:
    return severity(Rule("TM999", "x", "x", "torch", {}, **releases), VersionRange(target=target))


@pytest.mark.parametrize(
    ("target", "releases", "expected", "effect"),
    [
        ("1.13", {"deprecated": "1.0", "outdated": "2.0"}, Severity.WARNING, Effect.WARNS),
        ("2.0", {"deprecated": "1.0", "outdated": "2.0"}, Severity.INFO, Effect.OUTDATED),
        ("2.10", {"outdated": "1.5", "deprecated": "2.11"}, Severity.INFO, Effect.OUTDATED),
        ("2.11", {"outdated": "1.5", "deprecated": "2.11"}, Severity.WARNING, Effect.WARNS),
        ("2.6", {"outdated": "2.6", "deprecated": "2.6"}, Severity.WARNING, Effect.WARNS),
        ("1.4", {"outdated": "1.5"}, None, None),
        ("2.9", {"deprecated": "1.0", "outdated": "2.0", "removed": "2.9"}, Severity.ERROR, Effect.RAISES),
        ("2.9", {"deprecated": "1.0", "outdated": "2.0", "changed": "1.2"}, Severity.WARNING, Effect.CHANGES),
    ],
)
def test_what_ceased_to_warn_is_only_outdated(target, releases, expected, effect) -> None:
    assert level(target, **releases) is expected
    release = tuple(map(int, target.split(".")))
    assert since(Timeline("torch", **releases)).effect(release) is effect


def test_the_tables_are_about_rules_that_exist() -> None:
    symbols = {item.rule.code: {*item.rule.symbols, *item.rule.modules} for item in loaded_rules()}
    examples = {item.rule.code: {*range(1, len(item.examples) + 1)} for item in loaded_rules()}
    for name in ("probes.yaml", "explained.yaml"):
        for code, entries in yaml.safe_load((TABLES / name).read_text(encoding="utf-8")).items():
            for entry in entries:
                assert set(entry.get("symbols", ())) <= symbols[code], (name, code)
                assert set(entry.get("examples", ())) <= examples[code], (name, code)


if HAS_TORCH:

    def test_every_rule_is_as_bad_as_it_says() -> None:
        # In a process of its own: much warns only once in a process.
        tool = Path(__file__).parents[2] / "tools" / "severity.py"
        done = subprocess.run([sys.executable, str(tool)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        compared = re.search(r"^(\d+) symbols of rules compared, 0 disagree$", done.stdout, re.MULTILINE)
        assert compared is not None and int(compared[1]) > 1000
        places = re.search(r"^(\d+) places in examples .*, 0 disagree$", done.stdout, re.MULTILINE)
        assert places is not None and int(places[1]) > 1000

    @pytest.mark.parametrize(
        ("code", "text", "problem"),
        [
            ("TM411", 'outdated: "1.0"', "nobody calls it outdated"),
            ("TM330", 'deprecated: "1.0"', "it does not warn"),
            ("TM412", 'outdated: "1.0"', "it warns"),
            ("TM331", 'removed: "1.0"', "nothing shows that it is gone"),
            ("TM150", 'outdated: "1.7"', "it is gone"),
        ],
    )
    def test_a_wrong_status_is_found(code, text, problem, monkeypatch) -> None:
        from severities import check

        (item,) = [item for item in loaded_rules() if item.rule.code == code]
        status, _, release = text.partition(": ")
        releases = dict.fromkeys(("outdated", "deprecated", "changed", "removed"))
        rule = replace(item.rule, **{**releases, status: release.strip('"')}, opt_in=False)
        monkeypatch.setattr(check, "loaded_rules", lambda: [item._replace(rule=rule)])
        monkeypatch.setattr(check, "reason", lambda *_: None)
        assert problem in {verdict.problem for verdict in check.verdicts()}

    @pytest.mark.parametrize(
        ("code", "effect", "wrong", "problem"),
        [
            ("TM412", "warns", Severity.ERROR, "it is an error, and the example warns"),
            ("TM150", "raises", None, None),
            ("TM439", "differs", Severity.ERROR, "it is an error, and the example differs"),
            ("TM335", "warns", None, None),  # where gradients are calculated
            ("TM667", "is silent", None, "it is a warning, and the example neither warns nor differs"),
        ],
    )
    def test_a_wrong_status_is_seen_in_the_examples(code, effect, wrong, problem, monkeypatch) -> None:
        from severities import check

        monkeypatch.setattr(check, "_explained", lambda *_: None)
        places = [place for place in check.shown([code]) if place.effect != "not run"]
        assert {place.effect for place in places} == {effect}
        for place in places:
            assert dataclasses.replace(place, severity=wrong or place.severity).problem == problem
