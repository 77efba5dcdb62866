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
_TESTING = pattern(r"/site-packages/torch/testing\b")
_NO_MODULE = pattern(r"No module named '([\w.]+)'|Module (\w+) is not installed")
_UNDEFINED = pattern(r"name '(\w+)' is not defined")
_NOT_INSTALLED = "not about torch: the package {} is not installed"
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
    "more than one element of the written-to tensor": (
        "the tensor is expanded, so that several elements are one: call `.clone()` after `.expand(...)`"
    ),
    "Unknown builtin op: aten::is_tensor": (
        "since torch 1.2, TorchScript also compiles the functions that are called: write "
        "`isinstance(x, torch.Tensor)` for `torch.is_tensor(x)`"
    ),
    "Cannot instantiate class": (
        "since torch 1.2, TorchScript also compiles the functions that are called, and they cannot make "
        "modules: make the module outside of the script, and call it there"
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
# A call of a mock that a test expects, and the one that was made.
_MOCKED = pattern(
    r"Expected(?: call)?: (?P<name>[\w.]+)\((?P<old>[^\n]*)\)\n"
    r" *Actual(?: call)?: (?P=name)\((?P<new>[^\n]*)\)"
)
_COMPARED = pattern(r"(?:AssertionError: )?assert call\([^\n]*\) == call\([^\n]*\)")
# What an error lacks; of an object, another one may have hidden it.
_LACKING = pattern(
    r"module '[\w.]+' has no attribute '(\w+)'|cannot import name '(\w+)'|No module named '([\w.]+)'"
    r"|unexpected keyword argument '(\w+)'|name '(\w+)' is not defined"
)
_UNKNOWN = "a result differs from the one that the test expects"
_OTHER_RESULT = "the result is not the same as on torch"  # as observing/torchmigrate_calls.py says
# What such a message says of dtypes -> the cause.
_OTHER_DTYPES = {
    pattern(r".* is float\d+ .*, and was u?int\d+ "): (
        "since torch 1.6, quotients of integers are floats: use `//` where one is computed"
    ),
    pattern(r".* is bool .*, and was uint8 "): "since torch 1.2, comparisons give `torch.bool`",
}
_DIFFERS = ("assert", "AssertionError", "Failed: DID NOT RAISE", _OTHER_RESULT)
# What an error and the change of behavior that leads to it are both about.
_TOPICS = (
    pattern(r"\b(?:d?types?|float\w*|double|long|ints?|integers?|half|byte|bool\w*)\b", re.IGNORECASE),
    pattern(r"\b(?:shapes?|sizes?|dim\w*|view|strides?|rows?|columns?|pad\w*)\b", re.IGNORECASE),
)
_PYTHON2 = pattern(r"Missing parentheses in call to 'print'|name '(?:unicode|xrange|raw_input|basestring)'")


class Near(Struct, frozen=True):
    """A finding near a line of a traceback: in the same function or class."""

    frame: Frame
    finding: Finding
    kind: str


class Places:
    """Findings of a tree by the lines that they are about.

    written_by: the group of fixes that wrote a line; None: none did.
    kept_in: what fixes keep as it is on the target, and a test may expect as it was before; None: nothing.
    """

    def __init__(
        self,
        tree: Path,
        found: Mapping[str, Sequence[Finding]],
        written_by: Callable[[Frame], FixGroup | None] = lambda frame: None,
        kept_in: Callable[[str], str | None] = lambda test: None,
    ) -> None:
        self.tree = tree
        self.kept_in = kept_in
        self.written_by = written_by
        self._by_line: defaultdict[tuple[str, int], list[Finding]] = defaultdict(list)  # worst first
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
                        self._by_line[path, row].append(finding)
        for listed in self._by_line.values():
            listed.sort(key=lambda each: -each.severity)

    def at(self, result: Result) -> tuple[Frame, Finding] | None:
        """The finding at the innermost line of the project in a traceback that may be why it was raised.

        One further out counts if the error names what it is about.
        """
        inner = True
        for frame in reversed(result.frames):
            for finding in self._by_line.get((frame.path, frame.line), ()):
                if _may_raise(finding, result.message, inner=inner):
                    return frame, finding
            inner = inner and Path(frame.path).is_absolute()
        return None

    def on_way(self, frames: Sequence[Frame]) -> tuple[Frame, Finding] | None:
        """The first finding of a line of a traceback, from its inner end."""
        for frame in reversed(frames):
            for finding in self._by_line.get((frame.path, frame.line), ()):
                return frame, finding
        return None

    def near(self, frames: Sequence[Frame], message: str = "") -> Near | None:
        """A change of behavior in a function, or else a class, of the traceback, from its inner end.

        message: of the error; a change that is about something else does not count.
        """
        for kind in ("function", "class"):
            for frame in reversed(frames):
                around = self._around(frame, kind)
                if around is None:
                    continue
                for (path, row), findings in self._by_line.items():
                    if path == frame.path and around[0] <= row <= around[1]:
                        for finding in findings:
                            if _changes(finding) and _shares_topic(finding, message):
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
        return [(path, finding) for path, _, finding, _ in self._found if path in paths and _changes(finding)]

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

    def _imports(self, path: str, name: str) -> bool:
        """Whether a file imports a package of this name, which may not be installed."""
        tree = self._tree(path)
        imports = (node for node in (walk(tree) if tree is not None else ()) if isinstance(node, ast.Import))
        return any(alias.name == name for node in imports for alias in node.names)

    def _tree(self, path: str) -> ast.Module | None:
        """The syntax tree of a file of the project; None: there is none."""
        if path not in self._trees:
            self._trees[path] = None
            if path.endswith(".py") and not Path(path).is_absolute():
                with suppress(SourceError):
                    self._trees[path] = read_source(self.tree / path).parse()
        return self._trees[path]

    def _around(self, frame: Frame, kind: str) -> tuple[int, int] | None:
        """First and last line of the smallest function or class that a frame is in; None: it is in none."""
        tree = self._tree(frame.path)
        kinds = (ast.ClassDef,) if kind == "class" else (ast.FunctionDef, ast.AsyncFunctionDef)
        around = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in (walk(tree) if tree is not None else ())
            if isinstance(node, kinds) and node.lineno <= frame.line <= (node.end_lineno or node.lineno)
        ]
        return min(around, key=lambda each: each[1] - each[0], default=None)

    def failing(
        self, run: TestRun, before: TestRun | None = None, to_change: Container[str] = ()
    ) -> list[StillFailing]:
        """The tests that fail, by what they have in common; those most hang on first.

        before: a run without the fixes; what fails as it did there was not changed by one. None: not known.
        to_change: the tests that expect the old call of a mock.
        """
        groups: defaultdict[tuple[str, Frame | None, str | None, bool], list[str]] = defaultdict(list)
        for name in run.bad:
            result = run.results[name]
            known = self.at(result)
            own = [frame for frame in result.frames if not Path(frame.path).is_absolute()]
            place = known[0] if known else (own[-1] if own else None)
            was = None if before is None else before.results.get(name)
            same = was is not None and (was.outcome, _alike(was)) == (result.outcome, _alike(result))
            groups[_alike(result), place, known[1].code if known else None, same].append(name)
        found = []
        for (_, place, code, same), tests in sorted(groups.items(), key=lambda item: -len(item[1])):
            result = run.results[tests[0]]
            known = self.at(result)
            written = None if known or place is None or same else self.written_by(place)
            near = None if _LACKING.search(result.message) else self.near(result.frames, result.message)
            cause, about = _cause(result, known[1] if known else None, written, near)
            undefined = _UNDEFINED.search(result.message)
            if undefined is not None and place is not None and self._imports(place.path, undefined[1]):
                cause, about = _NOT_INSTALLED.format(undefined[1]), False
            if tests[0] in to_change:
                cause, about = _expected(result.message), True
            if cause.startswith(_UNKNOWN) and (kept := self.kept_in(tests[0])) is not None:
                cause, about = f"{_UNKNOWN}: possibly {kept}", True
            if _OF_DIVISION in cause and (quotients := self.divisions(result.frames)):
                listed = " and ".join(f"`{source}` in line {line}" for line, source in quotients)
                cause = f"{cause}; here: {listed}"
            message = " ".join(result.message.split())[:_MOST]
            found.append(StillFailing(tuple(tests), message, place, code, cause, about))
        return found

    def by_hand(self, run: TestRun, guesses: Container[str]) -> list[ByHand]:
        """What is left that warns, changes or breaks; that on which most failing tests hang first.

        guesses: the codes of rules that only guess that a place is affected.
        """
        hanging: Counter[int] = Counter()
        for name in run.bad:
            known = self.at(run.results[name])
            if known is not None:
                hanging[id(known[1])] += 1
        left = [
            ByHand(path, row, said.code, said.message, said.help or "", hanging[id(finding)])
            for path, row, finding, said in self._found
            if finding.severity > Severity.INFO and finding.code not in guesses
        ]
        return sorted(left, key=lambda each: (-each.tests, each.path, each.line, each.code))


