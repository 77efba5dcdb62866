"""Why tests still fail: the finding that names the line of the traceback, or that it is not about torch."""

from __future__ import annotations

import ast
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from torchmigrate.findings import Finding, Severity
from torchmigrate.patterns import pattern
from torchmigrate.report.reasons import said_of
from torchmigrate.source.kinds import read_source
from torchmigrate.source.text import Source, SourceError
from torchmigrate.source.trees import walk
from torchmigrate.upgrade.model import ByHand, FixGroup, Frame, Result, StillFailing, TestRun

_MOST = 300  # characters of a message
# What differs between errors of one cause: addresses, numbers, temporary files.
_VARYING = pattern(rf"0x[0-9a-fA-F]+|{re.escape(tempfile.gettempdir())}\S+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_TORCH = pattern(r"\btorch(?:vision|audio|text|data)?\b|\b[Tt]ensors?\b")
_IN_TORCH = pattern(r"/site-packages/(?:torch(?:vision|audio|text|data)?|functorch)/")
_NO_MODULE = pattern(r"No module named '([\w.]+)'|Module (\w+) is not installed")
# What the machine, or the build of torch, does not have.
_NO_DEVICE = pattern(
    r"Torch not compiled with \w+ enabled|Found no NVIDIA driver|No (?:CUDA|HIP) GPUs are available"
)
# torch's own words -> what to do.
_SAID = {
    "Weights only load failed": (
        "since torch 2.6, `torch.load` only reads tensors and plain containers: pass "
        "`weights_only=False` for a file that you trust"
    ),
    "only integer tensors of a single element can be converted to an index": (
        "an index must be one integer; since torch 1.6, `/` of integer tensors gives floats: use `//` "
        "where one computes the index"
    ),
    "slice indices must be integers": (
        "a bound of a slice must be an integer; `/` gives floats in Python 3, and with integer tensors since "
        "torch 1.6: use `//` where one computes the bound"
    ),
    "'float' object cannot be interpreted as an integer": (
        "a count must be an integer; `/` gives floats in Python 3, and with integer tensors since torch 1.6: "
        "use `//` where one computes the count"
    ),
    "tensors used as indices must be long": (
        "indices must be integers; since torch 1.6, `/` of integer tensors gives floats: use `//` "
        "where one computes the indices"
    ),
    "result type Float can't be cast to the desired output type Long": (
        "the operation gives floats, and its output has integers; since torch 1.6, `/` of integer "
        "tensors gives floats: use `//` if it is one"
    ),
    "only supports boolean masks": ("masks must be `torch.bool`: add `.bool()` to the mask, or make it so"),
    "expected BoolTensor for mask": ("masks must be `torch.bool`: add `.bool()` to the mask, or make it so"),
    "with a bool tensor is not supported": (
        "since torch 1.2, comparisons give `torch.bool`: write `~mask` for `1 - mask`, and "
        "`logical_xor` or `.int()` elsewhere"
    ),
    "a view of a leaf Variable that requires grad": (
        "a parameter is changed in place through a view: do it under `torch.no_grad()`"
    ),
    "a leaf Variable that requires grad is being used in an in-place": (
        "a parameter is changed in place: do it under `torch.no_grad()`"
    ),
    "needed for gradient computation has been modified by an inplace": (
        "since torch 1.5, an optimizer step counts as a change in place: call `backward` before the "
        "step that changes what it needs, or compute the loss again"
    ),
    "view size is not compatible with input tensor's size": (
        "the tensor is not contiguous: use `reshape` in the place of `view`"
    ),
    "invalid index of a 0-dim tensor": (
        "the tensor has no dimension: use `.item()` in the place of an index"
    ),
    "stft requires the return_complex": (
        "pass `return_complex=True`, and convert with `torch.view_as_real` where code reads real and "
        "imaginary parts"
    ),
    "Legacy autograd function with non-static forward": (
        "make `forward` and `backward` static, with `ctx` in the place of `self`, and call `apply`"
    ),
    "could not infer output dtype. Input dtype must be": (
        "a mean needs floats: convert with `.float()`; since torch 1.7, `torch.full` with an integer "
        "gives integers, unless it gets a `dtype`"
    ),
}
_OF_DIVISION = "use `//`"
_NUMPY = pattern(r"module 'numpy' has no attribute|`np\.\w+` was removed|\bnumpy\b.*\b(?:removed|deprecated)")
_MOVED = pattern(r"cannot import name '\w+' from 'collections'|module 'collections' has no attribute")
_APPROX = pattern(r"approx\(\) is not supported in a boolean context")
_PYTHON2 = pattern(r"Missing parentheses in call to 'print'|name '(?:unicode|xrange|raw_input|basestring)'")


class Near(Struct, frozen=True):
    """A finding near a line of a traceback: in the same function or class."""

    frame: Frame
    finding: Finding
    kind: str


class Places:
    """Findings of a tree by the lines that they are about.

    written_by: the group of fixes that wrote a line; None: none did.
    """

    def __init__(
        self,
        tree: Path,
        found: Mapping[str, Sequence[Finding]],
        written_by: Callable[[Frame], FixGroup | None] = lambda frame: None,
    ) -> None:
        self.tree = tree
        self.written_by = written_by
        self._by_line: dict[tuple[str, int], Finding] = {}
        self._trees: dict[str, ast.Module | None] = {}
        self._found: list[tuple[str, int, Finding, Finding]] = []  # as found, and as worded for the report
        for path, findings in found.items():
            try:
                source: Source = read_source(tree / path)
            except SourceError:
                continue
            for finding in findings:
                row = source.position(finding.start)[0]
                self._found.append((path, row, finding, said_of(finding, source)))
                for start, end in ((finding.start, finding.end), *finding.places):
                    for row in range(source.position(start)[0], source.position(end)[0] + 1):
                        known = self._by_line.get((path, row))
                        if known is None or known.severity < finding.severity:
                            self._by_line[path, row] = finding

    def at(self, frames: Sequence[Frame]) -> tuple[Frame, Finding] | None:
        """The finding that a traceback leads to, from its inner end."""
        for frame in reversed(frames):
            finding = self._by_line.get((frame.path, frame.line))
            if finding is not None:
                return frame, finding
        return None

    def near(self, frames: Sequence[Frame]) -> Near | None:
        """A change of behavior in a function, or else a class, of the traceback, from its inner end."""
        for kind in ("function", "class"):
            for frame in reversed(frames):
                around = self._around(frame, kind)
                if around is None:
                    continue
                for (path, row), finding in self._by_line.items():
                    changed = finding.timeline is not None and finding.timeline.changed is not None
                    if path == frame.path and around[0] <= row <= around[1] and changed:
                        return Near(frame, finding, kind)
        return None

    def names(self, path: str, line: int) -> bool:
        """Whether a finding is about a line."""
        return (path, line) in self._by_line

    def unfixed(self, codes: Container[str]) -> Iterator[tuple[str, int, Finding]]:
        """The findings of some rules that have no fix, with their paths and lines."""
        for path, row, finding, _ in self._found:
            if finding.code in codes and finding.fix is None:
                yield path, row, finding

    def in_files(self, frames: Sequence[Frame]) -> list[tuple[str, Finding]]:
        """The changes of behavior in the files of a traceback, with their paths."""
        paths = {frame.path for frame in frames}
        return [
            (path, finding)
            for path, _, finding, _ in self._found
            if path in paths and finding.timeline is not None and finding.timeline.changed is not None
        ]

    def divisions(self, frames: Sequence[Frame]) -> list[tuple[int, str]]:
        """The quotients that the innermost line of the project has, or that its names were given before.

        They are looked for in the same function. Each has its line and its source.
        """
        own = [frame for frame in frames if not Path(frame.path).is_absolute()]
        around = self._around(own[-1], "function") if own else None
        if around is None:
            return []
        line = own[-1].line
        tree = self._trees[own[-1].path]
        assert tree is not None, "it has a function"
        inside = [
            node
            for node in walk(tree)
            if isinstance(node, ast.stmt) and around[0] <= node.lineno <= line and not hasattr(node, "body")
        ]
        here = [node for node in inside if node.lineno <= line <= (node.end_lineno or node.lineno)]
        read = {each.id for node in here for each in walk(node) if isinstance(each, ast.Name)}
        given = [
            node
            for node in inside
            if isinstance(node, ast.Assign)
            and any(isinstance(each, ast.Name) and each.id in read for each in node.targets)
        ]
        quotients = {
            node
            for statement in (here, given)
            for item in statement
            for node in walk(item)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        }
        return sorted((node.lineno, ast.unparse(node)) for node in quotients)

    def _around(self, frame: Frame, kind: str) -> tuple[int, int] | None:
        """First and last line of the smallest function or class that a frame is in; None: it is in none."""
        if frame.path not in self._trees:
            self._trees[frame.path] = None
            if frame.path.endswith(".py") and not Path(frame.path).is_absolute():
                with suppress(SourceError):
                    self._trees[frame.path] = read_source(self.tree / frame.path).parse()
        tree = self._trees[frame.path]
        kinds = (ast.ClassDef,) if kind == "class" else (ast.FunctionDef, ast.AsyncFunctionDef)
        around = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in (walk(tree) if tree is not None else ())
            if isinstance(node, kinds) and node.lineno <= frame.line <= (node.end_lineno or node.lineno)
        ]
        return min(around, key=lambda each: each[1] - each[0], default=None)

    def failing(self, run: TestRun) -> list[StillFailing]:
        """The tests that fail, by what they have in common; those most hang on first."""
        groups: defaultdict[tuple[str, Frame | None, str | None], list[str]] = defaultdict(list)
        first: dict[tuple[str, Frame | None, str | None], Result] = {}
        for name in run.bad:
            result = run.results[name]
            known = self.at(result.frames)
            own = [frame for frame in result.frames if not Path(frame.path).is_absolute()]
            place = known[0] if known else (own[-1] if own else None)
            key = (_VARYING.sub("…", result.message)[:160], place, known[1].code if known else None)
            groups[key].append(name)
            first.setdefault(key, result)
        found = []
        for key, tests in sorted(groups.items(), key=lambda item: -len(item[1])):
            result = first[key]
            known = self.at(result.frames)
            written = None if known or key[1] is None else self.written_by(key[1])
            near = self.near(result.frames)
            cause, about = _cause(result, known[1] if known else None, written, near)
            if _OF_DIVISION in cause and (quotients := self.divisions(result.frames)):
                listed = " and ".join(f"`{source}` in line {line}" for line, source in quotients)
                cause = f"{cause}; here: {listed}"
            message = " ".join(result.message.split())[:_MOST]
            found.append(StillFailing(tuple(tests), message, key[1], key[2], cause, about))
        return found

    def by_hand(self, run: TestRun, guesses: Container[str]) -> list[ByHand]:
        """What is left that warns, changes or breaks; that on which most failing tests hang first.

        guesses: the codes of rules that only guess that a place is affected.
        """
        hanging: Counter[int] = Counter()
        for name in run.bad:
            known = self.at(run.results[name].frames)
            if known is not None:
                hanging[id(known[1])] += 1
        left = [
            ByHand(path, row, said.code, said.message, said.help or "", hanging[id(finding)])
            for path, row, finding, said in self._found
            if finding.severity > Severity.INFO and finding.code not in guesses
        ]
        return sorted(left, key=lambda each: (-each.tests, each.path, each.line, each.code))


