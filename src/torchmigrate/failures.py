"""What rules could not do with a file: it is named, and all other rules go on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from torchmigrate.findings import Finding, Problem
from torchmigrate.source.depth import has_room
from torchmigrate.source.text import Source

REPORT = "(please report)"


class Failures:
    """The problems of one text.

    problems: one for each rule and place.
    """

    def __init__(self, source: Source, path: Path) -> None:
        self.source = source
        self.path = path
        self.problems: list[Problem] = []

    def caught(
        self, code: str, lost: str, offset: int | None = None, by: str | None = None
    ) -> AbstractContextManager[None]:
        """A block in which any exception of a rule becomes a problem.

        Args:
            code: of the rule, or of several.
            lost: what there is not when the block fails: "the fix".
            offset: of the place; None: the whole file.
            by: what fails, if that is not ours; its message is shown.
        """
        return _Caught(self, code, lost, offset, by)

    def left_out(self, finding: Finding, why: str) -> None:
        """Name a fix that is not applied."""
        self._add(finding.code, f"the fix was skipped, because {why}", finding.start)

    def failed(
        self, code: str, lost: str, error: Exception, offset: int | None, by: str | None = None
    ) -> None:
        """Name what an exception has cost."""
        if isinstance(error, RecursionError):
            self._add(code, f"{lost} was skipped, because the code is nested too deeply", offset)
            return
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f" in {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else ""
        said = f": {' '.join(str(error).split())[:200]}" if by is not None and str(error) else ""
        what = f"{lost} was skipped, because {by or 'the rule'} failed ({type(error).__name__}{said}{where})"
        self._add(code, what, offset, "" if by is not None else f" {REPORT}")

    def _add(self, code: str, what: str, offset: int | None, end: str = f" {REPORT}") -> None:
        line = None if offset is None else self.source.position(offset)[0]
        problem = Problem(self.path, f"{code}: {what}{end}", line)
        if problem not in self.problems:
            self.problems.append(problem)


class _Caught(AbstractContextManager[None]):
    __slots__ = ("by", "code", "failures", "lost", "offset")

    def __init__(self, failures: Failures, code: str, lost: str, offset: int | None, by: str | None) -> None:
        self.by = by
        self.failures = failures
        self.code = code
        self.lost = lost
        self.offset = offset

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        if isinstance(error, RecursionError) and not has_room():
            return False  # the file is begun again, with more
        from torchmigrate.files.signals import interrupt_in  # of no use to a run in which nothing fails

        if (interrupt := interrupt_in(error)) is not None:
            raise interrupt
        self.failures.failed(self.code, self.lost, error, self.offset, self.by)
        return True