def expects_old_call(message: str) -> bool:
    """Whether a test fails because a mock was called with other arguments than it expects."""
    return _MOCKED.search(message) is not None or _COMPARED.match(message) is not None


def is_other_result(message: str) -> bool:
    """Whether a test fails because a result is another one than it expects."""
    return message.startswith(_DIFFERS)


def _expected(message: str) -> str:
    """What to change in a test that expects the old call of a mock."""
    call = _MOCKED.search(message)
    if call is None:
        return "change this test: it expects the old call of a mock, which a fix changed"
    old, new = (f"`{call['name']}({call[key]})`" for key in ("old", "new"))
    return f"change this test: its mock expects {old[:_MOST]}, and a fix made this {new[:_MOST]}"


def _alike(result: Result) -> str:
    """The message of an error without what differs between errors of one cause."""
    return _VARYING.sub("…", result.message)[:160]


def _may_raise(finding: Finding, message: str, *, inner: bool) -> bool:
    """Whether what a finding is about may raise an error. inner: it is where the project ends."""
    lacking = _LACKING.search(message)
    if lacking is not None:
        name = next(filter(None, lacking.groups())).rpartition(".")[2]
        said = f"{finding.symbol} {finding.message} {finding.help}"
        return re.search(rf"\b{name}\b", said) is not None
    if re.match(r"[\w.]*Warning\b", message):
        return True
    if message.startswith(_DIFFERS):
        return inner and _changes(finding)
    return inner and (finding.severity is Severity.ERROR or _changes(finding))


