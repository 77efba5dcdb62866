"""Runs old code on the torch of this interpreter, and says what came out.

python tools/old_torch/runner.py < REQUEST > ANSWER

REQUEST is a JSON object: `vocabulary`, the source of the module in whose words inputs are written, and
`jobs`, a list of objects with `before` and `after` (source), `inputs` (a list of name, expression and plain
data, or null where only the expression says it) and `gradients` (whether they are asked for).

ANSWER has the `release`, and `results`, one for each job: `old`, what became of the old side (`raised`, or
`values` with `gradients`; `warned`: deprecations that it was told of), and `new`, what became of the new
one on this release: "same", "raised: ...", in what it differs, or "runs" where the old one did not
(`new_values` is what it gave then). A job that cannot get its inputs has `inputs` instead. Every job has a
process of its own, since much warns only once in one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from old_torch import companions, compare, execute, plain

SECONDS = 120  # for one job, on a busy machine


def side(code: str, inputs: Mapping[str, Any], with_gradients: bool, both: str) -> dict[str, Any]:
    """What became of one side of an example; `both` is the text of both sides."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found["values"] = plain.plain_values(_seeded(code, inputs, both))
        except (execute.Failed, plain.Unknown, SyntaxError) as error:
            found["raised"] = _short(str(error))
        if with_gradients and "values" in found:
            found.update(_gradients(code, inputs, both))
    used = [item for item in caught if _is_about_use(item)]
    if used:
        found["warned"] = sorted({f"{item.category.__name__}: {_short(str(item.message))}" for item in used})
    return found


def _gradients(code: str, inputs: Mapping[str, Any], both: str) -> dict[str, Any]:
    try:
        gradients = execute.gradients(lambda handed: _seeded(code, handed, both), inputs)
    except execute.Failed as error:
        return {"gradients": {"raised": _short(str(error))}}
    if gradients is None:
        return {}
    of = {name: plain.plain(item) for name, item in gradients.of.items()}
    return {"gradients": {"flags": gradients.flags, "of": of}}


def _seeded(code: str, inputs: Mapping[str, Any], both: str) -> execute.Outcome:
    VOCABULARY["seed_all"]()
    with companions.prepared(both):
        return execute.execute(code, inputs)


def _short(text: str) -> str:
    return " ".join(text.split())[:100]


def _is_about_use(item: warnings.WarningMessage) -> bool:
    kinds = (DeprecationWarning, FutureWarning, PendingDeprecationWarning, UserWarning)
    return issubclass(item.category, kinds) and not issubclass(
        item.category, (ResourceWarning, ImportWarning)
    )


def against(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What the new side shows beside the old one: "same", that it raised, or the first difference."""
    if "raised" in new:
        return f"raised: {new['raised']}"
    if "raised" in old:
        return "runs"
    found = compare.outcomes(old, new)
    return next((f"differs: {_short(line)}" for line in found), "same")


def result(job: Mapping[str, Any]) -> dict[str, Any]:
    """What became of both sides of a job."""
    try:
        inputs = _inputs(job["inputs"])
    except Exception as error:  # whatever an expression raises here, the inputs cannot be had on this release
        return {"inputs": _short(f"{type(error).__name__}: {error}")}
    both = f"{job['before']}\n{job['after']}"
    old = side(job["before"], inputs, job["gradients"], both)
    new = side(job["after"], inputs, job["gradients"], both) if job["after"] else {"raised": "not run"}
    found = {"old": old, "new": against(old, new)}
    if found["new"] == "runs":
        found["new_values"] = new["values"]
    return found


def _inputs(items: list[Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, expression, data in items:
        VOCABULARY["seed_all"](0)
        values[name] = plain.made(data, lambda: eval(expression, dict(VOCABULARY["WORDS"]), values))  # noqa: B023
    return values


VOCABULARY: dict[str, Any] = {}


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    module = types.ModuleType("vocabulary")
    sys.modules["vocabulary"] = module
    exec(compile(request["vocabulary"], "vocabulary.py", "exec"), vars(module))
    VOCABULARY.update(vars(module))
    torch.set_num_threads(1)
    companions.load()
    answer = {
        "release": torch.__version__.partition("+")[0],
        "results": [_apart(job) for job in request["jobs"]],
    }
    json.dump(answer, sys.stdout)


def _apart(job: Mapping[str, Any]) -> Any:
    """The result of a job, from a process of its own."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        signal.alarm(SECONDS)
        with contextlib.suppress(BaseException), _quiet():
            try:
                text = json.dumps(result(job))
            except Exception as error:  # a value that has no plain form after all
                text = json.dumps({"old": {"raised": f"not recorded: {error!r}"}, "new": "not run"})
            with os.fdopen(send, "w") as stream:
                stream.write(text)
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"old": {"raised": "the process ended"}, "new": "not run"}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nothing that the code prints gets into the answer or onto the terminal."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        yield


if __name__ == "__main__":
    main()
