"""Has the old sides of all examples run on old releases, and writes down what came out."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from old_torch import compare, recordings
from old_torch.environments import Environment

RUNNER = Path(__file__).with_name("runner.py")
PARALLEL = 2  # releases at once
# What builds models of torchvision takes seconds for each, and all that is recorded of most is the name of
# the file with its weights: the release that has both the old arguments and the new ones is enough.
_BUILDS_MODELS = re.compile(r"torchvision.*\b(pretrained|weights)", re.S)
_RELEASE_OF_MODELS = "1.12.1"


class RunnerFailed(Exception):
    """An old release could not be asked at all; what it said is the message."""


@dataclass(frozen=True)
class Case:
    """Code that runs on old releases: who has it, its two sides, and the inputs of both.

    Of whole programs `after` is empty: what becomes of them is not meant for old releases.
    """

    file: str  # of the recordings, without a suffix: torch/linalg
    name: str  # TM131-linalg-symeig-1
    before: str
    after: str
    inputs: Mapping[str, str]
    gradients: bool
    wide: bool = False

    def is_for(self, environment: Environment) -> bool:
        """Whether this release is asked."""
        if not self.after:
            return True
        return environment.torch == _RELEASE_OF_MODELS or not _BUILDS_MODELS.search(self.before)

    @property
    def digest(self) -> str:
        return recordings.digest(self.before, self.after, self.inputs)


def cases() -> Iterator[Case]:
    """Everything that has a recording: examples of rules with `prove`, and the programs of fixtures."""
    from harness.catalogue import example_id, fix_examples  # type: ignore[import-not-found]
    from proofs import recorded_code  # type: ignore[import-not-found]

    for item, number, example in fix_examples():
        if example.prove is not None:
            before, after = example.sides()
            yield Case(
                file=rule_file(item.rule.path),
                name=example_id(item, number),
                before=before,
                after=after,
                inputs=example.prove,
                gradients=example.gradients and ".backward(" not in before,
            )
            yield from _wide(item, number, example)
    for name, code in recorded_code.cases():
        yield Case("programs", name, code, "", {}, False)


def _wide(item: Any, number: int, example: Any) -> Iterator[Case]:
    """A safe example of numerical rules, on its wider inputs."""
    from harness.catalogue import example_id
    from proofs import wide

    file = rule_file(item.rule.path)
    for family, before, after, inputs in wide.cases(file, example):
        yield Case(file, f"{example_id(item, number)}/{family}", before, after, inputs, False, wide=True)


def rule_file(path: str) -> str:
    """The file of a rule, as that of its recordings: torch/linalg."""
    parts = Path(path).with_suffix("").parts
    return "/".join(parts[parts.index("rules") + 1 :] if "rules" in parts else parts[-2:])


def record(directory: Path, environments: Sequence[Environment], files: Sequence[str] = ()) -> Iterator[str]:
    """Ask the releases and write the recordings; yields lines for a person.

    Raises:
        RunnerFailed: a release could not be asked.
    """
    wanted = [case for case in cases() if not files or f"{case.file}.yaml" in files or case.file in files]
    given = [_inputs(case) for case in wanted]
    jobs = [
        {"before": case.before, "after": case.after, "inputs": inputs, "gradients": case.gradients}
        for case, (inputs, _) in zip(wanted, given, strict=True)
    ]
    with ThreadPoolExecutor(PARALLEL) as pool:
        answers = list(
            pool.map(
                lambda item: ask(
                    item,
                    directory,
                    [job for case, job in zip(wanted, jobs, strict=True) if case.is_for(item)],
                ),
                environments,
            )
        )
    asked = [item.torch for item in environments]
    known = recordings.read()
    lines: dict[str, list[dict[str, Any]]] = {}
    following = [iter(answer) for answer in answers]
    for index, case in enumerate(wanted):
        results = {
            item.torch: next(answer)
            for item, answer in zip(environments, following, strict=True)
            if case.is_for(item)
        }
        for old in known.get(case.digest, ()):
            results.update({name: result for name, result in _apart(old).items() if name not in asked})
        found = list(_grouped(case, results, given[index][1]))
        if case.wide:
            found = _computed(found, case.inputs)
        else:
            _add_later(case, found, results)
        lines.setdefault(case.file, []).extend(found)
        releases = [name for line in found if "values" in line for name in line["releases"]]
        yield f"{case.name}: {', '.join(releases) or 'runs on none of them'}"
    for file, items in lines.items():
        recordings.write(recordings.DIRECTORY / f"{file}.jsonl", items)
    if not files:
        for path in recordings.DIRECTORY.rglob("*.jsonl"):
            if path.relative_to(recordings.DIRECTORY).with_suffix("").as_posix() not in lines:
                path.unlink()


def ask(environment: Environment, directory: Path, jobs: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What one release makes of some jobs.

    Raises:
        RunnerFailed: it could not be asked.
    """
    from proofs import vocabulary

    full = [{"inputs": [], "gradients": False, **job} for job in jobs]
    request = json.dumps({"vocabulary": Path(vocabulary.__file__).read_text("utf-8"), "jobs": full})
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [environment.interpreter(directory), RUNNER],
        input=request,
        capture_output=True,
        text=True,
        env={**clean, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(environment.sources(directory))},
    )
    if done.returncode:
        raise RunnerFailed(f"torch {environment.torch}: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout)
    if answer["release"] != environment.torch:
        raise RunnerFailed(f"torch {environment.torch} is {answer['release']}")
    results: list[Any] = answer["results"]
    return results


def _inputs(case: Case) -> tuple[list[Any], dict[str, Any]]:
    """The inputs as the runner wants them, and as they are compared with those of a later run."""
    from proofs import run

    from old_torch import plain

    with run.scratch():
        values = run.inputs_of(case.inputs)
    given = [[name, source, plain.given(values[name])] for name, source in case.inputs.items()]
    return given, plain.inputs(values)


def _grouped(case: Case, results: Mapping[str, Any], inputs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One line for all releases with the same outcome."""
    groups: list[dict[str, Any]] = []
    for release in sorted(results, key=_order):
        result = results[release]
        if "inputs" in result:
            result = {"old": {"raised": f"the inputs: {result['inputs']}"}, "new": "not run"}
        old = _cleaned(result["old"])
        group = next((item for item in groups if _same(item, old)), None)
        if group is None:
            group = {"digest": case.digest, "name": case.name, "releases": [], "new": {}}
            group.update({key: value for key, value in old.items() if key != "warned"})
            if "values" in old and inputs:
                group["inputs"] = inputs
            groups.append(group)
        group["releases"].append(release)
        group["new"][release] = _clean(result["new"])
        if old.get("warned"):
            group.setdefault("warned", {})[release] = old["warned"]
    for group in sorted(groups, key=lambda item: _order(item["releases"][-1])):
        if len(set(group["new"].values())) == 1:
            group["new"] = next(iter(group["new"].values()))
        yield group


def _computed(lines: Sequence[dict[str, Any]], inputs: Mapping[str, str]) -> list[dict[str, Any]]:
    """The lines that have results other than inputs and what raised; only with those."""
    found = []
    for line in lines:
        values = {name: item for name, item in line.get("values", {}).items() if name not in inputs}
        values = {name: item for name, item in values.items() if item != compare.RAISED}
        if values:
            found.append({**line, "values": values})
    return found


def _add_later(case: Case, lines: Sequence[dict[str, Any]], results: Mapping[str, Any]) -> None:
    """Where no release ran both sides and the new one cannot run here: add what that gave on the next one."""
    from proofs import run

    ran = [name for line in lines if "values" in line for name in line["releases"]]
    if (
        not ran
        or any(results[name]["new"] == "same" for name in ran)
        or run.runs_here(case.after, case.inputs)
    ):
        return
    newest = max(map(_order, ran))
    later = [name for name in results if "new_values" in results[name] and _order(name) > newest]
    if later:
        first = min(later, key=_order)
        line = next(line for line in lines if first in line["releases"])
        line["later"] = {first: results[first]["new_values"]}


def _apart(line: Mapping[str, Any]) -> dict[str, Any]:
    """The results of which a line was made, by release."""
    old = {key: line[key] for key in ("values", "gradients", "raised") if key in line}
    new, later = line["new"], line.get("later", {})
    return {
        name: {
            "old": {**old, **({"warned": said} if (said := line.get("warned", {}).get(name)) else {})},
            "new": new if isinstance(new, str) else new[name],
            **({"new_values": later[name]} if name in later else {}),
        }
        for name in line["releases"]
    }


def _order(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _same(group: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    if "raised" in group or "raised" in old:
        return group.get("raised") == old.get("raised")
    if list(group["values"]) != list(old["values"]):
        return False
    one, other = group.get("gradients", {}), old.get("gradients", {})
    if one.keys() != other.keys() or one.get("raised") != other.get("raised"):
        return False
    return not any(compare.outcomes(group, old)) and not any(compare.outcomes(old, group))


def _cleaned(old: Mapping[str, Any]) -> dict[str, Any]:
    """Without what names a directory of one machine."""
    found = dict(old)
    if "raised" in found:
        found["raised"] = _clean(found["raised"])
    if "warned" in found:
        found["warned"] = [_clean(item) for item in found["warned"]]
    return found


def _clean(text: str) -> str:
    return re.sub(r"\s*\(?(/[\w.+-]+){2,}\)?.*", "", text)
