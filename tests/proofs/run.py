"""Runs both sides of an example on the same inputs and compares everything that both compute."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from old_torch import compare, execute, plain, recordings
from torch import Tensor

from proofs import companions, stubs, vocabulary
from proofs.compare import differences, is_evidence
from proofs.patches import Used, old_torch

STEP = 1e-6


class ProofError(Exception):
    """The example cannot be executed, or says nothing."""


class Outcome(execute.Outcome):
    """What one side of an example left behind, and which stand-ins it called."""

    def __init__(self, found: execute.Outcome, used: Used) -> None:
        super().__init__(found.names, found.inputs, found.shown)
        self.used = used


def prove(
    before: str,
    after: str,
    prove: Mapping[str, str],
    gradients: bool = True,
    changed: str | None = None,
    removed: str | None = None,
) -> list[str]:
    """In what the two sides of an example differ, one line each; an empty list is a proof.

    The old side is what old releases made of it, where that is recorded; else it runs here.

    Args:
        changed, removed: the release of its library in which the old code got another meaning, or was gone.

    Raises:
        ProofError: one side does not run, or there is nothing to compare.
    """
    with scratch():
        return _prove(before, after, prove, gradients, changed, removed)


def _prove(
    before: str,
    after: str,
    prove: Mapping[str, str],
    gradients: bool,
    changed: str | None,
    removed: str | None,
) -> list[str]:
    given = inputs_of(prove)
    gradients = gradients and ".backward(" not in before
    recorded = recordings_of(before, after, prove)
    if recorded:
        while_it_was_there = [
            item for item in recorded if removed and _release(item["releases"][0]) < _release(removed)
        ]
        recorded = while_it_was_there or recorded
        try:
            form = _recorded_form(after, given, gradients, before)
        except ProofError as error:
            if not _lacks_a_library(error):
                raise
            return _of_releases(recorded[-1], later_of(before, after, prove))
        return _against_recordings(recorded, form, given, changed)
    both = f"{before}\n{after}"
    old = run(before, given, old=True, both=both)
    new = run(after, given, old=False, both=both)
    found = list(_compare(old, new, given))
    if not found and gradients:
        found = list(_gradients(before, after, given, old))
    return found


def _lacks_a_library(error: BaseException) -> bool:
    """Whether something failed for want of a package that is not installed, however that was put."""
    cause = error.__cause__ or error.__context__
    if (
        isinstance(cause, ModuleNotFoundError)
        and cause.name
        and find_spec(cause.name.partition(".")[0]) is None
    ):
        return True
    return cause is not None and _lacks_a_library(cause)


def runs_here(after: str, prove: Mapping[str, str]) -> bool:
    """Whether the new side does not lack a library that is not installed."""
    try:
        with scratch():
            run(after, inputs_of(prove), old=False)
    except ProofError as error:
        return not _lacks_a_library(error)
    return True


# ---- against what old releases gave --------------------------------------------------------------------


@functools.cache
def _recordings() -> dict[str, list[dict[str, Any]]]:
    return recordings.read()


def recordings_of(before: str, after: str, prove: Mapping[str, str]) -> list[dict[str, Any]]:
    """What the old side gave on the old releases on which it ran, the oldest first."""
    return [item for item in recordings_at(recordings.digest(before, after, prove)) if "values" in item]


def recordings_at(digest: str) -> list[dict[str, Any]]:
    """What was recorded of one piece of code, whether it ran or not."""
    return _recordings().get(digest, [])


def _against_recordings(
    recorded: list[dict[str, Any]], new: dict[str, Any], given: Mapping[str, Any], changed: str | None
) -> list[str]:
    """In what the new side differs from the last release that ran the old one.

    If it is not the same here, it has to be the same there: then the fix changed nothing, but a later release did.
    What got another meaning on the way has to agree with one of its meanings, on every release that had it.
    """
    inputs = plain.inputs(given)
    for item in recorded:
        if any(abs(a - b) > 1e-5 for name in inputs for a, b in _pairs(inputs[name], item["inputs"][name])):
            raise ProofError("the inputs are not those of the recording: record it again")
        if not set(item["values"]) & set(new["values"]):
            raise ProofError("nothing is computed that both sides have: assign a result in the example")
    found = _from(recorded[-1], new)
    earlier = [item for item in recorded if changed and _release(item["releases"][-1]) < _release(changed)]
    if found and earlier and not _from(earlier[-1], new):
        return []
    return found


def later_of(before: str, after: str, prove: Mapping[str, str]) -> dict[str, Any]:
    """What the new side gave on the first release that ran it, where none ran both sides: release -> values."""
    found = _recordings().get(recordings.digest(before, after, prove), [])
    return next((item["later"] for item in found if "later" in item), {})


def _of_releases(old: dict[str, Any], later: Mapping[str, Any]) -> list[str]:
    """In what the sides differ on a release that had both, or the old one on its last from the new on its first."""
    if not later or not _from_there(old):
        return _from_there(old)
    ((release, values),) = later.items()
    if not set(old["values"]) & set(values):
        raise ProofError("nothing is computed that both sides have: assign a result in the example")
    return [
        f"torch {release}: {line}" for line in compare.outcomes({"values": old["values"]}, {"values": values})
    ]


def _from_there(item: Mapping[str, Any]) -> list[str]:
    """In what the sides differed on the last release of a recording."""
    newest = item["releases"][-1]
    there = item["new"] if isinstance(item["new"], str) else item["new"][newest]
    return [] if there == "same" else [there]


def _from(item: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    newest = item["releases"][-1]
    if "gradients" not in new:
        item = {key: value for key, value in item.items() if key != "gradients"}
    return (
        [] if not _from_there(item) else [f"torch {newest}: {line}" for line in compare.outcomes(item, new)]
    )


def _release(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _pairs(left: list[float], right: list[float]) -> Iterator[tuple[float, float]]:
    return zip(left, right, strict=True)


def _recorded_form(after: str, given: Mapping[str, Any], gradients: bool, before: str) -> dict[str, Any]:
    """The new side, in the form in which old ones are recorded."""
    both = f"{before}\n{after}"
    form: dict[str, Any] = {"values": plain.plain_values(run(after, given, old=False, both=both))}
    if gradients:
        try:
            found = execute.gradients(lambda inputs: run(after, inputs, old=False, both=both), given)
        except (execute.Failed, ProofError) as error:
            form["gradients"] = {"raised": str(error)}
        else:
            if found is not None:
                of = {name: plain.plain(item) for name, item in found.of.items()}
                form["gradients"] = {"flags": found.flags, "of": of}
    return form


# ---- one side ------------------------------------------------------------------------------------------


def run(code: str, inputs: Mapping[str, Any], old: bool, both: str = "") -> Outcome:
    """Execute one side on copies of the inputs, with the old functions in place or not.

    Args:
        both: the text of both sides, which says what is to be prepared for them.

    Raises:
        ProofError: it raised something, which is the cause.
    """
    vocabulary.seed_all()
    side = "old" if old else "new"
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(stubs.installed())
        stack.enter_context(_restored())
        stack.enter_context(companions.prepared(both or code))
        used = stack.enter_context(old_torch()) if old else Used()
        if old:
            stack.enter_context(companions.old_companions(code, used))
        try:
            found = execute.execute(code, inputs)
        except execute.Failed as error:
            raise ProofError(f"the {side} side raised {error}") from error.__cause__
    return Outcome(found, used)


@contextlib.contextmanager
def scratch() -> Iterator[None]:
    """A working directory for files; what the inputs of an example set up for the process is undone."""
    before, hub, compiler = Path.cwd(), torch.hub.get_dir(), torch.compile
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        try:
            yield
        finally:
            os.chdir(before)
            torch.hub.set_dir(hub)
            torch.compile = compiler
            _without_global_hooks()
            if torch.distributed.is_available() and torch.distributed.is_initialized():
                torch.distributed.destroy_process_group()


def _without_global_hooks() -> None:
    """Remove the hooks of all modules that an example left."""
    held = vars(torch.nn.modules.module)
    for name in held:
        if name.startswith("_global_") and isinstance(held[name], dict):
            held[name].clear()
    held["_global_is_full_backward_hook"] = None


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    """Put global settings of torch back after an example has changed them."""
    dtype = torch.get_default_dtype()
    deterministic = torch.are_deterministic_algorithms_enabled()
    grad = torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_default_device(None)
        if torch.are_deterministic_algorithms_enabled() != deterministic:
            torch.use_deterministic_algorithms(deterministic)
        torch.set_grad_enabled(grad)


def inputs_of(prove: Mapping[str, str]) -> dict[str, Any]:
    """The input variables of an example.

    Raises:
        ProofError: an expression raised something.
    """
    with stubs.installed(), companions.prepared(" ".join(prove.values())):
        try:
            return vocabulary.evaluate(prove)
        except Exception as error:
            raise ProofError(f"the inputs raised {type(error).__name__}: {error}") from error


def _compare(old: Outcome, new: Outcome, given: Mapping[str, Any]) -> Iterator[str]:
    a, b = old.values(), new.values()
    if len(old.shown) != len(new.shown):
        yield f"{len(old.shown)} bare expressions became {len(new.shown)}"
    changed = {name for name in old.inputs if any(differences(given[name], old.inputs[name], name))}
    both = [name for name in a if name in b]
    if not any(
        is_evidence(a[name]) for name in both if name not in given or name in changed or name in old.names
    ):
        raise ProofError("nothing is computed that both sides have: assign a result in the example")
    for name in both:
        yield from differences(a[name], b[name], name, requires_grad=not old.used)


# ---- gradients -----------------------------------------------------------------------------------------


def _gradients(before: str, after: str, given: Mapping[str, Any], old: Outcome) -> Iterator[str]:
    names = [name for name, value in given.items() if plain.differentiable(value)]
    if not names:
        return
    by_hand = bool(old.used)
    if by_hand and any(given[name].dtype not in (torch.float64, torch.complex128) for name in names):
        return  # a difference quotient of single precision says nothing
    after_run = _differentiate(lambda inputs: run(after, inputs, old=False), given)
    if by_hand:
        if isinstance(after_run, ProofError):
            yield f"with inputs that require gradients {after_run}"
        else:
            yield from _against_quotient(before, given, names, after_run, old.used.symmetric)
        return
    before_run = _differentiate(lambda inputs: run(before, inputs, old=True), given)
    if isinstance(before_run, ProofError) and isinstance(after_run, ProofError):
        return  # not differentiable, before or after
    for side, result in (("old", before_run), ("new", after_run)):
        if isinstance(result, ProofError):
            yield f"only the {side} side fails with inputs that require gradients: {result}"
            return
    assert not isinstance(before_run, ProofError)
    assert not isinstance(after_run, ProofError)
    (flags_old, grads_old), (flags_new, grads_new) = before_run, after_run
    for name in flags_old:
        if name in flags_new and flags_old[name] != flags_new[name]:
            yield f"{name}: requires_grad {flags_old[name]} became {flags_new[name]}"
    for name in names:
        yield from differences(grads_old[name], grads_new[name], f"gradient of {name}")


Result = tuple[dict[str, bool], dict[str, Tensor]]


def _differentiate(
    call: Callable[[Mapping[str, Any]], Outcome], given: Mapping[str, Any]
) -> Result | ProofError:
    """Which results require gradients, and the gradients of a weighted sum of all results."""
    try:
        found = execute.gradients(call, given)
    except (execute.Failed, ProofError) as error:
        return ProofError(str(error))
    assert found is not None
    return found.flags, found.of


def _against_quotient(
    before: str, given: Mapping[str, Any], names: list[str], after_run: Result, symmetric: bool
) -> Iterator[str]:
    """The gradient of the new side against central differences of the old one, in two directions each."""
    _, grads = after_run
    for name in names:
        value = given[name]
        for seed in (1, 2):
            direction = torch.randn(
                value.shape, dtype=value.dtype, generator=torch.Generator().manual_seed(seed)
            )
            direction = _in_kind(direction, value, symmetric)
            quotient = (
                _loss_at(before, {**given, name: value + STEP * direction})
                - _loss_at(before, {**given, name: value - STEP * direction})
            ) / (2 * STEP)
            slope = (grads[name].conj() * direction).sum()
            expected = float(slope.real if slope.is_complex() else slope)
            if abs(quotient - expected) > 1e-5 * max(1.0, abs(quotient), abs(expected)):
                yield f"gradient of {name}: {quotient:.8g} on the old side, {expected:.8g} on the new one"
                break


def _in_kind(direction: Tensor, value: Tensor, symmetric: bool) -> Tensor:
    """A change that leaves a symmetric matrix symmetric and a triangular one triangular.

    Functions of such matrices read one triangle, and are free in what the gradient says about the other.
    """
    if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
        return direction
    if symmetric or torch.equal(value, value.mH):
        return (direction + direction.mH) / 2
    if torch.equal(value, value.triu()):
        return direction.triu()
    return direction.tril() if torch.equal(value, value.tril()) else direction


def _loss_at(code: str, inputs: Mapping[str, Any]) -> float:
    outcome = run(code, inputs, old=True)
    loss, _ = plain.loss(outcome.values(), set(outcome.inputs))
    return 0.0 if loss is None else float(loss)