def _changes(finding: Finding) -> bool:
    return finding.timeline is not None and finding.timeline.changed is not None


def _shares_topic(finding: Finding, message: str) -> bool:
    """Whether a change of behavior is about what an error is about, as far as both say that."""
    topics = [topic for topic in _TOPICS if topic.search(message)]
    said = f"{finding.message} {finding.help}"
    return not topics or any(topic.search(said) for topic in topics)


def _cause(
    result: Result, finding: Finding | None, written: FixGroup | None, near: Near | None
) -> tuple[str, bool]:
    """Why a test fails, in a sentence, and whether that is about torch.

    written: the fixes that wrote the line. near: what changes its behavior near a line of the traceback.
    """
    missing = _NO_MODULE.search(result.message)
    if missing is not None and (not _TORCH.match(missing[1] or "") or "." not in missing[1]):
        return _NOT_INSTALLED.format((missing[1] or missing[2]).partition(".")[0]), False
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
    if result.message.startswith(_OTHER_RESULT):
        causes = [cause for said, cause in _OTHER_DTYPES.items() if said.match(result.message)]
        return (*causes, "possibly about torch: no rule applies to the functions that ran")[0], True
    inner = result.frames[-1].path if result.frames else ""
    about = _IN_TORCH.search(inner) is not None or _TORCH.search(result.message) is not None
    if result.message.startswith(_DIFFERS) and (_TESTING.search(inner) or not _IN_TORCH.search(inner)):
        return f"{_UNKNOWN}; torchmigrate cannot tell whether torch is the cause", about
    if about:
        return "possibly about torch: no rule applies to a line of the traceback", True
    return "not about torch, according to the traceback", False
