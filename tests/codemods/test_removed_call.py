"""Calls that do nothing any more go, with what was there only for them; anything else is only reported."""

from __future__ import annotations

import pytest
from harness.program import FIX, FIX_ALL, only, run

REMOVED = {
    "two in one block": (
        "import torchaudio\nif windows:\n    torchaudio.initialize_sox()\n    torchaudio.shutdown_sox()\nrun()\n",
        "run()\n",
    ),
    "between others": (
        "import torchaudio\ntorchaudio.set_audio_backend('sox_io')\nx, r = torchaudio.load(p)\n",
        "import torchaudio\nx, r = torchaudio.load(p)\n",
    ),
    "behind a semicolon": (
        "import torchaudio; torchaudio.set_audio_backend(None); x = torchaudio.load(p)\n",
        "import torchaudio; x = torchaudio.load(p)\n",
    ),
    "a constant of the file": (
        "import torchaudio\nBACKEND = 'sox'\ntorchaudio.set_audio_backend(backend=BACKEND)\nrun(torchaudio)\n",
        "import torchaudio\nBACKEND = 'sox'\nrun(torchaudio)\n",
    ),
    "imported by name": (
        "from torchaudio import load, set_audio_backend\nset_audio_backend(backend='soundfile')\nload(p)\n",
        "from torchaudio import load\nload(p)\n",
    ),
}
KEPT = {
    "the result is used": "import torchaudio\nbackend = torchaudio.get_audio_backend()\n",
    "an argument does something": "import torchaudio\ntorchaudio.set_audio_backend(choose())\n",
    "an argument can be chosen": "import torchaudio\nif a.b:\n    torchaudio.set_audio_backend(a.b)\n",
    "a parameter": "import torchaudio\ndef f(backend='sox'):\n    torchaudio.set_audio_backend(backend)\n",
    "part of an expression": "import torchaudio\nwindows and torchaudio.set_audio_backend('soundfile')\n",
    "star import": "from torchaudio import *\nset_audio_backend('soundfile')\n",
}


def fixed(text: str, *, unsafe: bool = False) -> str:
    return run(text, *only(["TM800", "TM816"]), *(FIX_ALL if unsafe else FIX)).new_text or text


@pytest.mark.parametrize("name", REMOVED)
def test_removed(name):
    before, after = REMOVED[name]
    assert fixed(before) == after


@pytest.mark.parametrize("name", KEPT)
def test_reported_only(name):
    findings = run(KEPT[name], *only(["TM800"])).findings
    assert findings
    assert all(finding.fix is None for finding in findings)


@pytest.mark.parametrize(
    "comment", ["torchaudio.initialize_sox()  # once", "torchaudio.initialize_sox(  # once\n)"]
)
def test_a_comment_makes_it_unsafe(comment):
    text = f"import torchaudio\n{comment}\nrun()\n"
    assert fixed(text) == text
    assert fixed(text, unsafe=True) == "run()\n"
