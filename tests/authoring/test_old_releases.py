"""What rules say about old releases, against what old releases did: the recordings in tests/recorded/.

A recording says on which releases the old side ran, what it warned of, and whether the new side gave the same
there. So the releases of a rule and the `requires` of its fixes are facts that can be looked up.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from harness.catalogue import ROOT, catalogue, example_id, fix_examples
from old_torch import recordings

from torchmigrate.config.settings import Settings
from torchmigrate.engine.engine import Engine
from torchmigrate.findings import Finding, Timeline
from torchmigrate.source.text import Source
from torchmigrate.versions.releases import companion, parse_version

pytestmark = pytest.mark.one_python

EXPLAINED = ROOT / "tests" / "recorded" / "explained.yaml"
PATH = Path("<example>", "example.py")


@functools.cache
def explained() -> dict[str, dict[str, str]]:
    return yaml.safe_load(EXPLAINED.read_text(encoding="utf-8")) or {}


@functools.cache
def recorded() -> dict[str, list[dict]]:
    return recordings.read()


def outcomes(example) -> Iterator[tuple[str, bool, list[str], str]]:
    """(release, whether the old side ran, what it warned of, what the new side gave) on each release."""
    for line in recorded().get(recordings.digest(*example.sides(), example.prove or {}), ()):
        for release in line["releases"]:
            new = line["new"] if isinstance(line["new"], str) else line["new"][release]
            yield release, "values" in line, line.get("warned", {}).get(release, []), new


def run(item, example, minimum: str | None, fix: bool):
    known = {item.rule.code: item.rule.code}
    settings = Settings(codes=frozenset([item.rule.code]), known=known, minimum=minimum, fix=fix)
    return Engine(catalogue(), settings).check_source(Source.from_bytes(example.before.encode(), PATH), PATH)


def is_since(release: str, timeline: Timeline, when: str | None) -> bool:
    """Whether a release of torch comes with a release of the library, or with a newer one."""
    return when is not None and companion(timeline.library, parse_version(release)) >= parse_version(when)


def warns(release: str, timeline: Timeline) -> bool:
    """Whether the rule says that this release warns: from `deprecated` on, until something else became of it."""
    if timeline.deprecated is None or not is_since(release, timeline, timeline.deprecated):
        return False
    ends = [end for end in (timeline.changed, timeline.outdated) if end]
    later = [end for end in ends if parse_version(end) > parse_version(timeline.deprecated)]
    return not any(is_since(release, timeline, end) for end in later)


def verdicts(item, example) -> Iterator[tuple[str, str]]:
    """(release, what is wrong with the rule there)."""
    found: list[Finding] = run(item, example, None, fix=False).findings
    times = [finding.timeline for finding in found if finding.timeline is not None]
    for release, ran, warned, new in outcomes(example):
        minor = ".".join(release.split(".")[:2])
        if ran and any(is_since(release, time, time.removed) for time in times):
            yield release, "it runs, and the rule says that it is gone"
        if ran and any(warns(release, time) for time in times) and not warned:
            yield release, "it does not warn, and the rule says that it does"
        if ran and new != "same" and run(item, example, minor, fix=True).new_text == example.after:
            yield release, f"a safe fix for this minimum is none: {new}"


CASES = [
    pytest.param(item, number, example, id=example_id(item, number))
    for item, number, example in fix_examples()
    if example.prove is not None
]


@pytest.mark.parametrize(("item", "number", "example"), CASES)
def test_old_releases_agree_with_the_rule(item, number, example) -> None:
    known = explained().get(example_id(item, number), {})
    wrong = [
        f"{release}: {text}"
        for release, text in verdicts(item, example)
        if text.partition(":")[0] not in known
    ]
    assert not wrong


def test_what_is_explained_is_still_so() -> None:
    found: dict[str, set[str]] = {}
    for item, number, example in fix_examples():
        if example.prove is not None and example_id(item, number) in explained():
            texts = {text.partition(":")[0] for _, text in verdicts(item, example)}
            found[example_id(item, number)] = texts
    assert found == {name: set(texts) for name, texts in explained().items()}
