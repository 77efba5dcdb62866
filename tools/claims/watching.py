"""What both watchers share: which frames are the project's, and whether an error is about torch."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

PROJECT = os.environ["PLAN_CLAIMS_PROJECT"] + os.sep
_LIBRARY = re.compile(r"\b(torch\w*|functorch|torio|caffe2)\b")
_WITH_TORCH = frozenset(["caffe2", "functorch", "torch", "torchdynamo"])
_IN_LIBRARY = re.compile(r"[/\\](torch|torchvision|torchaudio|torchtext|torchdata|functorch)[/\\]")


def inside(path: str) -> str | None:
    """A path relative to the project; None for one that is elsewhere."""
    real = os.path.realpath(path)
    return real[len(PROJECT) :].replace(os.sep, "/") if real.startswith(PROJECT) else None


def told(error: BaseException, trace: TracebackType | None) -> dict[str, Any]:
    """An error with the lines of the project that it went through, and whether it is about torch."""
    summary = traceback.extract_tb(trace)
    frames = [(path, item.lineno) for item in summary if (path := inside(item.filename)) is not None]
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    name = getattr(error, "name", None)  # of a module that is missing
    if isinstance(error, ModuleNotFoundError) and name is not None:
        # A package that is not installed here says nothing; one that came with torch does.
        root, _, rest = str(name).partition(".")
        about = root in _WITH_TORCH or (
            bool(rest) and _LIBRARY.match(root) is not None and root in sys.modules
        )
    elif isinstance(error, ImportError):
        about = _LIBRARY.search(text) is not None
    else:
        deep = bool(summary) and _IN_LIBRARY.search(summary[-1].filename) is not None
        about = deep or _LIBRARY.search(text) is not None or "'Tensor'" in text
    return {"error": text, "frames": frames, "about_torch": about}


def write(found: dict[str, Any]) -> None:
    """Add a line to what is told."""
    with Path(os.environ["PLAN_CLAIMS_OUT"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(found) + "\n")