def _cause(
    result: Result, finding: Finding | None, written: FixGroup | None, near: Near | None
) -> tuple[str, bool]:
    """Why a test fails, in a sentence, and whether that is about torch.

    written: the fixes that wrote the line. near: what changes its behavior near a line of the traceback.
    """
    missing = _NO_MODULE.search(result.message)
    if missing is not None and not _TORCH.match(missing[1] or ""):
        return (
            f"not about torch: the package {(missing[1] or missing[2]).partition('.')[0]} is not installed",
            False,
        )
    if _NO_DEVICE.search(result.message):
        return "not about torch: this environment has no such device", False
    if finding is not None:
        return f"{finding.code}: {finding.message}", True
    if written is not None:
        return (f"possibly about torch: a fix changed this line: {written.title}"), True
    for words, what in _SAID.items():
        if words in result.message:
            return what, True
    if _NUMPY.search(result.message):
        return "not about torch: NumPy removed this name; `--also numpy` fixes most such uses", False
    if _MOVED.search(result.message):
        return "not about torch: Python moved this name; `--also python` fixes such imports", False
    if _PYTHON2.search(result.message):
        return "not about torch: this is Python 2 code; `--also python2` converts most of it", False
    if _APPROX.search(result.message):
        return "not about torch: pytest rejects `assert approx(a, b)`; write `assert a == approx(b)`", False
    if near is not None:
        return f"possibly {near.finding.code}, in the same {near.kind}: {near.finding.message}", True
    inner = result.frames[-1].path if result.frames else ""
    if _IN_TORCH.search(inner) or _TORCH.search(result.message):
        return "possibly about torch: no rule applies to a line of the traceback", True
    if result.message.startswith(("assert", "AssertionError", "Failed: DID NOT RAISE")):
        return (
            (
                "a result differs from the one that the test expects; torchmigrate cannot tell whether "
                "torch is the cause"
            ),
            False,
        )
    return "not about torch, according to the traceback", False
