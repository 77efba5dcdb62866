"""Invented places, and a small project, for the tests of upgrade plans."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from torchmigrate.planning.model import Effort, Line, Place, Since

# A safe fix from 2.3 on for what warns since 2.4; what is gone since 2.0, with a safe fix; what changed in 2.6.
TRAIN = dedent("""\
    import torch

    scaler = torch.cuda.amp.GradScaler()
    values, vectors = torch.symeig(a, eigenvectors=True)
    state = torch.load("<script>window.hacked = 1</script>&amp;")
""")
# What is gone since 1.8, without a fix; the test of the version takes care of the other one.
FOURIER = dedent("""\
    import torch

    y = torch.rfft(x, 4)
    if torch.__version__ < "1.8":
        y = torch.rfft(x, 3)
    # torchmigrate: ignore[TM100]
    z = 1
""")
SCALER, SYMEIG, LOAD, RFFT = "TM202", "TM100", "TM600", "TM151"
# A name as unpleasant as file systems allow.
UGLY = "a <b>#1%20'\"&.py"


def write_project(directory: Path) -> None:
    """A project that supports torch 1.5, with four places."""
    (directory / "src").mkdir(parents=True)
    (directory / "src" / "train.py").write_text(TRAIN)
    (directory / "src" / UGLY).write_text(FOURIER)
    (directory / "requirements.txt").write_text("torch>=1.5\n")


def place(
    code: str = "TM100",
    *,
    path: str = "a.py",
    row: int = 1,
    effort: Effort = Effort.BY_HAND,
    outdated: str | None = None,
    may_differ: str | None = None,
    warns: str | None = None,
    changes: str | None = None,
    may_raise: str | None = None,
    breaks: str | None = None,
    on_import: str | None = None,
    needs: str | None = None,
    fix_needs: str | None = None,
    rows: tuple[int, ...] = (),
) -> Place:
    """A place with these releases of torch."""

    def version(text: str | None) -> tuple[int, ...] | None:
        return None if text is None else tuple(map(int, text.split(".")))

    return Place(
        path=path,
        file=path,
        row=row,
        column=1,
        code=code,
        name=f"rule-{code.lower()}",
        message=f"`{code}` in row {row}",
        since=Since(
            *map(version, (outdated, may_differ, warns, changes, may_raise, breaks, on_import, needs))
        ),
        effort=effort,
        fix=None if effort is Effort.BY_HAND else "Replace it",
        fix_needs=version(fix_needs),
        rows=rows,
        excerpt=(Line(row, "x = ", "old", "()"),),
    )
